// SPDX-License-Identifier: MIT
// Finds the keys of a file, and records which of them were looked for.
#include <algorithm>

#include "model/gguf/import.hpp"
#include "model/import_error.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

/// Words that do not distinguish keys of RoPE.
constexpr auto fillers = names("attention", "attn", "freq", "layer", "layers", "rope", "window");

/// Returns what a key is about: its words without fillers, sorted.
std::vector<std::string> meaning_of(const std::string& key) {
    std::vector<std::string> words = words_of(key);
    std::erase_if(words, [](const std::string& word) { return contains(fillers, word); });
    std::replace(words.begin(), words.end(), std::string("theta"), std::string("base"));
    std::sort(words.begin(), words.end());
    return words;
}

}  // namespace

Field GgufImport::find(const std::string& name) {
    asked_for_.insert(prefix_ + name);
    return file_.find(prefix_ + name);
}

Field GgufImport::find_of(std::span<const std::string_view> marks, const std::string& name) {
    const std::vector<std::string> wanted = meaning_of(name);
    Field found = file_.find(prefix_ + name + "_swa");
    found.value = nullptr;
    for (const auto& [key, value] : file_.values()) {
        const auto in_this_key = [&](std::string_view mark) { return key.find(mark) != key.npos; };
        if (!key.starts_with(prefix_) || std::none_of(marks.begin(), marks.end(), in_this_key)) {
            continue;
        }
        std::vector<std::string> meaning = meaning_of(key.substr(prefix_.size()));
        const auto marked = std::erase_if(
            meaning, [&](const std::string& word) { return contains(marks, word); });
        if (marked == 0 || meaning != wanted) continue;
        asked_for_.insert(key);
        const Field field = file_.find(key);
        if (found && *found.value != *field.value) disagree(found, field);
        found = field;
    }
    return found;
}

Field GgufImport::required(const std::string& name, const char* because) {
    Field field = find(name);
    if (!field) {
        invalid_data("{} is missing: {}", field.name, because);
    }
    return field;
}

}  // namespace vkrope
