# SPDX-License-Identifier: MIT
# awk -v up=PATH -f pages.awk SUMMARY.txt... PAGE.md: prints the page with new tables. A table is
# between <!-- table NAME: ... --> and an empty line; its figures come from the summaries that
# summary.awk writes. PATH leads from the page to the root of the checkout. A factor below 1 is a
# loss and is printed in bold. A share of a roof that is off is printed with a question mark.
function cell(text, unit) { # empty if the value was not measured
    gsub(/\|/, "\\|", text)
    return text == "" || text == "-" ? "  |" : " " text unit " |"
}
function head(titles,   rule) {
    print "|" titles "|"
    gsub(/[^|]+/, "---", titles)
    print "|" titles "|"
}
function link(d) { return cell("[" fact[d, "device"] "](" up file[d] ")") }
function at(d, row, column) { return (d, row, column) in table ? table[d, row, column] : "" }
function micros(d, row) { return cell(at(d, row, "us"), " µs") }
function roof(d, row) { return 100 * at(d, row, "GB/s") / at(d, row, "roof%") }
function bytes(d, row) { return at(d, row, "us") * at(d, row, "GB/s") }
function state_of_cache(row) { return match(row, /_(warm|cold)\//) ? substr(row, RSTART) : "" }
# Returns the roof of a rotation divided by the median roof of all that move alike bytes, 1 / 1.5 to
# 1.5 of its own, with a cache in the same state.
function over_alike(d, row,   r, other, alike, n, i) {
    for (r = 1; r <= rows[d, "rotation"]; r++) {
        other = names[d, "rotation", r]
        if (!(at(d, other, "roof%") > 0) || state_of_cache(other) != state_of_cache(row) ||
            bytes(d, other) > 1.5 * bytes(d, row) || bytes(d, row) > 1.5 * bytes(d, other)) continue
        for (i = ++n; i > 1 && alike[i - 1] > roof(d, other); i--) alike[i] = alike[i - 1]
        alike[i] = roof(d, other)
    }
    return n ? 2 * roof(d, row) / (alike[int((n + 1) / 2)] + alike[int(n / 2) + 1]) : 1
}
# Returns whether another clock or other work may have changed the roof.
function is_off(d, row,   over) {
    over = over_alike(d, row)
    return over < 0.85 || over > 1.15
}
function share(d, row) {
    return cell(at(d, row, "roof%"), is_off(d, row) ? " % ?" : " %")
}
function times(d, row, column,   factor) {
    factor = at(d, row, column)
    return factor == "" || factor == "-" || factor >= 1 ? cell(factor, " x") : \
        cell("**" factor " x**")
}
function rivals(d, row) {
    return times(d, row, "ggml") times(d, row, "ggml_along_x") times(d, row, "onnxruntime") \
        times(d, row, "ncnn")
}
function word(d,   text) { # a word for the verdict
    text = fact[d, "verdict"]
    sub(/:.*/, "", text)
    return cell(text)
}
function passed(d,   text, counts) { # the number of passed checks, of all that ran
    text = fact[d, "verdict"]
    sub(/^[^:]*: /, "", text)
    split(text, counts, " ")
    return cell(text == "" ? "" : counts[1] " of " counts[1] + counts[3] + counts[5])
}
function write_devices(   d) {
    head(" device | driver | checks passed | verdict | checked | timed ")
    for (d = 1; d <= devices; d++)
        if ((d, "device") in fact)
            print "|" link(d) cell(fact[d, "driver"]) passed(d) word(d) cell(fact[d, "checked"]) \
                cell(fact[d, "timed"])
}
function write_front(   d, row, far) { # one line for each GPU
    row = "prefill_llama3_8b/f16"
    far = "long_llama3_8b/f16"
    for (d = 1; d <= devices; d++)
        if (fact[d, "type"] != "cpu" && at(d, row, "us") != "")
            print "  * " fact[d, "device"] ": " at(d, row, "us") " µs for 4096 tokens, " \
                at(d, row, "roof%") " %" (at(d, far, "roof%") == "" ? "" : \
                "; for 131 072 tokens " at(d, far, "roof%") " %")
}
function write_roofs(   d, r, row) { # a line for each roof that is off
    for (d = 1; d <= devices; d++)
        for (r = 1; r <= rows[d, "rotation"]; r++)
            if (is_off(d, row = names[d, "rotation", r]))
                printf "%s: %s: its roof is %.0f %% of the median of rows with alike bytes\n", \
                    fact[d, "device"], row, 100 * over_alike(d, row)
}
function write_rotation(   d, r, row) {
    head(" device | row | time | GB/s | of the roof | over ggml's way | over that along x" \
        " | over ONNX Runtime's | over ncnn's | over two dispatches | over the processor ")
    for (d = 1; d <= devices; d++)
        for (r = 1; r <= rows[d, "rotation"]; r++) {
            row = names[d, "rotation", r]
            print "|" cell(fact[d, "device"]) cell(row) micros(d, row) cell(at(d, row, "GB/s")) \
                share(d, row) rivals(d, row) times(d, row, "unfused") times(d, row, "cpu")
        }
}
# Prints the head of a table with a column for each device. Sets `union` to the rows of all devices,
# and `seen` to a device that has the row.
function head_of_devices(section, titles, union, seen,   d, r, row) {
    for (d = 1; d <= devices; d++) {
        if (rows[d, section]) titles = titles "| " fact[d, "device"] " "
        for (r = 1; r <= rows[d, section]; r++) {
            row = names[d, section, r]
            if (!(row in seen)) union[++union[0]] = row
            seen[row] = d
        }
    }
    head(titles)
}
function write_ops(   d, r, row, seen, union) {
    head_of_devices("ops", " row | passes | their bytes ", union, seen)
    for (r = 1; r <= union[0]; r++) {
        row = union[r]
        if (at(seen[row], row, "passes") == "-") continue # one call alone
        printf "|%s%s%s", cell(row), cell(at(seen[row], row, "passes")), \
            times(seen[row], row, "bytes")
        for (d = 1; d <= devices; d++)
            if (rows[d, "ops"]) printf "%s", times(d, row, "over_passes")
        print ""
    }
}
function write_create(   d, r, row, seen, union) {
    head_of_devices("host", " kernel ", union, seen)
    for (r = 1; r <= union[0]; r++) {
        row = union[r]
        printf "|%s", cell("`" row "`")
        for (d = 1; d <= devices; d++)
            if (rows[d, "host"]) printf "%s", cell(at(d, row, "cold_ms"), " ms")
        print ""
    }
}
# Prints the counts of the first chip of each driver, before and now.
function write_compilers(   c, changed, count, d, driver, last, r, shown, titles, value) {
    for (d = 1; d < devices && !rows[d, "compilers"]; d++) {}
    titles = " kernel "
    for (c = 2; c in chips; c++) {
        driver = chips[c]
        sub(/_.*/, "", driver)
        if (driver != last) titles = titles "| " (shown[++count] = chips[c]) " "
        last = driver
    }
    gsub("_", " ", titles)
    head(titles)
    for (r = 1; r <= rows[d, "compilers"]; r++) {
        printf "|%s", cell(names[d, "compilers", r])
        for (c = 1; c <= count; c++) {
            split(at(d, names[d, "compilers", r], shown[c]), value, ">")
            changed = value[1] != "" && value[1] != value[2]
            printf "%s", cell((changed ? value[1] " → " : "") value[2])
        }
        print ""
    }
}

FNR == 1 {
    section = FILENAME ~ /\.txt$/ ? "facts" : "page"
    if (section == "facts") file[++devices] = FILENAME
}
section == "page" {
    if (/^$/) inside = 0
    if (!inside) print
    if (!/^ *<!-- table /) next
    inside = 1
    if ($3 == "devices:") write_devices()
    else if ($3 == "front:") write_front()
    else if ($3 == "roofs:") write_roofs()
    else if ($3 == "rotation:") write_rotation()
    else if ($3 == "ops:") write_ops()
    else if ($3 == "create:") write_create()
    else if ($3 == "compilers:") write_compilers()
    else {
        print "pages.awk: " FILENAME ": no table is called " $3 >"/dev/stderr"
        exit 1
    }
    next
}
/^$/ { section = ""; next }
section == "facts" {
    key = $1
    sub(/^[^ ]+ +/, "")
    fact[devices, key] = $0
    next
}
section == "" { # the head of a table
    section = $1
    split($0, columns, " ")
    if (section == "compilers") split($0, chips, " ")
    next
}
section != "checks" {
    names[devices, section, ++rows[devices, section]] = $1
    for (i = 2; i <= NF; i++) table[devices, $1, columns[i]] = $i
}
