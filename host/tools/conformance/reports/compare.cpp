// SPDX-License-Identifier: MIT
#include "conformance/reports/compare.hpp"

#include <map>

#include "cli/terminal.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::printable;

bool is_bad(const std::string& status) {
    for (const Verdict verdict : verdicts)
        if (is_bad(verdict) && status == word_for(verdict)) return true;
    return false;
}

std::string text(const Json& object, const char* key) {
    return printable(object.at(key).get<std::string>());
}

// Returns the device of this name that comes after `skip` others of the same name, or null.
const Json* find_device(const Json& devices, const std::string& name, std::size_t skip) {
    for (const Json& device : devices)
        if (device.at("name") == name && skip-- == 0) return &device;
    return nullptr;
}

void compare_checks(const Json& older, const Json& newer, Changes& changes) {
    std::map<std::string, const Json*> before;
    for (const Json& check : older.at("cases")) before[check.at("id").get<std::string>()] = &check;
    std::size_t added = 0;
    for (const Json& check : newer.at("cases")) {
        const auto found = before.find(check.at("id").get<std::string>());
        if (found == before.end()) {
            ++added;
            continue;
        }
        ++changes.compared;
        const auto was = found->second->at("status").get<std::string>(),
                   is = check.at("status").get<std::string>();
        before.erase(found);
        if (was == is) continue;
        changes.worse += is_bad(is) && !is_bad(was) ? 1 : 0;
        changes.text += fmt::format("  {}: {} -> {}{}{}\n", text(check, "id"), was, is,
                                    text(check, "reason").empty() ? "" : ": ",
                                    text(check, "reason"));
    }
    if (added > 0) changes.text += fmt::format("  {} checks are new\n", added);
    if (!before.empty()) {
        changes.text += fmt::format("  {} checks are no longer there, the first is {}\n",
                                    before.size(), printable(before.begin()->first));
    }
}

}  // namespace

Changes compare(const Json& older, const Json& newer) {
    Changes changes;
    std::map<std::string, std::size_t> seen_of;
    for (const Json& device : newer.at("devices")) {
        const auto name = device.at("name").get<std::string>();
        const Json* const before = find_device(older.at("devices"), name, seen_of[name]++);
        changes.text += fmt::format("{}\n", printable(name));
        if (before == nullptr) {
            changes.text += "  is not in the older report\n";
            continue;
        }
        for (const char* key : {"driver", "verdict"}) {
            if (before->at(key) != device.at(key)) {
                changes.text += fmt::format("  {}: {} -> {}\n", key, text(*before, key),
                                            text(device, key));
            }
        }
        compare_checks(*before, device, changes);
    }
    for (const Json& device : older.at("devices")) {
        const auto name = device.at("name").get<std::string>();
        if (find_device(newer.at("devices"), name, 0) == nullptr)
            changes.text += fmt::format("{}\n  is not in the newer report\n", printable(name));
    }
    return changes;
}

}  // namespace vkrope::conformance
