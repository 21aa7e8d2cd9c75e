// SPDX-License-Identifier: MIT
#include "conformance/selection.hpp"

#include <sstream>
#include <string_view>

#include "conformance/repeat.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

// Matches * with any characters, and ? with one.
bool matches(std::string_view pattern, std::string_view text) {
    constexpr std::size_t none = std::string_view::npos;
    std::size_t at = 0, in_text = 0;
    std::size_t after_star = none, taken = 0;  // behind the last *, and the end of what it takes
    while (in_text < text.size()) {
        if (at < pattern.size() && pattern[at] == '*') {
            after_star = ++at;
            taken = in_text;
        } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[in_text])) {
            ++at, ++in_text;
        } else if (after_star != none) {
            at = after_star;
            in_text = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', at) == none;
}

// Returns true if the filter selects a check: a pattern matches, or there are only excluding
// patterns, and no excluding pattern matches.
bool left_by(const std::string& filter, const std::string& id) {
    if (id == filter)  // an id may contain pattern characters and commas
        return true;
    bool includes = true, found = false;
    std::istringstream patterns(filter);
    for (std::string pattern; std::getline(patterns, pattern, ',');) {
        const bool excludes = pattern.starts_with('-');
        if (matches(std::string_view(pattern).substr(excludes), id)) {
            if (excludes) return false;
            found = true;
        }
        includes = includes && excludes;
    }
    return found || includes;
}

}  // namespace

void apply_filter(const Options& options, std::vector<Group>& groups) {
    if (options.filter.empty()) return;
    std::size_t left = 0;
    for (Group& group : groups) {
        std::erase_if(group.checks, [&options](const std::unique_ptr<Check>& check) {
            return !left_by(options.filter, check->id());
        });
        left += group.checks.size();
    }
    if (left == 0) {
        tools::fail(ExitCode::usage, "--filter: '{}' matches no id that would run (see --list)",
                    options.filter);
    }
}

Group group_of(const std::string& name, const Options& options, BuiltinGroups builtin) {
    std::vector<Group> groups = builtin(options.extent);
    std::erase_if(groups, [&name](const Group& group) { return group.name != name; });
    apply_filter(options, groups);
    if (options.repeat > 1) repeat_checks(groups, options.repeat);
    return std::move(groups.at(0));
}

}  // namespace vkrope::conformance
