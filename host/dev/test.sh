# SPDX-License-Identifier: MIT
# Implements ./dev test and ./dev prove: builds, runs and reports the tests of a level. ./dev
# sources this file and provides its functions.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# Budgets in seconds for the tests of a group (a CTest label) on two cores without a GPU: for ./dev
# test, for --thorough, and for the tests of --all before those with sanitizers.
budgets='unit 60 150 180
device 60 300 300
tool 20 90 90
conformance 0 250 800
bench 0 60 60
package 0 300 400
python 0 40 40
fuzz 0 20 20'

# Minutes of a level on such a machine, for a fresh clone with the packages installed.
level_budgets='quick 4
thorough 12
all 40'

# The parts of ./dev prove: name, minutes, and what the part proves. Its tests have the CTest label
# prove_PART.
parts='floats 25 the error bounds, for every float and every turn
bits 25 the same bits on three devices, of 10^8 elements of each kind
blocks 25 quantised blocks of random values, on two devices
sweep 25 20 000 random operations, on every device
fuzz 12 the parsers of files, minutes each, built by clang++ with sanitizers
newest 30 the commands of README.md in an empty Debian 13, and the whole build in Debian sid
systems 60 the kits, which it makes, in other systems: the next three parts
systems_linux 25 the kit for this machine in an empty Debian
systems_arm64 30 the kit for arm64 under qemu
systems_windows 15 the libraries for Windows under Wine
compilers 10 what the compilers of GPUs make of the kernels, into bench/results/compilers.txt
llama 30 graphs of llama.cpp in Debian sid, each layer in one call
tidy 30 the build by clang++, and clang-tidy on the whole tree
power 60 which tests find known faults: the next three parts
power_shaders 30 mutants of shaders
power_drivers 10 faults of drivers
power_host 30 mutants of the library and the tools'

# Seconds on such a machine after which a test counts as hanging: several times the duration of the
# longest test.
time_limit=1800
time_limit_prove=3600

# No test fails because the machine is slow or busy: time limits are multiplied by the time of a
# known piece of work divided by its usual time. Sets `pace` to that ratio, and VKROPE_TIME_FACTOR
# to the next whole number.
measure_pace() {
    pace=${VKROPE_TIME_FACTOR:-$(build/dev/bin/vkrope_pace)}
    VKROPE_TIME_FACTOR=$(awk -v pace="$pace" \
        'BEGIN { n = int(pace); print n < 1 ? 1 : n + (n < pace) }')
    export VKROPE_TIME_FACTOR
    ! awk -v pace="$pace" 'BEGIN { exit pace <= 1.2 }' ||
        say "slow machine: a known piece of work took $pace times its usual time;" \
        "time limits are $VKROPE_TIME_FACTOR times as long"
}

# run_tests PRESET LOG [ARGUMENT...]: sets `status` to the exit status of ctest unless that is 0.
# POSIX shells have no pipefail, so a file passes the exit status around the pipe.
run_tests() {
    preset=$1
    log=$2
    shift 2
    # shellcheck disable=SC2016 # variables of the inner shell
    held sh -c 'log=$1
        shift
        { code=0; "$@" || code=$?; echo "$code" >"$log.status"; } 2>&1 | tee "$log"' \
        sh "$log" ctest --preset "$preset" --no-tests=error \
        --timeout $((limit * VKROPE_TIME_FACTOR)) "$@"
    read -r code <"$log.status"
    [ "$code" = 0 ] || status=$code
}

# report LOG...: prints the seconds of each group in the first log, then the counts of all logs
# together, from ctest's summaries. ctest counts a skipped test as passed and does not count a
# disabled one. Prints the groups over their budgets again at the end.
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
                if (over > 1 && over > pace)
                    list = list sprintf("%s %s %.0f of %s s", list ? "," : "", g, seconds[g], \
                        budget[g])
            }
            if (list) print "\nover budget:" list
            printf "\n%d passed, %d failed, %d skipped\n", passed, fails, skips
        }' - "$@"
}

# prepare_tests LEVEL: installs packages, fetches devices and builds programs. Sets `column` to the
# level's column in `budgets`.
prepare_tests() {
    status=0
    column=3
    case $1 in
        quick) required=test column=2 target=quick ;;
        thorough) required='test|thorough' target=all ;;
        all) required='test|thorough' column=4 target=all ;;
        prove) # programs that make other systems, or run programs for them
            packages="$packages
debootstrap - prove
proot - prove
qemu-user-static - prove
wine64 - prove
xvfb - prove
xauth - prove"
            required='test|thorough|prove' target=all
            ;;
    esac
    require "$required"
    fetch_swiftshader
    [ "$1" = quick ] || fetch_debian13
    [ "$1" != prove ] || fetch_arm64
    configure dev dev
    compile dev "$target"
    measure_pace
    keep_shaders
}

# Prints the usual seconds of each group that runs.
announce() {
    echo "$budgets" | awk -v column="$column" '
        $column { list = list (list ? ", " : "") $1 " " $column; sum += $column }
        END {
            printf "dev: usual seconds, two tests at a time: %s; together %d minutes\n", \
                list, (sum / 2 + 59) / 60
        }' >&2
}

# run_tests_named WORD: runs the tests of a group, or the tests with this name in any level.
run_tests_named() {
    prepare_tests thorough
    limit=$time_limit_prove
    if echo "$budgets" | grep -q "^$1 "; then set -- all -L "^$1\$"; else set -- prove -R "$1"; fi
    run_tests dev build/test-some.log -C "$@"
    exit "$status"
}

# run_tests_of [--thorough|--all]: runs the tests of a level.
run_tests_of() {
    began=$(date +%s)
    level=${1#--}
    level=${level:-quick}
    prepare_tests "$level"
    announce
    limit=$time_limit
    run_tests dev build/test.log -C "$level"
    if [ "$level" != all ]; then
        report build/test.log
    else # the quick tests, and tests that read untrusted files, with sanitizers
        configure asan asan -DVKROPE_BENCH=OFF
        compile asan sanitized
        run_tests asan build/test-asan.log
        run_tests asan build/test-asan-files.log -C thorough \
            -R '^fuzz$|tool_(judge|safetensors)|conformance_suite'
        report build/test.log build/test-asan.log build/test-asan-files.log
    fi
    echo "./dev test${1:+ $1} took $((($(date +%s) - began + 59) / 60)) minutes of" \
        "$(echo "$level_budgets" | sed -n "s/^$level //p")"
    exit "$status"
}

# make_kits PART: makes the kits that the tests of the part unpack.
make_kits() {
    . host/dev/bundle.sh
    case $1 in systems | systems_linux) bundle ;; esac
    case $1 in systems | systems_windows) bundle --for windows ;; esac
    [ ! -d build/deps/arm64 ] || case $1 in systems | systems_arm64) bundle --for arm64 ;; esac
}

# prove [PART]: runs a part, or lists the parts.
prove() {
    if [ $# = 0 ]; then
        echo './dev prove PART, by hand before a release:'
        echo "$parts" | while read -r part minutes text; do
            printf '  %-15s %3s minutes: %s\n' "$part" "$minutes" "$text"
        done
        exit 0
    fi
    echo "$parts" | grep -q "^$1 " || die "there is no part '$1': ./dev prove lists them"
    began=$(date +%s)
    prepare_tests prove
    limit=$time_limit_prove
    if [ "$1" = tidy ]; then
        configure clang clang
        compile clang
        say 'clang-tidy takes the whole tree (build/tidy.log) ...'
        quietly tidy held sh tests/package/check/tidy.sh build/clang || status=1
    else
        make_kits "$1"
        export VKROPE_FUZZ_SECONDS="${VKROPE_FUZZ_SECONDS:-120}"
        run_tests dev build/prove.log -C prove -L "^prove_$1\$"
    fi
    echo "./dev prove $1 took $((($(date +%s) - began + 59) / 60)) minutes of" \
        "$(echo "$parts" | sed -n "s/^$1 \([0-9]*\) .*/\1/p")"
    exit "$status"
}
