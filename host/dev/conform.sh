# SPDX-License-Identifier: MIT
# ./dev conform: runs vkrope-conformance on every device of this machine and on the devices of the
# tests, and writes one page. ./dev sources this file, whose functions can use those of ./dev.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# Runs the tool once for each device, because environment variables select the driver, the loader
# and the settings of lavapipe.
conform() {
    require conform
    fetch_swiftshader
    fetch_debian13
    configure release release
    compile release vkrope_conformance
    tool=build/release/bin/vkrope-conformance
    case " $* " in *' --list '* | *' --help '*) exec $tool "$@" ;; esac
    out=build/conform
    rm -rf $out && mkdir -p $out && : >$out/missing
    git describe --always --dirty >$out/commit 2>/dev/null || :
    status=0
    reports=
    lavapipe=
    for manifest in /usr/share/vulkan/icd.d/lvp_icd*.json; do
        [ ! -e "$manifest" ] || lavapipe=$manifest
    done
    conform_on system 'the devices of this machine' env "VKROPE_DEVICE=${VKROPE_DEVICE:-all}" \
        $tool "$@"
    unset VKROPE_DEVICE
    if [ -n "$lavapipe" ]; then
        for bits in 128 512; do
            conform_on "lavapipe_$bits" "lavapipe with subgroups of $((bits / 32))" \
                env "VK_DRIVER_FILES=$lavapipe" "VK_ICD_FILENAMES=$lavapipe" \
                "LP_NATIVE_VECTOR_WIDTH=$bits" $tool "$@"
        done
    else
        echo 'lavapipe: its driver manifest is not in /usr/share/vulkan/icd.d' >>$out/missing
    fi
    case $debian in
        12)
            newest='of Debian 13'
            [ ! -d build/deps/debian13 ] || newer=build/deps/debian13/run
            ;;
        13)
            newest='of this machine'
            newer="env VK_DRIVER_FILES=$lavapipe VK_ICD_FILENAMES=$lavapipe"
            echo "Debian 12's lavapipe: this is Debian 13" >>$out/missing
            ;;
    esac
    if [ -n "${newer:-}" ]; then
        # On Debian 13 this run has been done above. The second run reports the messages of the
        # validation layer but gives no verdict, because the layer alters the device.
        [ "$debian" = 13 ] || conform_on debian13 "lavapipe $newest" "$newer" $tool "$@"
        # shellcheck disable=SC2086 # words of a command
        conform_on validation "lavapipe $newest, with its validation layer" $newer $tool \
            --validation "$@"
    else
        echo "Debian 13's lavapipe and validation layer: only Debian 12 and 13 have them, on amd64 and arm64" >>$out/missing
    fi
    if [ -d build/deps/swiftshader ]; then
        icd=$PWD/build/deps/swiftshader/icd.json
        conform_on swiftshader SwiftShader env "VK_DRIVER_FILES=$icd" "VK_ICD_FILENAMES=$icd" \
            $tool "$@"
    else
        echo 'SwiftShader: only Debian 12 and 13 have it, on amd64 and arm64' >>$out/missing
    fi
    sed 's/^/not run: /' $out/missing
    [ -n "$reports" ] || die 'conform: there is no report of any device'
    # shellcheck disable=SC2086 # one word a report
    $tool --page $out/page.html $reports || exit
    echo "the page: $out/page.html"
    summarise
    exit "$status"
}

# conform_on FILE NAME COMMAND...: adds a report, or adds a line to `missing` that says why there
# is no report.
conform_on() {
    file=$out/$1.json
    log=$out/$1.log
    name=$2
    shift 2
    say "$name ($log) ..."
    code=0
    "$@" --json "$file" >"$log" 2>&1 || code=$?
    if [ -e "$file" ]; then
        reports="$reports $file"
        sed -n 's/^verdict: //p' "$log"
    elif [ "$code" = 2 ]; then
        tail -n 5 "$log" >&2
        exit 2
    else
        reason=$(tail -n 1 "$log" | sed 's/^vkrope: error: //')
        echo "$name: $reason (exit code $code)" >>$out/missing
    fi
    # A missing device (exit code 3) is not a failure.
    [ "$code" = 0 ] || [ "$code" = 3 ] || status=1
}
