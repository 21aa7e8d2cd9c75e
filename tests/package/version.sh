#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the project, the tool, the newest entry of the change log, and each public header have
# the same version, and that the preprocessor can compare the version of a header.
set -eu
tool=$("$BUILD/bin/vkrope" --version)
[ "$tool" = "vkrope $VERSION" ] ||
    { echo "vkrope --version says '$tool', the project is $VERSION"; exit 1; }
newest=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' "$SOURCE/CHANGELOG.md" | head -n 1)
[ "$newest" = "$VERSION" ] ||
    { echo "CHANGELOG.md starts with '$newest', the project is $VERSION"; exit 1; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
numbers=$(echo "$VERSION" | tr . ,)
for header in "$SOURCE"/host/include/vkrope/*; do
    name=$(basename "$header")
    language=c++
    [ "$name" = "${name%.h}" ] || language=c
    cat >"$SCRATCH/version" <<END
#include <vkrope/$name>
#if VKROPE_VERSION != VKROPE_MAKE_VERSION($numbers) || \\
    VKROPE_VERSION <= VKROPE_MAKE_VERSION(0, 0, 4095)
#error not the version of the project
#endif
at VKROPE_VERSION_MAJOR VKROPE_VERSION_MINOR VKROPE_VERSION_PATCH
END
    "$CXX" -E -x $language -I"$SOURCE/host/include" "$SCRATCH/version" >"$SCRATCH/expanded"
    said=$(sed -n 's/^at //p' "$SCRATCH/expanded" | tr ' ' .)
    [ "$said" = "$VERSION" ] ||
        { echo "$name says it is '$said', the project is $VERSION"; exit 1; }
done
