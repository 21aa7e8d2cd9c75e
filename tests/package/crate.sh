#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the crates: cargo packages them without a network, and they have every function, struct and
# constant of the form to copy, with the layout of C. An engine in Rust, built with the packages,
# loads Vulkan and computes the bytes of the program in C. The examples of the crates compile.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/registry" "$SCRATCH/home" "$SCRATCH/header/vkrope"
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
[ -z "$sanitize" ] || { echo "a library with $sanitize needs its run-time library"; exit 77; }
[ -n "${VK_DRIVER_FILES:-}" ] || { echo 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'; exit 77; }
PATH=/usr/bin:$PATH # Debian's packages before others
command -v cargo >/dev/null || { echo 'there is no cargo'; exit 77; }
debian=/usr/share/cargo/registry
[ -n "$(find $debian -maxdepth 1 -name 'cc-*' 2>/dev/null)" ] ||
    { echo 'there is no crate cc (Debian: librust-cc-dev)'; exit 77; }
ln -s $debian/* "$SCRATCH/registry"
cat >"$SCRATCH/home/config.toml" <<END
[source.crates-io]
replace-with = "folder"
[source.folder]
directory = "$SCRATCH/registry"
END
export CARGO_HOME="$SCRATCH/home" CARGO_NET_OFFLINE=true CARGO_TARGET_DIR="$SCRATCH/target" CXX
export CARGO_BUILD_JOBS=2 RUSTFLAGS='-D warnings' PYTHONDONTWRITEBYTECODE=1

mkdir -p "$SCRATCH/other/vkrope"
if sh "$SOURCE/host/packaging/crate.sh" "$SOURCE" "$SCRATCH/other" >"$SCRATCH/log" 2>&1 ||
    [ ! -d "$SCRATCH/other/vkrope" ]; then
    echo 'a folder that is no crate is replaced'
    exit 1
fi
# The second time in place of the first.
for _ in 1 2; do sh "$SOURCE/host/packaging/crate.sh" "$SOURCE" "$SCRATCH/crates"; done
for crate in vkrope-sys vkrope; do
    (cd "$SCRATCH/crates/$crate" && cargo package --allow-dirty --no-verify) 2>"$SCRATCH/log" ||
        { cat "$SCRATCH/log"; echo "cargo cannot package $crate"; exit 1; }
    # The engine takes the packages as if they came from a registry, and so verifies them.
    tar -xzf "$SCRATCH/target/package/$crate-$VERSION.crate" -C "$SCRATCH/registry"
    echo '{"files": {}}' >"$SCRATCH/registry/$crate-$VERSION/.cargo-checksum.json"
done

# The declarations that the crates should have.
cp "$SOURCE/host/include/vkrope/version.h" "$SCRATCH/header/vkrope"
header=$SCRATCH/header/vkrope/vkrope.h
awk '/^\/\* ---- / { out = /not in vkrope::c_static/ } !out' \
    "$SOURCE/host/include/vkrope/vkrope.h" >"$header"
cp -r "$SOURCE/tests/package/consumers/rust" "$SCRATCH"
cp "$SCRATCH/rust/vulkan.h" "$SCRATCH/header/vkrope"
cd "$SCRATCH/rust"
for python in python3 /usr/bin/python3; do
    ! $python -c 'import cffi' 2>/dev/null || break
done
export PYTHONPATH="$SOURCE/host/python:$SOURCE/host/packaging/crate"
$python "$SOURCE/host/packaging/crate/rust.py" --vulkan-constants \
    "$SCRATCH/header/vkrope/vulkan.h" >vulkan.rs
for language in c rust; do $python layouts.py $language "$header" >layouts.$language; done
mv layouts.rust layouts.rs
cargo build 2>"$SCRATCH/log" || { cat "$SCRATCH/log"; exit 1; }

"${CC:-cc}" -std=c11 -I"$SCRATCH/header" layouts.c -o layouts
./layouts >in_c
"$SCRATCH/target/debug/layouts" >in_rust
diff in_c in_rust || { echo 'C (<) and Rust (>) have other layouts or constants'; exit 1; }
sed -n 's/^typedef struct \([a-z0-9_]*\) {.*/\1/p; s/^    \(VKROPE_[A-Z0-9_]*\) = .*/\1/p' \
    "$header" >names
[ -s names ]
while read -r name; do
    grep -q "^$name " in_rust || { echo "the crate does not have $name"; exit 1; }
done <names
sed -n 's/^    pub fn \([a-z0-9_]*\)(.*/\1/p' "$SCRATCH/crates/vkrope-sys/src/declarations.rs" |
    sort >declared
nm -g --defined-only "$SCRATCH"/target/debug/build/vkrope-sys-*/out/libvkrope.a |
    awk '$3 ~ /^vkrope_/ { print $3 }' | sort -u >compiled
diff declared compiled ||
    { echo 'the crate declares (<) and compiles (>) other functions'; exit 1; }

"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
LD_LIBRARY_PATH=$(dirname "$(find "$SCRATCH/installed" -name libvkrope.so)")
export LD_LIBRARY_PATH
"${CC:-cc}" -std=c11 -I"$SCRATCH/installed/include" "$SOURCE/tests/package/consumers/c_app/main.c" \
    "-L$LD_LIBRARY_PATH" -lvkrope -lm -o c_app
./c_app step
"$SCRATCH/target/debug/engine" step
printf x | dd of=step bs=1 seek=20000 conv=notrunc 2>/dev/null
! "$SCRATCH/target/debug/engine" step 2>error || { echo 'the engine accepts other bytes'; exit 1; }
grep -q '^engine: byte 20000 is [0-9]*, in C 120$' error || { cat error; exit 1; }

cd "$SCRATCH/registry/vkrope-$VERSION"
cargo test --doc >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log"; exit 1; }
grep -q '^test result: ok. 2 passed' "$SCRATCH/log" ||
    { cat "$SCRATCH/log"; echo 'two examples of the crate were expected'; exit 1; }
echo "$(grep -c . "$SCRATCH/rust/in_rust") sizes, offsets and constants," \
    "$(grep -c . "$SCRATCH/rust/declared") functions"
