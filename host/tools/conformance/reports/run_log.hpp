// SPDX-License-Identifier: MIT
// What a run prints, for its report: without the names of who runs it and where.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vkrope::conformance {

class RunLog {
   public:
    /// Adds what was printed. Beyond a MiB, the rest is left out, which the log says.
    void add(std::string_view printed);
    void add_line(std::string_view line);

    /// From here on text() shows `by` for `name`.
    void hide(std::string name, std::string by);

    /// The log, in which the names of the machine, the user, the home and the working directory,
    /// as words or in paths, are replaced by what they are: "<user>".
    std::string text() const;

   private:
    std::string printed_;
    std::vector<std::pair<std::string, std::string>> hidden_;
    bool cut_ = false;
};

/// Replaces `name` by `by` wherever it is not a part of a longer word. An empty name is nowhere.
std::string without(std::string_view name, std::string_view by, std::string text);

}  // namespace vkrope::conformance
