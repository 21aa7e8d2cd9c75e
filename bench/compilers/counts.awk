# SPDX-License-Identifier: MIT
# awk -v old=FILE -v facts=TEXT -f counts.awk CHIP...: prints a new compilers.txt from the files of
# what counts.cpp prints on each chip. A cell has instructions/registers at the commit `before`,
# from the old file, and now. What an old file does not have has no counts before; without an old
# file they are those of now. Fails if a chip lacks a kernel, or has more pipelines with spills than
# the old file says.
function bytes(pipeline) { # of an access
    sub(/^vkrope, /, "", pipeline)
    return pipeline ~ /^word/ ? 4 : pipeline ~ /^narrow/ ? 2 : pipeline + 0
}
function set(row, figures) {
    now[row, FILENAME] = figures
    if (!(row in seen)) names[++rows] = row
    seen[row] = 1
}
function fail(text) {
    print "FAILED: " text >"/dev/stderr"
    failed = 1
}
BEGIN {
    FS = "\t"
    while ((getline line < old) > 0) {
        count = split(line, word, " ")
        if (word[1] == "compilers") split(line, chips, " ")
        for (i = 2; i <= count; i++) {
            split(word[i], figures, ">")
            before[word[1], chips[i]] = figures[1]
            last[word[1], chips[i]] = figures[2]
        }
    }
}
FNR == 1 { set("with_spills", 0) }
{
    starts = FNR == 1 || $1 != kernel || bytes($2) > bytes(pipeline) # a set of pipelines
    kernel = $1
    pipeline = $2
    if (starts) widest = $2
    # The widest access comes first. If it has two pipelines, the second is for few tokens.
    if (starts || (kernel ~ /^decode/ && $2 == widest)) set(kernel, $3 "/" $4)
    if ($5 == 0) next
    set("with_spills", now["with_spills", FILENAME] + 1)
    spills[FILENAME] = spills[FILENAME] "; " kernel ", " $2
}
END {
    printf "%s\n%-31s", facts, "compilers"
    for (c = 1; c < ARGC; c++) printf " %17s", ARGV[c]
    for (r = 1; r <= rows; r++) {
        printf "\n%-31s", names[r]
        for (c = 1; c < ARGC; c++) {
            here = names[r] SUBSEP ARGV[c]
            if (!(here in now)) fail(ARGV[c] " says nothing of " names[r])
            printf " %17s", (chips[1] == "" ? now[here] : before[here]) ">" now[here]
            if (r == 1 && here in last && now[here] > last[here])
                fail(ARGV[c] " has spills that the old file does not have" spills[ARGV[c]])
        }
    }
    print ""
    exit failed
}
