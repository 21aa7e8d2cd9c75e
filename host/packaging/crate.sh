#!/bin/sh
# SPDX-License-Identifier: MIT
# crate.sh SOURCE FOLDER: writes the crates vkrope-sys and vkrope into the folder, in place of
# earlier ones. Needs what amalgamate.sh needs, and cffi for Python.
set -eu
source=$1 target=$2
here=$source/host/packaging/crate
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for crate in vkrope-sys vkrope; do
    [ ! -e "$target/$crate" ] ||
        grep -qsx "name = \"$crate\"" "$target/$crate/Cargo.toml" ||
        { echo "crate: $target/$crate is there, and is not this crate: remove it" >&2; exit 1; }
done
folder=$scratch/crates
for crate in vkrope-sys vkrope; do
    mkdir -p "$folder/$crate/src"
    cp "$here/$crate/README.md" "$source/LICENSE" "$folder/$crate"
    cp "$here/$crate/lib.rs" "$folder/$crate/src"
    version=$(sed -n 's/^#define VKROPE_VERSION_[A-Z]* \([0-9]*\).*/\1/p' \
        "$source/host/include/vkrope/version.h" | paste -sd. -)
    sed "s/@VERSION@/$version/" "$here/$crate/Cargo.toml" >"$folder/$crate/Cargo.toml"
done
sys=$folder/vkrope-sys
cp "$here/vkrope-sys/build.rs" "$sys"
sh "$source/host/packaging/amalgamate.sh" "$source" "$sys/vkrope"

# Headings in the header name the sections that the copied form lacks.
mkdir "$scratch/vkrope"
cp "$source/host/include/vkrope/version.h" "$scratch/vkrope"
awk '/^\/\* ---- / { out = /not in vkrope::c_static/ } !out' \
    "$source/host/include/vkrope/vkrope.h" >"$scratch/vkrope/vkrope.h"
for python in python3 /usr/bin/python3; do
    ! $python -c 'import cffi' 2>/dev/null || break
done
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source/host/python $python "$here/rust.py" \
    "$scratch/vkrope/vkrope.h" >"$sys/src/declarations.rs"

# The short names are those of C++, but for objects, which have owners.
sed -n 's/^pub \(struct\|type\) \(vkrope_[a-z0-9_]*\) .*/\2/p' "$sys/src/declarations.rs" \
    >"$scratch/types"
sed -n 's/^using \([A-Za-z0-9]*\) = \(vkrope_[a-z0-9_]*\);$/\2 \1/p' \
    "$source/host/include/vkrope/vkrope.hpp" |
    awk 'NR == FNR { type[$1]; next } $1 in type { print "pub use vkrope_sys::" $1 " as " $2 ";" }' \
        "$scratch/types" - | LC_ALL=C sort >"$folder/vkrope/src/names.rs"

chmod -R u=rwX,go=rX "$folder"
mkdir -p "$target"
rm -rf "$target/vkrope-sys" "$target/vkrope"
cp -r "$folder/vkrope-sys" "$folder/vkrope" "$target"
