#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a program in Rust can call the installed library through its C interface, and rotate
# on the device.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
[ -z "$sanitize" ] || { echo "a library with $sanitize needs its run-time library"; exit 77; }
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
cp -r "$SOURCE/tests/package/consumers/rust" "$SCRATCH"
PKG_CONFIG_PATH=$(dirname "$(find "$SCRATCH/installed" -name vkrope.pc)")
LD_LIBRARY_PATH=$(dirname "$(find "$SCRATCH/installed" -name libvkrope.so)")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
command -v pkg-config >/dev/null || { echo 'pkg-config is not there'; exit 77; }
command -v rustc >/dev/null || { echo 'there is no rustc'; exit 77; }

cd "$SCRATCH/rust"
# As with cargo, the build script prints the libraries to link.
rustc --edition 2021 -o build-script build.rs
flags=$(./build-script |
    sed -n 's/^cargo:rustc-link-search=/-L /p; s/^cargo:rustc-link-lib=/-l /p')
# shellcheck disable=SC2086 # several flags
rustc --edition 2021 -D warnings -A dead_code -o rotate src/main.rs $flags
./rotate >output || { echo 'the program fails'; exit 1; }
cat output
grep -q "^Rust: 1920 values rotated on ." output ||
    { echo 'the program does not say what it did'; exit 1; }
