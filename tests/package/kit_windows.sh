#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the kit for Windows, unpacked from its archive, under Wine, on this machine's lavapipe: a
# group of the suite; a driver that crashes and one that hangs, after which the next group runs;
# the bytes of rotate and check; and a page of reports from here and from there.
set -eu
left_out() {
    echo "skipped: $*"
    exit 77
}
compiler=x86_64-w64-mingw32-g++-posix
archive=$SOURCE/build/vkrope-kit-$VERSION-x86_64-windows.zip
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
[ -n "${VK_DRIVER_FILES:-}" ] || left_out 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
[ -e "$archive" ] || left_out "there is no $archive: ./dev bundle --for windows makes it"
command -v $compiler >/dev/null || left_out "no $compiler (Debian: g++-mingw-w64-x86-64)"
[ -x "$wine" ] || left_out 'no Wine (Debian: wine64)'
command -v xvfb-run >/dev/null ||
    left_out "no xvfb-run (Debian: xvfb, xauth): Wine's Vulkan wants a display"
# One display for all commands. xvfb-run fails where it cannot remove its own files.
if [ -z "${VKROPE_DISPLAY:-}" ]; then
    rm -rf "$SCRATCH"
    mkdir -p "$SCRATCH"
    VKROPE_DISPLAY=made xvfb-run -a sh "$0" || :
    [ -e "$SCRATCH/passed" ] && exit 0 || exit 1
fi
folder="$SCRATCH/grüße 日本"
mkdir -p "$folder" "$SCRATCH/include"
cd "$folder"
"$CMAKE" -E tar xf "$archive"
kit=$(basename "$archive" .zip)
include=$(sed -n 's/^Vulkan_INCLUDE_DIR:[A-Z]*=//p' "$BUILD/CMakeCache.txt" | head -n 1)
for part in vulkan vk_video; do
    ln -s "${include:-/usr/include}/$part" "$SCRATCH/include/$part"
done
$compiler -std=c++20 -O1 -shared -static -isystem "$SCRATCH/include" \
    "$SOURCE/tests/package/windows/bad_driver.cpp" -o "$kit/lib/bin/vulkan-1.dll"

export WINEPREFIX="$SCRATCH/wine" WINEDEBUG=-all LC_ALL=C.UTF-8
failed=0
wrong() { echo "FAILED: $*"; failed=1; }
# on_windows COMMAND ARGUMENT...: runs a command of the kit; its output goes to the file `out`.
on_windows() {
    command=$1
    shift
    code=0
    "$wine" cmd /c "$kit\\$command.cmd" "$@" >out 2>err || code=$?
}
# expect CODE WHAT
expect() {
    [ $code = "$1" ] || { wrong "$2: exit code $code, not $1" && tail -n 20 out err; }
}
vkrope=$BUILD/bin/vkrope

[ "$(tr -cd '\r' <"$kit/README.txt" | wc -c)" = "$(wc -l <"$kit/README.txt")" ] ||
    wrong 'the lines of README.txt do not end as on Windows'
on_windows vkrope devices
expect 0 'vkrope devices'
grep -q llvmpipe out || wrong 'vkrope devices lists no llvmpipe'

checks='arithmetic/signed_zeros_f32,chains/f16_half_split_*,replays/f16_*'
on_windows conform --filter "$checks" --json 'Bericht ä.json'
expect 0 conform
grep -q '^pass  *chains/f16_half_split_in_place' out || wrong 'conform passes no chain'
[ -s 'Bericht ä.json' ] || wrong 'there is no report'
! grep -qw -e grüße -e "$(hostname)" 'Bericht ä.json' || wrong 'the report names a place'
"$BUILD/bin/vkrope-conformance" --filter "$checks" --json here.json >out 2>err ||
    wrong 'vkrope-conformance fails here'

# The first group meets a bad driver, the next ones a good one.
seconds=$((20 * ${VKROPE_TIME_FACTOR:-1}))
export VKROPE_CRASH=bad_crash VKROPE_HANG=bad_hang
for how in crash hang; do
    : >bad_$how
    text='crashed, exception 0xc0000005 (access violation)'
    [ $how = crash ] || text="took more than $seconds seconds"
    on_windows conform --filter "$checks" --check-timeout $seconds --json $how.json
    expect 4 "conform, $how"
    grep -qF -e "error        arithmetic/signed_zeros_f32  $text" out ||
        { wrong "conform, $how: no '$text'" && cat out err; }
    for check in chains/f16_half_split_in_place replays/f16_in_place; do
        grep -q "^pass  *$check" out || wrong "conform, $how: $check does not pass"
    done
done
on_windows report --filter 'chains/f16_half_split_*'
expect 0 report
ls vkrope-report-llvmpipe_*.json >/dev/null || wrong 'report writes no file'
ln -s "$SCRATCH" "$WINEPREFIX/dosdevices/unc"
on_windows conform --filter 'chains/f16_half_split_in_place' --json '\\wine\drive_c\there.json'
expect 0 'conform to a share, \\wine\drive_c'
for name in '12:30.json' 'report.json.'; do
    on_windows conform --json "$name"
    expect 5 "conform to $name, which no file has as its name"
done

set -- --page page.html here.json 'Bericht ä.json' crash.json
code=0
"$wine" "$kit/lib/bin/vkrope-conformance.exe" "$@" '.\hang.json' >out 2>err || code=$?
expect 0 'vkrope-conformance --page'
mv page.html page_windows.html
"$BUILD/bin/vkrope-conformance" "$@" hang.json || wrong 'there is no page of the reports here'
cmp page.html page_windows.html || wrong 'the page has other bytes'
grep -qF '>Windows x86_64<' page.html || wrong 'the page does not name the system'
grep -qF 'access violation' page.html || wrong 'the page does not show the crash'

times='^time \|^throughput '
# same CODE COMMAND ARGUMENT...: the command has this exit code and gives the same bytes on both
# systems: in its output, and in the files *_out.npy.
same() {
    expected=$1
    shift
    on_windows vkrope "$@"
    expect "$expected" "vkrope $*"
    mkdir -p windows
    for file in *_out.npy; do [ ! -e "$file" ] || mv "$file" windows/; done
    grep -v "$times" out >windows/out || :
    code=0
    "$vkrope" "$@" >all 2>err || code=$?
    grep -v "$times" all >out || :
    expect "$expected" "vkrope $* here"
    for file in out *_out.npy; do
        [ ! -e "$file" ] || cmp "$file" "windows/$file" || wrong "vkrope $*: other bytes"
    done
}
model='Modell ü.json'
cp "$SOURCE/tests/data/models/qwen2.5-7b.yarn.json" "$model"
same 0 make-input --shape 1,37,4,128 --dtype f16 --seed 1 --out q_out.npy
mv q_out.npy 'q ä.npy'
same 0 make-input --shape 1,37,2,128 --dtype bf16 --seed 2 --out k_out.npy
mv k_out.npy k.npy
on_windows vkrope rotate --model "$model" --q 'q ä.npy' --k 'q ä.npy' --out-q X.npy --out-k x.npy
expect 2 'rotate to X.npy and x.npy'
same 0 explain --model "$model" --json
same 0 rotate --model "$model" --first-position 3000 --q 'q ä.npy' --out-q 'ä_out.npy'
mv ä_out.npy actual.npy
same 0 check --model "$model" --first-position 3000 --q 'q ä.npy' --actual actual.npy --json
same 1 check --model "$model" --first-position 2999 --q 'q ä.npy' --actual actual.npy --json
same 0 rotate --model "$model" --k k.npy --store k=q8_0 --hadamard k=64 --out-k k_out.npy
[ $failed = 0 ] || exit 1
echo 'the kit for Windows: the same bytes, and each driver its verdict'
: >"$SCRATCH/passed"
