#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs tests/package/threads under thread sanitizer, which must report nothing, except where the
# program breaks the rule on purpose.
set -eu
[ -n "${VK_DRIVER_FILES:-}" ] ||
    { echo 'skipped: no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'; exit 77; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"

# The sanitizer needs its run-time library, and memory at the addresses that it expects, which
# setarch -R ensures.
echo 'int main() {}' >"$SCRATCH/probe.cpp"
"$CXX" -fsanitize=thread -o "$SCRATCH/probe" "$SCRATCH/probe.cpp" 2>/dev/null ||
    { echo "skipped: $CXX has no thread sanitizer"; exit 77; }
fixed=
"$SCRATCH/probe" 2>/dev/null || fixed="setarch $(uname -m) -R"
# shellcheck disable=SC2086 # a command and its arguments
$fixed "$SCRATCH/probe" || { echo 'skipped: thread sanitizer does not run here'; exit 77; }

"$CMAKE" -S "$SOURCE/tests/package/threads" -B "$SCRATCH/build" -DCMAKE_CXX_COMPILER="$CXX" \
    -DVKROPE_SOURCE="$SOURCE" -DVKROPE_WERROR=ON \
    -DVKROPE_SANITIZE=thread -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O0 -g1' >"$SCRATCH/build.log"
"$CMAKE" --build "$SCRATCH/build" --target threads -j 2 >>"$SCRATCH/build.log" 2>&1 ||
    { cat "$SCRATCH/build.log"; exit 1; }

# The library must be built with the sanitizer, too; otherwise the sanitizer would find nothing.
nm "$SCRATCH/build/vkrope/host/kernel/libvkrope_kernel.a" | grep -q ' U __tsan_' ||
    { echo 'the kernel tier was built without it'; exit 1; }
# Drivers are not built with the sanitizer, so it would see their calls of memcpy and malloc, but
# not the futexes that order these calls.
export TSAN_OPTIONS='ignore_noninstrumented_modules=1 exitcode=66'

# shellcheck disable=SC2086
$fixed "$SCRATCH/build/threads"

code=0
# shellcheck disable=SC2086
$fixed "$SCRATCH/build/threads" --shared-arena >"$SCRATCH/broken.log" 2>&1 || code=$?
if [ $code != 66 ] || ! grep -q 'data race' "$SCRATCH/broken.log" ||
    ! grep -q 'vkrope::record' "$SCRATCH/broken.log"; then
    tail -n 30 "$SCRATCH/broken.log"
    echo "two threads with one arena: exit code $code, 66 and a report of a data race in record() were expected"
    exit 1
fi
echo 'two threads with one arena: reported, as it should be'
