// SPDX-License-Identifier: MIT
// What the pages of reports share: one file, no script, no request, light and dark, wide and
// narrow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vkrope::conformance::html {

/// Text from a driver or a file, safe between tags and in attributes: no control characters.
std::string text(std::string_view raw);

/// A page with a heading. `body` is HTML.
std::string page(std::string_view title, std::string_view body);

/// A section with a heading.
std::string section(std::string_view heading, std::string_view body);

/// A table whose cells are HTML. On a narrow screen each row becomes a list of its cells, named by
/// the head.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

/// Names with their values, which are HTML.
std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs);

/// A word in the colour of its meaning: "good", "bad" or "none".
std::string mark(std::string_view word, std::string_view meaning);

/// A bar of a share from 0 to 1, which is said beside it.
std::string bar(double share, std::string_view says);

}  // namespace vkrope::conformance::html
