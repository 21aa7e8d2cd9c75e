# SPDX-License-Identifier: MIT
# Checks the pages of reports. Variable: least, the minimum number of sections of a page.
$1 == "title" && $2 !~ /^vkrope: / { print "the title is " $2 }
$1 == "section" { sections++ }
$1 == "row" { rows++ }
END { if (sections < least) print sections " sections"; if (!rows) print "no rows" }
