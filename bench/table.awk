# SPDX-License-Identifier: MIT
# awk -f table.awk RESULT.json...: Markdown tables, of what was measured on, of the default source
# of angles against the roof and the rivals, and, if there are such rows, of one dispatch from the
# projection to the cache (of f16, q8_0, q4_0 or e4m3fn) against the passes that it replaces; from
# the medians that vkrope-bench left. It reads one value a line, which is how Google Benchmark
# writes its JSON: README.md beside this file says which.
function value(line) {
    sub(/^[^:]*: "?/, "", line)
    sub(/"?,?$/, "", line)
    gsub(/\\"/, "\"", line)
    gsub(/\|/, "\\|", line)
    return line
}
function times(factor) { # in bold: a loss
    return sprintf(factor < 1 ? "**%.2f x**" : factor < 10 ? "%.2f x" : "%.0f x", factor)
}
function keep(   part, row, who) {
    if (!median) return
    split(name, part, "/")
    if (part[1] == "rope" && part[4] == "factored_texture" &&
        (part[5] == "out_of_place" || part[2] ~ /^decode/)) {
        row = run SUBSEP part[2] "/" part[3]
        if (!(row in rate)) order[++rows] = row
        rate[row] = sprintf("%.1f", bytes / 1e9)
        share[row] = sprintf("%.0f %%", 100 * roof)
    } else if (part[1] == "finish" && part[3] == "f16" ||
        part[1] == "cache" && part[3] ~ /^(q8_0|q4_0|e4m3fn)$/) {
        row = run SUBSEP name
        sub(/\/manual_time$/, "", row)
        finishes[++finish_rows] = row
        finish[row] = sprintf("%.1f | %.0f %% | %d | %s | %.2f x | %s | %s | %.2f x", \
            bytes / 1e9, 100 * roof, counter["passes"], times(counter["passes_over_fused"]), \
            counter["bytes_of_passes"], \
            "products_over_fused" in counter ? times(counter["products_over_fused"]) : "", \
            "ggml_over_fused" in counter ? times(counter["ggml_over_fused"]) : "", \
            counter["fused_over_plain"])
    } else if (part[1] == "rival" || part[1] == "cpu") {
        who = part[1] == "cpu" ? "cpu" : part[2]
        row = part[1] == "cpu" ? part[2] "/" part[3] : part[3] "/" part[4]
        faster[run, row, who] = times(speedup)
    }
}
function named(row,   at) { # the device, and the driver where another has its name
    split(row, at, SUBSEP)
    return device[at[1]] (runs_on[device[at[1]]] > 1 ? ", " driver[at[1]] : "") " | " at[2]
}
FNR == 1 { run++; median = 0 }
/^ *"date":/ { date[run] = substr(value($0), 1, 10) }
/^ *"device":/ { device[run] = value($0); runs_on[device[run]]++ }
/^ *"driver":/ { driver[run] = value($0) }
/^ *"commit":/ { commit[run] = value($0) }
/^ *"run_name":/ { name = value($0); median = 0; bytes = roof = speedup = 0; split("", counter) }
/^ *"aggregate_name":/ { median = value($0) == "median" }
/^ *"bytes_per_second":/ { bytes = value($0) + 0 }
/^ *"roof":/ { roof = value($0) + 0 }
/^ *"vkrope_speedup":/ { speedup = value($0) + 0 }
/^ *"(passes|bytes_of_passes|[a-z]+_over_(fused|plain))":/ {
    key = $0
    gsub(/^ *"|":.*$/, "", key)
    counter[key] = value($0) + 0
}
/^ *}/ { keep(); median = 0 }
END {
    if (!rows) {
        print "table.awk: no medians of a rotation: this is not output of vkrope-bench" \
            " with repetitions" >"/dev/stderr"
        exit 1
    }
    print "| device | driver | date | commit |"
    print "|---|---|---|---|"
    for (r = 1; r <= run; r++)
        printf "| %s | %s | %s | %s |\n", device[r], driver[r], date[r], commit[r]
    print ""
    print "| device | row | GB/s | of the roof | over ggml's way | over that along x " \
        "| over ONNX Runtime's | over ncnn's | over two dispatches | over the processor |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++) {
        printf "| %s | %s | %s |", named(order[i]), rate[order[i]], share[order[i]]
        split("ggml ggml_along_x onnxruntime ncnn unfused cpu", ways, " ")
        for (w = 1; w <= 6; w++) printf " %s |", faster[order[i], ways[w]]
        printf "\n"
    }
    if (!finish_rows) exit
    print ""
    print "| device | row | GB/s | of the roof | passes | over the passes | their bytes " \
        "| with matrix products | over ggml's way | time over the plain rotation's |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= finish_rows; i++)
        printf "| %s | %s |\n", named(finishes[i]), finish[finishes[i]]
}
