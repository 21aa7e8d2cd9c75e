# SPDX-License-Identifier: MIT
# The rules for the pages of reports. Variable: least, how many sections a page has.
$1 == "title" && $2 !~ /^vkrope: / { print "the title is " $2 }
$1 == "section" { sections++ }
$1 == "row" { rows++ }
END { if (sections < least) print sections " sections"; if (!rows) print "no rows" }
