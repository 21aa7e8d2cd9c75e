// SPDX-License-Identifier: MIT
// Builds the HTML that all pages of reports share: one file without scripts or requests, for light
// and dark colour schemes, and for wide and narrow screens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vkrope::conformance::html {

// Escapes text of a driver or file for tags and attributes; replaces control characters.
std::string text(std::string_view raw);

// Returns a page with a heading. `body` is HTML.
std::string page(std::string_view title, std::string_view body);

// Returns a section with a heading.
std::string section(std::string_view heading, std::string_view body);

// Returns a table whose cells are HTML. On a narrow screen each row becomes a list of its cells,
// with the column headings as labels.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

// Returns a list of names and values. The values are HTML.
std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs);

// Returns a word in the colour of its meaning: "good", "bad" or "none".
std::string mark(std::string_view word, std::string_view meaning);

// Returns a bar for a fraction from 0 to 1, with the label `says` next to the bar.
std::string bar(double share, std::string_view says);

}  // namespace vkrope::conformance::html
