# SPDX-License-Identifier: MIT
# The rules for the page of `vkrope-bench --html`. The first file has the required content of the
# page, one line each: section, row, kind of bar, share of the roof.
FILENAME == ARGV[1] {
    sections[$1]
    if ($2 != "-") rows[$2]
    if ($4 > 0) share[$1, $2, $3] = $4
    next
}
$1 == "title" && $2 !~ /20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]/ { print "no date in the title: " $2 }
$1 == "section" { seen[$2]; if ($4 < 50) print "section " $2 ": " $4 " high" }
$1 == "row" { seen_row[$2]; if ($3 + 0 > 2) print "row " $2 ": its name has " $3 }
$1 == "bar" {
    bars++
    key = $2 SUBSEP $3 SUBSEP $4
    if (!(key in share)) print "bar " $3 " " $4 ": not in the results"
    else if (($5 - share[key] * $6) ^ 2 > 1)
        print "bar " $3 " " $4 ": " $5 " of " $6 " wide, not " share[key]
    if ($5 > $7 + 0.5) print "bar " $3 ": wider than its box"
    drawn[key]
}
$1 == "smallest_text" { figures++ }
END {
    for (s in sections) if (!(s in seen)) print "no section " s
    for (r in rows) if (!(r in seen_row)) print "no row " r
    for (k in share) if (k ~ /^(vkrope and|Rivals|vkCmd)/ && !(k in drawn)) print "no bar " k
    if (!bars) print "no bars"
    if (!figures) print "no figures"
}
