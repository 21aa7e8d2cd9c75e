// SPDX-License-Identifier: MIT
#include "model/gguf/readers.hpp"

namespace vkrope {
namespace {

bool begins(const std::string& key, const std::string& beginning) {
    return key.compare(0, beginning.size(), beginning) == 0;
}

}  // namespace

Field GgufFields::find(const char* name) {
    const std::string key = prefix_ + name;
    asked_for_.insert(key);
    Field field = file_.find(key);
    field.name = shown_key(prefix_) + name;
    return field;
}

Field GgufFields::required(const char* name, const char* because) {
    Field field = find(name);
    if (!field) {
        invalid_data("{} is missing: {}", field.name, because);
    }
    return field;
}

void GgufFields::pass_over(const char* beginning) {
    for (const auto& [key, value] : file_.values()) {
        if (begins(key, prefix_ + beginning)) {
            asked_for_.insert(key);
        }
    }
}

std::vector<GgufUnread> GgufFields::unread() const {
    std::vector<GgufUnread> found;
    for (const auto& [key, value] : file_.values()) {
        if (!begins(key, prefix_) || asked_for_.count(key) != 0) continue;
        const std::string name = key.substr(prefix_.size());
        if (const Says says = what_says(name, false); says != Says::nothing) {
            found.push_back({file_.find(key), says});
            found.back().field.name = shown_key(prefix_) + shown_key(name);
        }
    }
    return found;
}

void warn_of_assumed(const Field& field, double value, const std::string& because,
                     Warnings& warnings) {
    warn(warnings, "{} is missing: assuming {}, {}", field.name, shown_number(value), because);
}

}  // namespace vkrope
