#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the documentation of the public headers and the guide build without a warning, and
# that every type and function has a comment.
set -eu
command -v doxygen >/dev/null || { echo 'skipped: doxygen is not installed'; exit 77; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
cd "$SOURCE/host"

# build LINE...: builds the documentation in the scratch folder with the settings of host/Doxyfile,
# changed by these lines.
build() {
    { echo '@INCLUDE = Doxyfile'; echo "OUTPUT_DIRECTORY = $SCRATCH"; printf '%s\n' \
        "$@"; } >"$SCRATCH/Doxyfile"
    doxygen "$SCRATCH/Doxyfile" 2>&1
}

build || { echo 'doxygen found something'; exit 1; }
[ -f "$SCRATCH/html/vkrope_8hpp.html" ] || { echo 'no page about vkrope.hpp was made'; exit 1; }
build 'EXTRACT_ALL = NO' 'WARN_IF_UNDOCUMENTED = YES' \
    'WARN_AS_ERROR = NO' >"$SCRATCH/undocumented" || true
# Fields need no comment, and neither does vkrope.hpp, because each of its functions calls the
# function of the same name in vkrope.h.
if grep 'is not documented' "$SCRATCH/undocumented" |
    grep -vE 'vkrope\.hpp:|\((variable|enumvalue)\)'; then
    exit 1
fi
