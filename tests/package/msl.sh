#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the modules of kernels of every kind are valid, and that SPIRV-Cross, with which
# MoltenVK translates shaders, can translate them to Metal's language, version 2.1, for macOS and
# for iOS. Products and sums that must not be contracted must stay marked. No Metal compiler
# compiles the result. The arguments are the program that writes modules, and either `every` or
# `some`; with `some` each module is translated for only one of the systems.
set -eu
modules=$1 which=$2
for program in spirv-cross spirv-dis spirv-val; do
    command -v $program >/dev/null || {
        echo "skipped: there is no $program (./dev test --thorough installs it)"
        [ "${COMPLETE:-}" != ON ] || exit 1
        exit 77
    }
done
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/modules"
cd "$SCRATCH"
"$modules" "$which" modules
failed=0
for module in modules/*.spv; do
    spirv-val --target-env vulkan1.1 "$module" || { echo "FAILED: $module"; failed=1; }
done
count=0
# translate MODULE [OPTION]
translate() {
    count=$((count + 1))
    spirv-cross --msl --msl-version 20100 ${2:+"$2"} --output out.metal "$1" >log 2>&1 ||
        { echo "FAILED: $*" && cat log && failed=1; }
    # SPIRV-Cross translates NoContraction to functions that are compiled without optimisation. A
    # module without products has none of these functions.
    multiplies=$(spirv-dis "$1" | grep -c OpFMul || true)
    [ "$multiplies" = 0 ] || grep -q 'spvFMul(' out.metal ||
        { echo "FAILED: $*: nothing is marked against contraction" && failed=1; }
}
for module in modules/*.spv; do
    case $which$((count % 2)) in
        some0) translate "$module" ;;
        some1) translate "$module" --msl-ios ;;
        *) translate "$module" && translate "$module" --msl-ios ;;
    esac
done
[ "$count" -gt 0 ] || { echo 'FAILED: there are no modules'; failed=1; }
echo "$count translations to MSL 2.1"
exit $failed
