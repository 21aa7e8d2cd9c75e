# SPDX-License-Identifier: MIT
# awk -v out=FOLDER -f summary.awk [commit=COMMIT] FILE...: writes FOLDER/NAME.txt for each device
# and driver in the files, at most 80 lines after `./dev bench` and `./dev conform`, and prints the
# names of the written files. FILEs are figures of vkrope-bench with medians, and reports of
# vkrope-conformance. Both have one value on a line. Reports name no commit; COMMIT is the commit of
# the reports after it. bench/README.md explains the columns.
function value(line) {
    sub(/^[^:]*: "?/, "", line)
    sub(/"?,?$/, "", line)
    gsub(/\\"/, "\"", line)
    return line
}
function figure(x) { return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.2f", x) }
function optional(key) { return key in counter ? figure(counter[key]) : "-" }
function device_of(name, driver,   key) { # the index of the device
    key = name SUBSEP driver
    if (!(key in numbers)) {
        numbers[key] = ++devices
        names[devices] = name
        drivers[devices] = driver
    }
    return numbers[key]
}
# Adds a counter to the aggregate or repetition that began last.
function keep_row(   part, row, d) {
    if (!median) return
    d = device_of(name, driver)
    timed[d] = day (timed_commit == "" ? "" : ", " timed_commit)
    split(run_name, part, "/")
    if (part[1] == "rope" && (part[5] == "out_of_place" || part[2] ~ /^decode|_(warm|cold)$/) &&
        (part[4] == "factored_texture" && (part[2] == "prefill_llama3_8b" || part[3] == "f16") ||
        part[4] == "computed" && part[3] == "f16")) {
        row = part[2] "/" part[3] (part[4] == "computed" ? "/computed" : "")
        order[d, ++rotations[d]] = row
        counter_of[d, row] = sprintf("%9s %7s %5.0f", figure(counter["real_time"] / 1e3), \
            figure(counter["bytes_per_second"] / 1e9), 100 * counter["roof"])
    } else if (part[1] == "rival" || part[1] == "cpu") {
        row = part[1] == "cpu" ? part[2] "/" part[3] : part[3] "/" part[4]
        rival[d, row, part[1] == "cpu" ? "cpu" : part[2]] = figure(counter["vkrope_speedup"])
    } else if (part[1] == "layer" || part[1] == "ops" && part[3] == "f16" ||
        part[1] == "cache" && part[3] ~ /^(q8_0|q4_0|e4m3fn)$/) {
        with_ops[d] = with_ops[d] sprintf("%-34s %9s %7s %5.0f %6s %5s %10s %8s %4s %5s\n", \
            part[1] "/" part[2] "/" part[3], figure(counter["real_time"] / 1e3), \
            figure(counter["bytes_per_second"] / 1e9), 100 * counter["roof"], \
            "passes" in counter ? counter["passes"] : "-", optional("bytes_of_passes"), \
            optional("passes_over_fused"), \
            optional("products_over_fused"), optional("ggml_over_fused"), \
            optional("fused_over_plain"))
    } else if (part[1] == "host" && part[2] ~ /^(create_cold|create_warm|record_of)$/) {
        if (!((d, part[3]) in kind_seen)) kinds[d, ++kind_count[d]] = part[3]
        kind_seen[d, part[3]]
        host[d, part[3], part[2]] = figure(counter["real_time"] / \
            (part[2] == "record_of" ? 1e3 : 1e6))
    } else if (part[2] ~ /^step_/)
        step[d, part[2]] = figure(counter["real_time"] / 1e3)
    else if (part[2] == "fill_factored_131072")
        filling[d] = figure(counter["real_time"] / 1e6)
}
function keep_check(   key) {
    if (tools || status == "computed") return
    key = here SUBSEP group
    if (!(key in passed)) groups[here, ++group_count[here]] = group
    passed[key] += status == "pass"
    unsupported[key] += status == "unsupported"
    failed[key] += status != "pass" && status != "unsupported"
    if (error != "null" && (!(key in worst) || error + 0 > worst[key])) worst[key] = error + 0
}

FNR == 1 { kind = ""; median = 0; timed_commit = "" }
/^ *"context":/ { kind = "figures" }
/^  "format": "vkrope-report\/2"/ { kind = "report" }

kind == "figures" && /^ *"date":/ { day = substr(value($0), 1, 10) }
kind == "figures" && /^ *"device":/ { name = value($0) }
kind == "figures" && /^ *"driver":/ { driver = value($0) }
kind == "figures" && /^ *"commit":/ { timed_commit = value($0) }
kind == "figures" && /^ *"run_name":/ {
    run_name = value($0)
    sub(/\/manual_time$/, "", run_name)
    median = 0
    split("", counter)
}
kind == "figures" && /^ *"aggregate_name":/ { median = value($0) == "median" }
kind == "figures" && /^ *"[a-z_]+": [-+0-9.e]+,?$/ {
    key = $1
    gsub(/[":]/, "", key)
    counter[key] = value($0) + 0
}
kind == "figures" && /^ *}/ { keep_row(); median = 0 }

# The indentation of a line determines the object that contains its value. A run with a tool that
# alters the device, such as the validation layer, does not count for the device.
kind == "report" && /^  "date":/ { day = value($0) }
kind == "report" && /^  "level":/ { level = value($0) }
kind == "report" && /^      "name":/ { name = value($0) }
kind == "report" && /^      "type":/ { type = value($0) }
kind == "report" && /^      "driver":/ { driver = value($0) }
kind == "report" && /^      "tools":/ {
    tools = !/\[\]/
    here = tools ? 0 : device_of(name, driver)
    types[here] = type
    checked[here] = day (commit == "" ? "" : ", " commit) ", level " level
}
kind == "report" && /^      "verdict":/ { verdict[here] = value($0) }
kind == "report" && /^      "verdict_reason":/ { reason[here] = value($0) }
kind == "report" && /^          "group":/ { group = value($0) }
kind == "report" && /^          "status":/ { status = value($0) }
kind == "report" && /^          "max_u":/ { error = value($0) }
kind == "report" && /^        }/ { keep_check() }

function line(key, text) { if (text != "") printf "%-9s %s\n", key, text >file }
# Returns a name in lower case with each word once.
function file_of(d,   text, words, count, i, seen, named) {
    text = tolower(names[d] " " drivers[d])
    gsub(/[^a-z0-9.]+/, " ", text)
    count = split(text, words, " ")
    for (i = 1; i <= count; i++) {
        if (words[i] in seen) continue
        seen[words[i]]
        named = named (named == "" ? "" : "_") words[i]
    }
    return named ".txt"
}
END {
    for (d = 1; d <= devices; d++) {
        file = out "/" file_of(d)
        print file
        line("device", names[d])
        line("driver", drivers[d])
        line("type", types[d])
        line("checked", checked[d])
        if (checked[d] != "") {
            good = bad = no = 0
            for (g = 1; g <= group_count[d]; g++) {
                good += passed[d, groups[d, g]]
                bad += failed[d, groups[d, g]]
                no += unsupported[d, groups[d, g]]
            }
            line("verdict", sprintf("%s: %d passed, %d failed, %d unsupported%s", verdict[d], \
                good, bad, no, reason[d] == "" ? "" : "; " reason[d]))
        }
        line("timed", timed[d])
        if (d in filling) line("table", filling[d] " ms to fill one of 131 072 positions")
        if ((d, "step_recorded") in step && (d, "step_replayed") in step)
            line("step", step[d, "step_recorded"] \
                " us of the host to record and submit 32 layers, " \
                step[d, "step_replayed"] " us to submit them again")
        if (group_count[d])
            printf "\n%-34s %9s %7s %12s %7s\n", "checks", "passed", "failed", "unsupported", \
                "error_u" >file
        for (g = 1; g <= group_count[d]; g++) {
            key = d SUBSEP groups[d, g]
            printf "%-34s %9d %7d %12d %7s\n", groups[d, g], passed[key], failed[key], \
                unsupported[key], key in worst ? sprintf("%.2f", worst[key]) : "-" >file
        }
        if (rotations[d])
            printf "\n%-34s %9s %7s %5s %5s %12s %11s %5s %7s %5s\n", "rotation", "us", "GB/s", \
                "roof%", "ggml", "ggml_along_x", "onnxruntime", "ncnn", "unfused", "cpu" >file
        for (r = 1; r <= rotations[d]; r++) {
            row = order[d, r]
            printf "%-34s %s", row, counter_of[d, row] >file
            count = split("ggml ggml_along_x onnxruntime ncnn unfused cpu", ways, " ")
            split("5 12 11 5 7 5", width, " ")
            for (w = 1; w <= count; w++)
                printf " %" width[w] "s", \
                    (d, row, ways[w]) in rival ? rival[d, row, ways[w]] : "-" >file
            printf "\n" >file
        }
        if (with_ops[d] != "")
            printf "\n%-34s %9s %7s %5s %6s %5s %10s %8s %4s %5s\n%s", "ops", "us", "GB/s", \
                "roof%", "passes", "bytes", "over_passes", "products", "ggml", "plain", \
                with_ops[d] >file
        if (kind_count[d])
            printf "\n%-34s %9s %7s %9s\n", "host", "cold_ms", "warm_ms", "record_us" >file
        for (k = 1; k <= kind_count[d]; k++) {
            printf "%-34s", kinds[d, k] >file
            printf " %9s", host[d, kinds[d, k], "create_cold"] >file
            printf " %7s", host[d, kinds[d, k], "create_warm"] >file
            recorded = host[d, kinds[d, k], "record_of"]
            printf " %9s\n", recorded == "" ? "-" : recorded >file
        }
        close(file)
    }
    if (!devices) {
        print "summary.awk: no medians of vkrope-bench and no report of vkrope-conformance" \
            >"/dev/stderr"
        exit 1
    }
}
