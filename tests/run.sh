# SPDX-License-Identifier: MIT
# ./dev test: what is built and run, at which level, and what is said of it. ./dev sources this
# file; its functions are at hand.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# What the tests of a group (a CTest label) take together in seconds, on two cores without a GPU:
# of ./dev test, and of ./dev test --thorough.
budgets='unit 60 150
device 100 1300
tool 20 180
conformance 90 900
bench 0 250
package 0 600
python 0 120
fuzz 0 180'

# Seconds after which a test counts as hanging, on such a machine: several times what the longest
# takes.
time_limit=1800
time_limit_all=7200

# A slow machine, or one with other work, fails no test for that: time limits are as many times as
# long as a known piece of work is to usual. Sets `pace` to that, VKROPE_TIME_FACTOR to the next
# whole number.
measure_pace() {
    pace=${VKROPE_TIME_FACTOR:-$(build/dev/bin/vkrope_pace)}
    VKROPE_TIME_FACTOR=$(awk -v pace="$pace" \
        'BEGIN { n = int(pace); print n < 1 ? 1 : n + (n < pace) }')
    export VKROPE_TIME_FACTOR
    ! awk -v pace="$pace" 'BEGIN { exit pace <= 1.2 }' ||
        say "slow machine: a known piece of work took $pace times its usual time;" \
        "time limits are $VKROPE_TIME_FACTOR times as long"
}

# run_tests PRESET LOG [ARGUMENT...]: sets `status` to what ctest returned unless that is 0. POSIX
# shells have no pipefail, so the exit status goes around the pipe in a file.
run_tests() {
    preset=$1
    log=$2
    shift 2
    {
        code=0
        ctest --preset "$preset" --no-tests=error --timeout $((limit * VKROPE_TIME_FACTOR)) "$@" ||
            code=$?
        echo "$code" >"$log.status"
    } 2>&1 | tee "$log"
    read -r code <"$log.status"
    [ "$code" = 0 ] || status=$code
}

# What the sweep over tensors covered on the first device; CTest itself shows nothing of a test
# that passed.
sweep_table() {
    sed -n '/^dimension /,/^sweep: [0-9]/p;/^sweep: [0-9].* distinct/q' \
        build/dev/Testing/Temporary/LastTest.log
}

# report LOG...: from ctest's own summaries, the seconds of each group in the first log, then the
# counts of all logs together. ctest counts a skipped test as passed and a disabled one not at
# all.
report() {
    echo "$budgets" | awk -v pace="$pace" -v column="$column" '
        function add() {
            passed += total - failed - skip
            fails += failed
            skips += skip + off
            total = failed = skip = off = 0
        }
        NR == FNR { budget[$1] = $column; group[++groups] = $1; next }
        FNR == 1 { add(); logs++ }
        / tests? passed, / { failed = $4; total = $NF; skip = off = 0 }
        /\(Skipped\)$/ { skip++ }
        /\(Disabled\)$/ { off++ }
        logs == 1 && / sec\*proc / {
            seconds[$1] = $3
            if (!($1 in budget)) { budget[$1] = "none"; group[++groups] = $1 }
        }
        END {
            add()
            printf "\n%-10s %9s %9s\n", "group", "seconds", "budget"
            for (i = 1; i <= groups; i++) {
                g = group[i]
                if (!(g in seconds)) continue
                over = budget[g] == "none" ? 0 : seconds[g] / budget[g]
                printf "%-10s %9.1f %9s%s\n", g, seconds[g], budget[g], \
                    over <= 1 ? "" : over <= pace ? "  slow machine" : "  over budget"
            }
            printf "\n%d passed, %d failed, %d skipped\n", passed, fails, skips
        }' - "$@"
}

# prepare_tests LEVEL: what is missing is installed, the devices fetched, the programs built. Sets
# `column` to the level's place in `budgets`.
prepare_tests() {
    status=0
    column=3
    case $1 in
        quick) required=test column=2 target=quick ;;
        thorough) required='test|thorough' target=all ;;
        all) # what runs programs for other systems
            packages="$packages
qemu-user-static - all
wine64 - all
xvfb - all
xauth - all"
            required='test|thorough|all' target=all
            ;;
    esac
    require "$required"
    fetch_swiftshader
    [ "$1" = quick ] || fetch_debian13
    [ "$1" != all ] || fetch_arm64
    configure dev dev
    compile dev $target
    measure_pace
}

# Usual seconds of each group that runs.
announce() {
    echo "$budgets" | awk -v column="$column" '
        $column { list = list (list ? ", " : "") $1 " " $column; sum += $column }
        END {
            printf "dev: usual seconds, two tests at a time: %s; together %d minutes\n", \
                list, (sum / 2 + 59) / 60
        }' >&2
}

# run_tests_named WORD: of a group, or of the tests of this name, at whatever level they are.
run_tests_named() {
    prepare_tests thorough
    limit=$time_limit_all
    if echo "$budgets" | grep -q "^$1 "; then set -- -L "^$1\$"; else set -- -R "$1"; fi
    run_tests dev build/test-some.log -C all "$@"
    exit "$status"
}

# run_tests_of [--thorough|--all]
run_tests_of() {
    began=$(date +%s)
    level=${1#--}
    level=${level:-quick}
    prepare_tests "$level"
    announce
    limit=$time_limit
    case $level in
        quick) run_tests dev build/test.log ;;
        # conformance_quick repeats what conformance_some does on the same device.
        thorough) run_tests dev build/test.log -C thorough -E '^conformance_some' ;;
        all) # every float, 10^8 elements, minutes of fuzzing
            limit=$time_limit_all
            export VKROPE_FUZZ_SECONDS="${VKROPE_FUZZ_SECONDS:-120}"
            run_tests dev build/test.log -C all -E '^conformance_some'
            ;;
    esac
    if [ "$level" != quick ]; then
        sweep_table >build/sweep.txt
        cat build/sweep.txt
    fi
    if [ "$level" != all ]; then
        report build/test.log
    else
        configure asan asan
        compile asan
        run_tests asan build/test-asan.log
        # Beside the tests of every day: what reads the files of strangers.
        run_tests asan build/test-asan-files.log -C thorough \
            -R 'tool_(hostile_models|judge)|conformance_(bad_cases|reports|suite)'
        configure clang clang
        compile clang
        say 'clang-tidy takes the whole tree (build/tidy.log) ...'
        quietly tidy sh tests/package/check/tidy.sh build/clang || status=1
        report build/test.log build/test-asan.log build/test-asan-files.log
    fi
    echo "./dev test${1:+ $1} took $((($(date +%s) - began + 59) / 60)) minutes"
    exit "$status"
}
