#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the shared library of the C interface has the version in its file name and SONAME, and
# exports exactly the functions that vkrope.h declares; that the static library has all of them
# except those that vkrope.h marks as missing from it; and that the header compiles alone, as C11
# and as C++17.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
header="$SOURCE/host/include/vkrope/vkrope.h"
library="$BUILD/host/libvkrope.so"
[ -e "$library" ] || { echo "no libvkrope.so in $BUILD/host"; exit 1; }

# functions: prints the names of the functions of a header; a type may be on the line before.
functions() {
    sed -e ':join' -e '/^\(VKROPE_NODISCARD \)\{0,1\}VKROPE_API [^(]*$/{N;s/\n */ /;b join' -e '}' |
        sed -n 's/^\(VKROPE_NODISCARD \)\{0,1\}VKROPE_API .*\(\<vkrope_[a-z0-9_]*\)(.*/\2/p' | sort
}

nm -D --defined-only "$library" | awk '{ print $NF }' | sort >"$SCRATCH/exported"
functions <"$header" >"$SCRATCH/declared"
[ "$(wc -l <"$SCRATCH/declared")" -gt 20 ] ||
    { echo "found too few declarations in vkrope.h"; exit 1; }
if ! diff "$SCRATCH/declared" "$SCRATCH/exported" >"$SCRATCH/difference"; then
    echo "vkrope.h declares (<) and libvkrope.so exports (>) different functions:"
    cat "$SCRATCH/difference"
    exit 1
fi

# Headings in the header name the sections that the static library lacks.
awk '/^\/\* ---- / { has = !/not in vkrope::c_static/ } has || !sections { print } /^\/\* ---- / { sections = 1 }' "$header" |
    functions >"$SCRATCH/declared_static"
[ "$(wc -l <"$SCRATCH/declared_static")" -lt "$(wc -l <"$SCRATCH/declared")" ] ||
    { echo "vkrope.h says of no tier that the static library lacks it"; exit 1; }
nm -g --defined-only "$BUILD"/host/kernel/libvkrope_kernel.a \
    "$BUILD"/host/frequencies/libvkrope_frequencies.a | awk '$3 ~ /^vk/ { print $3 }' |
    sort >"$SCRATCH/static"
if ! diff "$SCRATCH/declared_static" "$SCRATCH/static" >"$SCRATCH/difference"; then
    echo "vkrope.h declares for vkrope::c_static (<) and the static libraries define (>) different functions:"
    cat "$SCRATCH/difference"
    exit 1
fi

dynamic=$(readelf -d "$library")
soname=libvkrope.so.${VERSION%.*}  # before 1.0 a minor version may break the ABI
echo "$dynamic" | grep -qF "[$soname]" || { echo "the SONAME is not $soname"; exit 1; }
[ -e "$library.$VERSION" ] || { echo "libvkrope.so.$VERSION was not built"; exit 1; }
# The library must load the Vulkan loader at run time.
! echo "$dynamic" | grep 'NEEDED.*libvulkan' ||
    { echo "libvkrope.so links the Vulkan loader"; exit 1; }

CC=${CC:-$(command -v cc || command -v gcc || command -v clang || true)}
[ -n "$CC" ] || { echo "no C compiler: set CC"; exit 1; }
cat >"$SCRATCH/alone.c" <<'END'
#include <vkrope/vkrope.h>
const char* first_word(void);
const char* first_word(void) { return vkrope_status_string(VKROPE_SUCCESS); }
END
cat >"$SCRATCH/version.c" <<'END'
#include <vkrope/vkrope.h>
#include <stdio.h>
int main(void) {
    printf("%d.%d.%d %u.%u.%u\n", VKROPE_VERSION_MAJOR, VKROPE_VERSION_MINOR,
           VKROPE_VERSION_PATCH, vkrope_version() >> 22,
           vkrope_version() >> 12 & 0x3ff, vkrope_version() & 0xfff);
    return 0;
}
END
include=$SOURCE/host/include
"$CC" -std=c11 -pedantic -Wall -Wextra -Werror -I"$include" -c "$SCRATCH/alone.c" \
    -o "$SCRATCH/alone.o"
"$CXX" -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$include" -c "$SCRATCH/alone.c" \
    -o "$SCRATCH/alone_cpp.o"

# The header, the library and the project must have the same version. This check is left out with
# sanitizers, since a library with sanitizers needs a program with them.
if ! echo "$dynamic" | grep -q 'NEEDED.*san\.so'; then
    "$CC" -std=c11 -I"$include" "$SCRATCH/version.c" \
        -L"$BUILD/host" -Wl,-rpath,"$BUILD/host" -lvkrope -o "$SCRATCH/version"
    versions=$("$SCRATCH/version")
    [ "$versions" = "$VERSION $VERSION" ] ||
        { echo "header and library: $versions; the project is $VERSION"; exit 1; }
fi
