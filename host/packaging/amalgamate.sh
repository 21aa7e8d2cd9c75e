#!/bin/sh
# SPDX-License-Identifier: MIT
# amalgamate.sh SOURCE FOLDER: compiles the shaders and writes the three files to copy into a
# project: vkrope.h, vkrope.hpp and vkrope.cpp, which contains frequencies and kernel with their
# SPIR-V. Environment: CMAKE, GLSLANG, VULKAN_SDK, SPIRV_HPP (spirv/unified1/spirv.hpp).
set -eu
source=$1 folder=$2
mkdir -p "$folder"
version=$(sed -n 's/^#define VKROPE_VERSION_[A-Z]* \([0-9]*\).*/\1/p' \
    "$source/host/include/vkrope/version.h" | paste -sd. -)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for module in rope positions; do
    "${CMAKE:-cmake}" "-DSOURCE=$source/shaders/$module.comp" "-DOUTPUT=$scratch/$module" \
        ${GLSLANG:+"-DGLSLANG=$GLSLANG"} -P "$source/shaders/module.cmake"
done
spirv_hpp=${SPIRV_HPP:-}
for place in "${VULKAN_SDK:-/usr/local}" /usr/local /usr /opt/homebrew; do
    [ -z "$spirv_hpp" ] || break
    [ ! -f "$place/include/spirv/unified1/spirv.hpp" ] ||
        spirv_hpp=$place/include/spirv/unified1/spirv.hpp
done
[ -f "$spirv_hpp" ] ||
    { echo 'no spirv/unified1/spirv.hpp: install SPIRV-Headers or set SPIRV_HPP' >&2; exit 1; }

license() {
    echo "// vkrope $version: rotary position embedding on Vulkan, in a form to copy."
    sed 's|^|// |; s| *$||' "$source/LICENSE"
}
# Code that opens and closes the namespace VKROPE_NAMESPACE, if it is defined.
opening='#ifdef VKROPE_NAMESPACE
namespace VKROPE_NAMESPACE {
#endif'
closing='#ifdef VKROPE_NAMESPACE
}  // namespace VKROPE_NAMESPACE
#endif'

# All functions are in this namespace or have C linkage.
awk -v version="$source/host/include/vkrope/version.h" '
    /^#include "vkrope\/version.h"$/ {
        print "#ifndef VKROPE_STATIC\n#define VKROPE_STATIC\n#endif"
        while ((getline line < version) > 0) print line
        next
    }
    /^extern "C" \{$/ {
        print "#ifdef VKROPE_NAMESPACE\nnamespace VKROPE_NAMESPACE {\n#else\nextern \"C\" {\n#endif"
        next
    }
    { print }' "$source/host/include/vkrope/vkrope.h" >"$scratch/vkrope.h"

awk -v opening="$opening" -v closing="$closing" '
    /^#include "vkrope\/vkrope.h"$/ { print "#include \"vkrope.h\"\n\n" opening; next }
    { print }
    END { print closing }
' "$source/host/include/vkrope/vkrope.hpp" >"$scratch/vkrope.hpp"

# Writes the SPIR-V instructions that the sources name, with their numbers.
cat "$source"/host/kernel/spirv/*.?pp >"$scratch/names"
awk -v names="$scratch/names" '
    BEGIN {
        while ((getline line < names) > 0)
            while (match(line, /[A-Z][A-Za-z0-9]+/)) {
                used[substr(line, RSTART, RLENGTH)] = 1
                line = substr(line, RSTART + RLENGTH)
            }
        print "namespace spv {"
    }
    /^enum (Op|Capability|Decoration|ExecutionMode|StorageClass|LoopControlMask) \{/ {
        print $1, $2, ": unsigned {"  # makes every number a valid value
        inside = 1
        next
    }
    inside && /^\};/ { print; inside = 0 }
    inside && $1 in used && $2 == "=" { print }
    /^static const unsigned int (OpCodeMask|WordCountShift) / { print }
    END { print "}  // namespace spv" }
' "$spirv_hpp" >"$scratch/spv"

awk -v host="$source/host" -v shaders="$source/shaders" -v spirv="$scratch" \
    -v includes="$scratch/includes" '
    function there(path,    line, got) {
        got = (getline line < path) >= 0
        close(path)
        return got
    }
    function find(name) {
        if (there(host "/" name)) return host "/" name
        if (there(shaders "/" name)) return shaders "/" name
        return spirv "/" name
    }
    function emit(path,    line, name) {
        if (path in seen) return
        seen[path] = 1
        while ((getline line < path) > 0) {
            if (line ~ /^#pragma once/ || line ~ /^\/\/ SPDX-License/) continue
            if (line ~ /^#include "/) {
                name = line
                gsub(/^#include "|".*$/, "", name)
                if (name !~ /^vkrope\//) emit(find(name))
            } else if (line ~ /^ *#include </) {
                if (line !~ /spirv\.hpp/) print line >includes
            } else print line
        }
        close(path)
    }
    BEGIN { for (i = 1; i < ARGC; ++i) emit(ARGV[i]) }
' "$source"/host/frequencies/*.cpp "$source"/host/kernel/*.cpp "$source"/host/kernel/*/*.cpp \
    >"$scratch/body"
{
    license
    echo '#include "vkrope.hpp"'
    echo
    sort -u "$scratch/includes"
    echo
    echo "$opening"
    cat "$scratch/spv" "$scratch/body"
    echo "$closing"
} >"$scratch/vkrope.cpp"
cp "$scratch/vkrope.h" "$scratch/vkrope.hpp" "$scratch/vkrope.cpp" "$folder/"
