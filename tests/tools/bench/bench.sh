#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope-bench` on lavapipe, from outside: names and counters of the rows, the context, the page,
# what it refuses. Arguments: the command, the source tree, the driver manifests of lavapipe and
# of SwiftShader, which may be empty, and a folder that is left with the page and its figures, for
# page.sh.
# check.sh is found at run time, and sets the variables; the expressions are awk's.
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/../command/check.sh"
bench=$vkrope
source=$models
kept=$5
rm -rf "$kept"

use_driver /nonexistent/no_driver.json
expect 2 'not a valid option' "$bench" --benchmark_fliter=x
expect 3 '' "$bench" --benchmark_list_tests
# A file that cannot be written is named before a device is looked for, and no device is here. The
# last flag counts.
expect 5 "--html: '/nonexistent/folder/page.html' cannot be written: there is no folder" "$bench" \
    --html /nonexistent/folder/page.html
no_folder="--benchmark_out: '/nonexistent/folder/run.json' cannot be written: there is no folder '/nonexistent/folder'"
expect 5 "$no_folder" "$bench" --benchmark_out=run.json --benchmark_out=/nonexistent/folder/run.json
expect 5 "$no_folder" env BENCHMARK_OUT=/nonexistent/folder/run.json "$bench"
expect 5 "--benchmark_out: '.' cannot be written: Is a directory" "$bench" --benchmark_out=.
refuse 3 '' "$bench" --benchmark_out=/nonexistent/folder/run.json --benchmark_out=run.json
expect 3 '' "$bench" --benchmark_out=/dev/null
works "$bench" --help
holds 'the help names its options' grep -q -e '--html' "$logs/out"
need_lavapipe
VKROPE_DEVICE=llvmpipe
export VKROPE_DEVICE
expect 3 '' "$bench" --device 'no such device' --benchmark_list_tests

works "$bench" --benchmark_list_tests
cp "$logs/out" names
# has NAME...: rows of these names are there.
has() { for name; do holds "there is a row $name" grep -qx "$name/manual_time" names; done; }
for shape in prefill_llama3_8b prefill_llama3_70b prefill_qwen3_30b long_llama3_8b mla_deepseek \
    partial_neox_20b mrope_qwen2_vl \
    vision_2d gptj_interleaved; do
    for dtype in f32 f16 bf16; do
        for angles in factored_texture computed direct_texture direct_buffer; do
            has "rope/$shape/$dtype/$angles/in_place" "rope/$shape/$dtype/$angles/out_of_place"
        done
        has "copy/$shape/$dtype" "copy_buffer/$shape/$dtype"
    done
done
for shape in decode_b1 decode_b64 decode_b256; do has "rope/$shape/bf16/computed/in_place" \
    "copy/$shape/f16" "host/record/$shape"; done
for who in ggml ggml_along_x onnxruntime ncnn unfused; do
    has "rival/$who/prefill_llama3_8b/f16"; done
for shape in decode_b1 decode_b64 decode_b256; do has "rival/unfused/$shape/f16"; done
has cpu/prefill_llama3_8b/f16 empty/decode_b64/f16 growth/tokens_of_one_head/1048576 \
    growth/tokens/1 growth/tokens/4096 growth/heads/128 host/fill_factored_131072
for kind in q q_and_k scatter gpu_mapping; do has "host/create_cold/$kind" \
    "host/create_warm/$kind" "host/record_of/$kind"; done

# A row of every kind, each checked by the tool itself. But for ggml's: Debian 12's lavapipe takes
# seconds for one.
who='(ggml_along_x|onnxruntime|ncnn|unfused)'
rows='rope/(decode_b1|decode_b64|vision_2d)/f16/[a-z_]*/in_place|rope/(mla_deepseek|mrope_qwen2_vl)/bf16/factored_texture'
rows="$rows|(copy|copy_buffer)/decode_b64/f32|rival/$who/prefill_llama3_8b/f32|rival/unfused/decode_b1/f16|cpu/prefill_llama3_8b/f16|growth/tokens/(1|4)/"
rows="$rows|empty/decode_b1/f16|host/(record/decode_b1/|record_of/gpu|create_(cold|warm)/(q/|scatter)|fill)"
works "$bench" --benchmark_filter="^($rows)" --benchmark_min_time=0.001 --benchmark_repetitions=1 \
    --commit abc123 \
    --benchmark_out=run.json --html page.html
cp "$logs/out" table
mkdir -p "$kept" && cp page.html run.json "$kept" || exit 1
holds 'no row failed' sh -c '! grep -q error_occurred run.json'
holds 'the device, the commit and the date are in the context' sh -c \
    'grep -q "\"device\": \"llvmpipe" run.json && grep -q "\"commit\": \"abc123\"" run.json && grep -q "\"date\":" run.json'
# counts NAME COUNTER...: the row has numbers above 0 by these names.
counts() {
    row=$1
    shift
    sed -n '/"run_name": "'"$(echo "$row" | sed 's|/|\\/|g')"'\/manual_time"/,/}/p' run.json >row
    for counter; do
        holds "$row has $counter" awk -v name="\"$counter\":" \
            '$1 == name && $2 + 0 > 0 { found = 1 } END { exit !found }' row
    done
}
counts rope/decode_b64/f16/computed/in_place bytes_per_second roof tokens_per_second host_ns \
    checked error_u
counts rope/vision_2d/f16/direct_texture/in_place bytes_per_second roof tokens_per_second host_ns
counts rival/ggml_along_x/prefill_llama3_8b/f32 bytes_per_second roof vkrope_speedup error_u
counts rival/unfused/prefill_llama3_8b/f32 roof vkrope_speedup
counts rival/unfused/decode_b1/f16 bytes_per_second roof vkrope_speedup checked
counts copy/decode_b64/f32 bytes_per_second
counts copy_buffer/decode_b64/f32 bytes_per_second roof
counts cpu/prefill_llama3_8b/f16 bytes_per_second vkrope_speedup
counts empty/decode_b1/f16 vkrope_over_empty
counts host/create_warm/scatter without_driver_ns processor_ns
counts host/create_cold/q real_time processor_ns
counts host/record_of/gpu_mapping real_time
counts host/record/decode_b1 real_time
holds 'the table has a line a row' [ "$(grep -c manual_time table)" = \
    "$(grep -c '"run_name"' run.json)" ]

holds 'the page ends' sh -c 'tail -n 1 page.html | grep -qx "</html>"'
holds 'no script, no link' sh -c '! grep -qiE "<script|href|url\(|src=" page.html'
holds 'rows are in the page' grep -q 'decode_b64/f16/computed/in_place' page.html
if command -v xmllint >/dev/null; then holds 'the page is well-formed' xmllint --noout page.html; fi

# The Markdown table, of medians, on two devices of one name: this run, and the same with another
# driver and rivals that win.
rows='rope/(prefill_llama3_8b/(f32|f16|bf16)/factored_texture/out_of_place|decode_b1/f16/factored_texture)'
rows="$rows|finish/decode_qwen3_8b/f16|cache/decode_llama3_1_8b/q8_0"
works "$bench" --benchmark_filter="$rows|rival/$who/prefill_llama3_8b/f32" \
    --benchmark_min_time=0.001 --benchmark_repetitions=2 \
    --commit abc123 --benchmark_out=medians.json
sed 's/"driver": ".*"/"driver": "another | one"/; s/"vkrope_speedup": .*/"vkrope_speedup": 5.0e-01/
    s/"\([a-z]*_over_fused\)": [^,]*/"\1": 5.0e-01/' medians.json >other.json
works awk -f "$source/bench/table.awk" medians.json other.json
cp "$logs/out" table
# Rows of one table have as many cells as its head; a rule is under each head; a line of its own
# is between two tables.
holds 'it is Markdown' awk -F '|' '/^$/ { lines = lines line " "; line = 0; next }
    { gsub(/\\\|/, ""); line++ }
    !/^\|.*\|$/ || (line > 1 && NF != cells) || (line == 2) != /^\|(---\|)+$/ { exit wrong = 1 }
    line == 1 { cells = NF }
    END { exit wrong || lines line != "4 10 6" }' table
date=$(date +%Y-%m-%d)
holds 'it says device, driver, date and commit' grep -qE \
    "^\| llvmpipe [^|]* \| llvmpipe Mesa [^|]* \| $date \| abc123 \|$" table
holds 'a | of a name is not a cell' grep -qF '| another \| one |' table
for row in prefill_llama3_8b/f32 prefill_llama3_8b/f16 prefill_llama3_8b/bf16 decode_b1/f16; do
    holds "two lines are of $row" \
        [ "$(grep -E "^\| llvmpipe .*, (llvmpipe Mesa|another) " table |
            grep -cE "\| $row \| [0-9.]+ \| [0-9]+ % \|")" = 2 ]
done
# four FIGURE: lines of f32 with it for each of these four rivals.
four() { grep -cE "prefill_llama3_8b/f32 \|[^|]*\|[^|]*\| +\|( $1 \|){4} *[^|]*\|$" table; }
holds 'passes of an unquantised cache' [ "$(grep -cE \
    '\| finish/decode_qwen3_8b/f16 \|[^|]*\| [0-9]+ % \| 4 \|[^|]* x[*]* \|[^|]* x \|  \|[^|]* x[*]* \|[^|]* x \|$' \
    table)" = 2 ]
holds 'passes of a quantised one' [ "$(grep -cE \
    '\| cache/decode_llama3_1_8b/q8_0 \|[^|]*\| [0-9]+ % \| 6 \|' table)" = 2 ]
holds 'their losses' [ "$(grep -cE '/q8_0 .* 6 \| \*\*0\.50 x\*\* \|[^|]*\| \*\*0\.50 x\*\* \| \*\*0\.50 x\*\* \|' \
    table)" = 1 ]
holds 'rivals are beside it' [ "$(four '\**[0-9]+\.[0-9]{2} x\**')" = 2 ]
holds 'losses are in bold' [ "$(four '\*\*0\.50 x\*\*')" = 1 ]
checks=$((checks + 1))
awk -f "$source/bench/table.awk" run.json >"$logs/out" 2>&1 &&
    wrong 'results without medians made a table'

# The tables of the guide are made from the results, and so are the rows of the front page.
guide=$source/host/guide/performance.md
awk -f "$source/bench/table.awk" "$source"/bench/results/*.json >tables ||
    wrong 'bench/results makes no table'
checks=$((checks + 1))
while read -r line; do grep -qxF "$line" "$guide" ||
    wrong "performance.md lacks: $line"; done <tables
checks=$((checks + 1))
grep -F '| prefill_llama3_8b/' "$source/README.md" >front || wrong 'README.md has no figures'
while read -r line; do grep -qxF "$line" tables ||
    wrong "README.md has figures of its own: $line"; done <front

# And what it says of instructions are the counts of the test beside this one.
counts=$source/tests/tools/bench/record_instructions.txt
count() { awk -v name="$1" '$1 == "x86_64-GNU-12" && $2 == name { print $3 }' "$counts"; }
for case in q: one_dispatch/q_and_k: scatter:; do
    record=${case%%[/:]*} && create=${case#*/} && create=${create%:}
    processors=${record}_cpu_mapping && [ "$record" != one_dispatch ] || processors=cpu_mapping
    counted="$(count "push_descriptors/$record"), $(count "push_descriptors/$processors")"
    holds "performance.md has what record() takes: $record" grep -qF "| $counted |" "$guide"
    millions=$(printf '%s %s\n' "$(count "create/$create")" "$(count "create/$processors")" |
        awk '{ printf "| %.1f M, %.1f M |", $1 / 1e6, $2 / 1e6 }')
    holds "performance.md has what create() takes: $create" grep -qF "$millions" "$guide"
done

# Medians of repetitions.
works "$bench" --benchmark_filter=host/fill --benchmark_min_time=0.001
holds 'one line, the median of several' [ "$(grep -c 'host/fill' "$logs/out")" = 1 ]
holds 'which says so' grep -q 'host/fill_factored_131072/manual_time_median' "$logs/out"
works "$bench" --benchmark_filter=host/fill --benchmark_min_time=0.001 --benchmark_format=json
holds 'other formats are as Google Benchmark has them' grep -q '"aggregate_name": "median"' \
    "$logs/out"

if [ -n "$swiftshader" ]; then
    use_driver "$swiftshader"
    VKROPE_DEVICE=SwiftShader
    works "$bench" --benchmark_filter=rival/ggml/prefill_llama3_8b/f32 --benchmark_min_time=0.001 \
        --benchmark_repetitions=1 \
        --benchmark_out=run.json
    counts rival/ggml/prefill_llama3_8b/f32 bytes_per_second roof vkrope_speedup error_u
else
    echo "the row rival/ggml is skipped: VKROPE_SWIFTSHADER_ICD is empty"
fi
finish
