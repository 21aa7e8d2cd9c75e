# SPDX-License-Identifier: MIT
# The rules for every page, for the facts from page_probe.html. Variables: width, scheme.

# The relative luminance of a colour "rgb(r, g, b)" and the contrast of two, as WCAG defines them.
function light(colour,   part, i, c, sum) {
    gsub(/[^0-9,]/, "", colour)
    split(colour, part, ",")
    for (i = 1; i <= 3; i++) {
        c = part[i] / 255
        c = c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ^ 2.4
        sum += c * (i == 1 ? 0.2126 : i == 2 ? 0.7152 : 0.0722)
    }
    return sum
}
function contrast(a, b) {
    a = light(a) + 0.05
    b = light(b) + 0.05
    return a > b ? a / b : b / a
}
$1 == "inner_width" && $2 != width { print "the frame is " $2 " wide" }
$1 == "scroll_width" { measured = 1; if ($2 > width) print "the page is " $2 " wide" }
$1 == "scripts" && $2 != 0 { print $2 " scripts" }
$1 == "requests" && $2 != 0 { print $2 " requests" }
$1 == "background" {
    background = $2
    if ((light($2) < 0.2) != (scheme == "dark")) print "the background is not " scheme ": " $2
}
($1 == "ink" || $1 == "quiet") && contrast($2, background) < 4.5 {
    print $1 " is hard to read: " $2 " on " background
}
$1 == "section" && ($3 < width / 2 || $4 < 20) { print "section " $2 ": " $3 " x " $4 }
$1 == "smallest_text" && $2 < 9 { print "text in a figure is " $2 " high" }
END { if (!measured) print "no width" }
