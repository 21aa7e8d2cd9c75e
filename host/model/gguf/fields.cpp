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

/// First words of keys of no model, and words of keys of a tower.
constexpr auto of_no_model = names("adapter", "clip", "general", "quantize", "split", "tokenizer");
constexpr auto of_tower = names("audio", "image", "mm", "projector", "speech", "vision");

/// Returns the words of a key, which `_` and `.` separate.
std::vector<std::string> words_of(const std::string& key) {
    std::vector<std::string> words(1);
    for (const char letter : key) {
        if (letter == '_' || letter == '.') {
            words.emplace_back();
        } else {
            words.back() += letter;
        }
    }
    return words;
}

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
    Field field = file_.find(prefix_ + name);
    field.name = shown_key(prefix_) + name;
    return field;
}

Field GgufImport::find_of(std::span<const std::string_view> marks, const std::string& name) {
    const std::vector<std::string> wanted = meaning_of(name);
    Field found = {shown_key(prefix_) + name + "_swa"};
    for (const auto& [key, value] : file_.values()) {
        if (!key.starts_with(prefix_)) continue;
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

std::vector<Field> GgufImport::unread() const {
    std::vector<Field> found;
    for (const auto& [key, value] : file_.values()) {
        const std::vector<std::string> words = words_of(key);
        if (asked_for_.count(key) != 0 || contains(of_no_model, words[0]) ||
            std::any_of(words.begin(), words.end(),
                        [](const std::string& word) { return contains(of_tower, word); })) {
            continue;
        }
        found.push_back(file_.find(key));
    }
    return found;
}

}  // namespace vkrope
