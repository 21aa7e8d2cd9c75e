#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope-bench` on lavapipe from outside: names and counters of the rows, the context,
# errors, summaries, and the tables of pages. Arguments: the command, the source tree, the driver
# manifest of lavapipe, which may be empty, and vkrope-conformance.
# check.sh is found at run time and sets the variables; awk evaluates the expressions.
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/../command/check.sh"
bench=$vkrope
source=$models
conformance=$4

use_driver /nonexistent/no_driver.json
expect 2 'not a valid option' "$bench" --benchmark_fliter=x
expect 3 '' "$bench" --benchmark_list_tests
# A file that cannot be written is reported before a device is opened: this part has no device. Of
# repeated flags the last counts.
no_folder="--benchmark_out: '/nonexistent/folder/run.json' cannot be written: there is no folder '/nonexistent/folder'"
expect 5 "$no_folder" "$bench" --benchmark_out=run.json --benchmark_out=/nonexistent/folder/run.json
expect 5 "$no_folder" env BENCHMARK_OUT=/nonexistent/folder/run.json "$bench"
expect 5 "--benchmark_out: '.' cannot be written: Is a directory" "$bench" --benchmark_out=.
refuse 3 '' "$bench" --benchmark_out=/nonexistent/folder/run.json --benchmark_out=run.json
expect 3 '' "$bench" --benchmark_out=/dev/null
expect 2 '--benchmark_filter=x has no effect with --tune' "$bench" --tune rope/decode_b1/f16 \
    --benchmark_filter=x
expect 2 '--json requires --tune' "$bench" --json tunings.json
expect 5 "--json: '/nonexistent/folder/tunings.json' cannot be written" "$bench" \
    --tune rope/decode_b1/f16 --json /nonexistent/folder/tunings.json
works "$bench" --help
holds 'the help names its options' grep -q -e '--commit' "$logs/out"
need_lavapipe
VKROPE_DEVICE=llvmpipe
export VKROPE_DEVICE
expect 3 '' "$bench" --device 'no such device' --benchmark_list_tests

works "$bench" --benchmark_list_tests
cp "$logs/out" names
# has NAME...: rows with these names exist.
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
for tokens in 1024 2048 4096; do
    for cache in warm cold; do
        for dtype in f32 f16 bf16; do
            has "rope/prefill_${tokens}_$cache/$dtype/factored_texture/in_place" \
                "copy/prefill_${tokens}_$cache/$dtype" "rival/ggml/prefill_${tokens}_$cache/$dtype"
        done
    done
done
holds 'their rows are in place' sh -c '! grep -qE "(decode|_warm|_cold).*/out_of_place" names'
for who in ggml ggml_along_x onnxruntime ncnn unfused; do
    has "rival/$who/prefill_llama3_8b/f16"; done
for shape in decode_b1 decode_b64 decode_b256; do has "rival/unfused/$shape/f16"; done
has layer/no_rope_exaone4_32b/q8_0 layer/second_llama3_1_8b/q8_0 layer/latent_deepseek_v3/f16 \
    layer/groups_llama3_1_8b/int8 layer/moved_llama3_1_8b/q8_0 cache/decode_qwen3_8b/iq4_nl \
    layer/bound_weights_qwen3_8b/f16
has cpu/prefill_llama3_8b/f16 empty/decode_b64/f16 host/fill_factored_131072 host/step_recorded \
    host/step_replayed
for kind in q q_and_k scatter gpu_mapping; do has "host/create_cold/$kind" \
    "host/create_warm/$kind" "host/record_of/$kind"; done
for kind in norms norms_of_tokens norms_gpu_mapping q8_0 norms_q8_0; do
    has "host/create_cold/$kind" "host/create_warm/$kind"; done

# The tunings of a call: each is checked by the tool itself.
for row in rope rope/decode_b1 rope/decode_b1/f1 rope/nothing/f16 copy/decode_b1/f16 \
    host/record/decode_b1 /; do
    expect 2 "--tune: '$row' is no row that records a kernel" "$bench" --tune $row
done
works "$bench" --tune rope/decode_b1/f16 --json tunings.json --commit abc123
cp "$logs/out" tunings
holds 'the row is named in full' \
    grep -q '^rope/decode_b1/f16/factored_texture/in_place: Llama 3.1 8B' tunings
holds 'several values of each field have figures' awk '
    NF == 7 { for (i = 1; i <= 3; i++) if (!((i, $i) in seen)) { seen[i, $i]; values[i]++ } }
    NF == 7 && !($4 > 0 && $5 > 0 && $6 > 0 && $7 > 0) { wrong = 1 }
    END { exit wrong || values[1] < 9 || values[2] < 7 || values[3] < 7 }' tunings
holds 'the fastest is first' awk '
    NF == 7 && $7 != "speedup" { if (n++ && $7 > last) wrong = 1; last = $7 }
    END { exit wrong || n == 0 }' tunings
holds 'it tells of the mapping' grep -q 'its default mapping has no tuning' tunings
holds 'the last line is advice' sh -c 'tail -n 1 tunings | grep -qE \
    "^(none is 2 % faster than the default|the fastest: info\.mapping = VKROPE_MAPPING_GPU; .*)$"'
holds 'the JSON has the same lines' [ "$(grep -c '"speedup"' tunings.json)" = \
    "$(awk 'NF == 7 && $1 != "lane_heads"' tunings | wc -l)" ]
holds 'and names the row and the commit' [ "$(grep -cE \
    '"(row": "rope/decode_b1/f16/factored_texture/in_place|commit": "abc123)"' tunings.json)" = 2 ]

# A row of every kind, each checked by the tool itself, except ggml's: Debian 12's lavapipe takes
# seconds for one row.
who='(ggml_along_x|onnxruntime|ncnn|unfused)'
rows='rope/(decode_b64|vision_2d)/f16/(computed|direct_texture)/in_place|rope/(mla_deepseek|mrope_qwen2_vl)/bf16/factored_texture/in'
rows="$rows|copy/decode_b64/f32|copy_buffer/vision_2d/f16|rival/unfused/decode_b1/f16"
rows="$rows|rope/prefill_1024_(warm|cold)/f16/factored_texture|copy/prefill_1024_warm/f16"
rows="$rows|rival/ncnn/prefill_1024_(warm|cold)/f32|cpu/prefill_llama3_8b/f16"
rows="$rows|empty/decode_b1/f16|host/(record/decode_b1/|record_of/gpu|create_(cold|warm)/(q/|scatter)|create_cold/norms_q8_0|fill|step)"
works "$bench" --benchmark_filter="^($rows)" --benchmark_min_time=0.001 --benchmark_repetitions=1 \
    --commit abc123 --benchmark_out=run.json
cp "$logs/out" table
holds 'no row failed' sh -c '! grep -q error_occurred run.json'
holds 'the device, the commit and the date are in the context' sh -c \
    'grep -q "\"device\": \"llvmpipe" run.json && grep -q "\"commit\": \"abc123\"" run.json && grep -q "\"date\":" run.json'
# counts NAME COUNTER...: in $run, the row NAME has these counters, each above 0.
run=run.json
counts() {
    row=$1
    shift
    sed -n '/"run_name": "'"$(echo "$row" | sed 's|/|\\/|g')"'\/manual_time"/,/}/p' $run >row
    for counter; do
        holds "$row has $counter" awk -v name="\"$counter\":" \
            '$1 == name && $2 + 0 > 0 { found = 1 } END { exit !found }' row
    done
}
counts rope/decode_b64/f16/computed/in_place bytes_per_second roof roof_bytes_per_second \
    tokens_per_second host_ns checked error_u
for cache in warm cold; do
    counts rope/prefill_1024_$cache/f16/factored_texture/in_place bytes_per_second roof \
        roof_bytes_per_second tokens_per_second host_ns
    counts rival/ncnn/prefill_1024_$cache/f32 bytes_per_second roof vkrope_speedup checked
done
holds 'a row tells how many calls a command buffer has' \
    grep -qE 'unfused/decode_b1/f16/.* [0-9]+ calls$' table
counts rope/vision_2d/f16/direct_texture/in_place bytes_per_second roof tokens_per_second host_ns
counts rival/unfused/decode_b1/f16 bytes_per_second roof vkrope_speedup checked
counts copy/decode_b64/f32 bytes_per_second
counts copy/prefill_1024_warm/f16 bytes_per_second
counts copy_buffer/vision_2d/f16 bytes_per_second roof
counts cpu/prefill_llama3_8b/f16 bytes_per_second vkrope_speedup
counts empty/decode_b1/f16 vkrope_over_empty
counts host/create_warm/scatter without_driver_ns processor_ns
counts host/create_cold/q real_time processor_ns
counts host/create_cold/norms_q8_0 real_time processor_ns
counts host/record_of/gpu_mapping real_time
counts host/record/decode_b1 real_time
for how in recorded replayed; do counts host/step_$how real_time wait_ns; done
holds 'the table has a line a row' [ "$(grep -c manual_time table)" = \
    "$(grep -c '"run_name"' run.json)" ]

# The summaries of two devices with the same name: this run, with a report in which one check fails,
# and the same figures with another driver and with rivals that win.
rows='rope/(prefill_llama3_8b/(f32|f16|bf16)/factored_texture/out_of_place|decode_b1/f16/factored_texture)'
rows="$rows|layer/(latent|groups|moved)|ops/decode_qwen3_8b/f16|cache/decode_llama3_1_8b/q8_0|host/((create|record_of).*/q/|step)"
works "$bench" --benchmark_filter="$rows|rival/$who/prefill_llama3_8b/f32" \
    --benchmark_min_time=0.001 --benchmark_repetitions=2 \
    --commit abc123 --benchmark_out=medians.json
run=medians.json
counts rival/ggml_along_x/prefill_llama3_8b/f32 bytes_per_second roof vkrope_speedup error_u
counts rival/unfused/prefill_llama3_8b/f32 roof vkrope_speedup
sed 's/"driver": ".*"/"driver": "another | one"/; s/"vkrope_speedup": .*/"vkrope_speedup": 5.0e-01/
    s/"\([a-z]*_over_fused\)": [^,]*/"\1": 5.0e-01/' medians.json >other.json
works "$conformance" --filter 'chains/f16_half*,same_bits/f16*' --json passed.json
awk '!seen && sub(/"status": "pass"/, "\"status\": \"fail\"") { seen = 1 } { print }' \
    passed.json >report.json
mkdir -p tree/bench/results tree/host/guide && cp "$source"/bench/pages.* tree/bench || exit 1
works awk -v out=tree/bench/results -f "$source/bench/summary.awk" medians.json other.json \
    commit=def456 report.json
other=$(echo tree/bench/results/llvmpipe_*_another_one.txt)
this=$(ls tree/bench/results/*_mesa_*.txt)
date=$(date +%Y-%m-%d)
holds 'a summary names device, driver, date and commit' [ "$(grep -cE \
    "^(device +llvmpipe .*|driver +llvmpipe Mesa .*|(timed +$date, abc123)|checked +$date, def456, .*)\$" \
    "$this")" = 4 ]
# The number of checks in each group, counted from the report in another way.
of_group() { grep -c "\"group\": \"$1\"" report.json; }
holds 'a failure is of its group' grep -qE \
    "^chained calls +$(($(of_group 'chained calls') - 1)) +1 +0 +-\$" "$this"
holds 'another group has none' grep -qE \
    "^the same bits +$(of_group 'the same bits') +0 +0 +[0-9.]+\$" "$this"
# figure FILE ROW COLUMN: prints a figure of a summary. median ROW KEY: prints a median of the run.
figure() { awk -v row="$2" -v column="$3" '$1 == row { print $column }' "$1"; }
median() {
    awk -v row="\"$1/manual_time\"," -v key="\"$2\":" '$1 == "\"run_name\":" { mine = $2 == row }
        $1 == "\"aggregate_name\":" { middle = $2 ~ /median/ }
        mine && middle && $1 == key { print $2 + 0; exit }' medians.json
}
# same ROW COLUMN NAME KEY SCALE: the summary has SCALE times the run's median, to three digits, or
# to a percent of the roof.
same() {
    holds "$1 has its $4" awk -v figure="$(figure "$this" "$1" "$2")" -v key="$4" \
        -v median="$(median "$3" "$4")" -v scale="$5" 'BEGIN { expected = median * scale
            most = key == "roof" ? 0.501 : 0.03 * expected
            exit !(median > 0 && (figure - expected) ^ 2 < most ^ 2) }'
}
for row in prefill_llama3_8b/f32 prefill_llama3_8b/f16 prefill_llama3_8b/bf16; do
    same $row 2 rope/$row/factored_texture/out_of_place real_time 1e-3
    same $row 4 rope/$row/factored_texture/out_of_place roof 100
done
same decode_b1/f16 2 rope/decode_b1/f16/factored_texture/in_place real_time 1e-3
same prefill_llama3_8b/f32 6 rival/ggml_along_x/prefill_llama3_8b/f32 vkrope_speedup 1
same prefill_llama3_8b/f32 9 rival/unfused/prefill_llama3_8b/f32 vkrope_speedup 1
for row in ops/decode_qwen3_8b/f16 cache/decode_llama3_1_8b/q8_0 layer/moved_llama3_1_8b/q8_0; do
    same $row 5 $row passes 1
    same $row 7 $row passes_over_fused 1
    [ $row != layer/moved_llama3_1_8b/q8_0 ] || continue
    same $row 9 $row ggml_over_fused 1
done
same layer/latent_deepseek_v3/f16 4 layer/latent_deepseek_v3/f16 roof 100
same q 2 host/create_cold/q real_time 1e-6
same q 4 host/record_of/q real_time 1e-3
same step 2 host/step_recorded real_time 1e-3
holds 'what did not run has no figure' [ "$(figure "$this" prefill_llama3_8b/f32 5)" = - ]
checks=$((checks + 1))
awk -v out=. -f "$source/bench/summary.awk" run.json >"$logs/out" 2>&1 &&
    wrong 'figures without medians made a summary'

# The tables of pages come from the summaries, and a page that differs is reported. README.md has a
# line for each GPU and none for software devices.
sed -i 's/^type .*/type      discrete/' "$other"
printf 'mesa 1\n\ncompilers A_1 A_2 B_1\nkernel 9/5>9/5 9/4>8/4 9/4>7/4\n' \
    >tree/bench/results/compilers.txt
for page in README.md host/guide/performance.md; do
    for table in devices front rotation ops create compilers; do
        printf '<!-- table %s: -->\n| of before |\n\nafter\n' $table
    done >tree/$page
done
checks=$((checks + 1))
sh tree/bench/pages.sh --check >"$logs/out" && wrong 'pages without tables are not refused'
works sh tree/bench/pages.sh
works sh tree/bench/pages.sh --check
# Rows of one table have as many cells as the head of the table, and a rule follows each head.
holds 'they are Markdown' awk -F '|' '{ gsub(/\\\|/, "") }
    /^<!--/ { line = 0; next } /^$|^after$/ { rest++; lines = lines line " "; line = 0; next }
    { line++ }
    /^  \* .* µs for 4096 tokens, [0-9]+ %$/ { next }
    !/^\|.*\|$/ || (line > 1 && NF != cells) || (line == 2) != /^\|(---\|)+$/ { exit wrong = 1 }
    line == 1 { cells = NF }
    END { exit wrong || lines != "4 0 1 0 10 0 5 0 3 0 3 0 " || rest != 12 }' tree/README.md
holds 'a | of a name is not a cell' grep -qF '| another \| one |' tree/README.md
holds 'the first chip of each driver has its counts' \
    grep -qxF '| kernel | 9/5 | 9/4 → 7/4 |' tree/README.md
holds 'a loss is bold' [ "$(grep -cE 'b/f32 .* \| *(\| \*\*0\.50 x\*\* ){3}' tree/README.md)" = 1 ]
holds 'a name leads to its summary' grep -qF "(../../${other#tree/})" tree/host/guide/performance.md
sed -i 's/^\(decode_b1.f16 *\)[0-9.]*/\18.25/' "$this"
checks=$((checks + 1))
sh tree/bench/pages.sh --check >"$logs/out" && wrong 'a page that is stale is not noticed'
holds 'both pages are named' [ "$(grep -cE '^FAILED: (README|host/guide/performance)\.md: ' \
    "$logs/out")" = 2 ]
works sh tree/bench/pages.sh
holds 'it has the new figure' grep -qF '| 8.25 µs |' tree/README.md

# A roof that is off the roofs of alike rows is marked: not one of other bytes, of another state of
# the cache, or within 15 %.
cat >roofs.txt <<'EOF'
device    a GPU
type      discrete

rotation                                  us    GB/s roof%
a/f16                                    100    1000    90
b/f16                                    100    1000    98
low_clock/f16                            150     667    90
half/f16                                  90     555    90
8192_warm/f16                             50    2000    90
EOF
printf '<!-- table rotation: -->\n\n<!-- table roofs: -->\n' >roofs.md
works awk -f "$source/bench/pages.awk" roofs.txt roofs.md
holds 'one share is marked' [ "$(grep -c ' % ? |' "$logs/out")" = 1 ]
holds 'it is that of the low clock' grep -qF '| low_clock/f16 | 150 µs | 667 | 90 % ? |' "$logs/out"
holds 'a line tells it' grep -qx \
    'a GPU: low_clock/f16: its roof is 73 % of the median of rows with alike bytes' "$logs/out"
sed '/^low_clock/s/90/70/' roofs.txt >same.txt
works awk -f "$source/bench/pages.awk" same.txt roofs.md
holds 'without it none is marked' sh -c '! grep -q "% ?\|alike" "$1"' sh "$logs/out"

# The rows have medians of repetitions.
works "$bench" --benchmark_filter=host/fill --benchmark_min_time=0.001
holds 'one line, the median of several' [ "$(grep -c 'host/fill' "$logs/out")" = 1 ]
holds 'which says so' grep -q 'host/fill_factored_131072/manual_time_median' "$logs/out"
works "$bench" --benchmark_filter=host/fill --benchmark_min_time=0.001 --benchmark_format=json
holds 'other formats are as Google Benchmark has them' grep -q '"aggregate_name": "median"' \
    "$logs/out"

finish
