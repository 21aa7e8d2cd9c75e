# SPDX-License-Identifier: MIT
# awk -f table.awk RESULT.json...: a Markdown table of the default source of angles, from the medians that vkrope-bench left. It
# reads one value a line, which is how Google Benchmark writes its JSON.
function value(line) {
    sub(/^[^:]*: "?/, "", line)
    sub(/"?,?$/, "", line)
    return line
}
function keep(   part, key) {
    if (!median) return
    split(name, part, "/")
    key = device SUBSEP part[2] "/" part[3]
    if (part[1] == "rope" && part[4] == "factored_texture" && (part[5] == "out_of_place" || part[2] ~ /^decode/)) {
        if (!(key in rate)) order[++rows] = key
        rate[key] = sprintf("%.1f", bytes / 1e9)
        share[key] = sprintf("%.0f %%", 100 * roof)
    } else if (part[1] == "rival") {
        key = device SUBSEP part[3] "/" part[4]
        faster[key, part[2]] = sprintf("%.1f x", speedup)
    }
}
FNR == 1 { device = "?"; median = 0 }
/^ *"device":/ { device = value($0) }
/^ *"run_name":/ { name = value($0); median = 0; bytes = roof = speedup = 0 }
/^ *"aggregate_name":/ { median = value($0) == "median" }
/^ *"bytes_per_second":/ { bytes = value($0) }
/^ *"roof":/ { roof = value($0) }
/^ *"vkrope_speedup":/ { speedup = value($0) }
/^ *}/ { keep(); median = 0 }
END {
    print "| device | row | GB/s | of the roof | over ggml's way | over ONNX Runtime's | over ncnn's | over two dispatches |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++) {
        split(order[i], at, SUBSEP)
        printf "| %s | %s | %s | %s |", at[1], at[2], rate[order[i]], share[order[i]]
        split("ggml onnxruntime ncnn unfused", who, " ")
        for (w = 1; w <= 4; w++) printf " %s |", faster[order[i], who[w]]
        printf "\n"
    }
}
