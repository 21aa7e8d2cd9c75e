# SPDX-License-Identifier: MIT
# Implements ./dev bench: runs vkrope-bench on the best device and writes the figures. ./dev
# sources this file and provides its functions.
# shellcheck shell=sh

# Runs the most important rows, which take minutes on two cores without a GPU. A later
# --benchmark_filter among the arguments replaces this filter.
bench() {
    [ "$*" != --pages ] || exec sh bench/pages.sh
    require bench
    configure release release -DVKROPE_BENCH=ON
    compile release vkrope_bench
    tool=build/release/bin/vkrope-bench
    case " $* " in *' --benchmark_list_tests'* | *' --help '*) exec $tool "$@" ;; esac
    out=build/bench
    mkdir -p $out
    commit=$(git describe --always --dirty 2>/dev/null || true)
    llama=prefill_llama3_8b
    rows="^(rope/$llama/.*/out_of_place|rope/$llama/.*/factored_texture/"
    rows="$rows|rope/(mla|partial|mrope|vision|gptj)_.*/f16/(factored_texture|computed)/out_of_place"
    rows="$rows|rope/(decode|prefill_[0-9]).*/f16/factored_texture/|copy/$llama|copy_buffer/$llama"
    rows="$rows|rival/.*/$llama|rival/unfused/decode_.*/f16|cpu/$llama|empty/.*/f16"
    rows="$rows|ops/|cache/.*_llama3_1_8b|cache/.*/q8_0"
    rows="$rows|host/(record_of|record/$llama|record/decode_b64|create|fill|step))"
    rm -f $out/run.json
    status=0
    $tool ${commit:+--commit "$commit"} --benchmark_out=$out/run.json --benchmark_filter="$rows" \
        --benchmark_min_time=0.02 "$@" || status=$?
    [ -e $out/run.json ] || exit "$status" # an argument may name another file
    device=$(sed -n 's/^ *"device": "\(.*\)",*$/\1/p' $out/run.json | tr -cs 'A-Za-z0-9.\n' _)
    # Removes the name of the machine, which is private.
    sed 's/^\( *"host_name": \)".*"/\1""/' $out/run.json >"$out/${device%_}.json"
    rm $out/run.json
    echo "all figures: $out/${device%_}.json"
    summarise
    exit "$status"
}

# Writes the summaries of all devices with a report of ./dev bench or ./dev conform.
summarise() {
    set --
    for file in build/bench/*.json "commit=$(cat build/conform/commit 2>/dev/null)" \
        build/conform/*.json; do
        case $file in commit=* | *[!*].json) set -- "$@" "$file" ;; esac
    done
    rm -rf build/results && mkdir -p build/results
    echo 'the summaries, which bench/results collects:'
    awk -v out=build/results -f bench/summary.awk "$@" || return 0
    echo '<!-- table roofs: -->' | awk -f bench/pages.awk build/results/*.txt /dev/stdin | sed 1d
}
