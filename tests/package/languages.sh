#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that programs in Rust and Go can call the installed library through its C interface, and
# rotate on the device. If a compiler is missing, the test names it and leaves its program out.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
[ -z "$sanitize" ] || { echo "a library with $sanitize needs its run-time library"; exit 77; }
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
cp -r "$SOURCE/tests/package/consumers/rust" "$SOURCE/tests/package/consumers/go" "$SCRATCH"
PKG_CONFIG_PATH=$(dirname "$(find "$SCRATCH/installed" -name vkrope.pc)")
LD_LIBRARY_PATH=$(dirname "$(find "$SCRATCH/installed" -name libvkrope.so)")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
command -v pkg-config >/dev/null || { echo 'pkg-config is not there'; exit 77; }
ran=0
# judge LANGUAGE COMMAND: checks that the output of the command reports a rotation.
judge() {
    language=$1
    shift
    "$@" >"$SCRATCH/output" || { echo "the program in $language fails"; exit 1; }
    cat "$SCRATCH/output"
    grep -q "^$language: 1920 values rotated on ." "$SCRATCH/output" ||
        { echo "the program in $language does not say what it did"; exit 1; }
    ran=$((ran + 1))
}

if command -v rustc >/dev/null; then
    cd "$SCRATCH/rust"
    # As with cargo, the build script prints the libraries to link.
    rustc --edition 2021 -o build-script build.rs
    flags=$(./build-script |
        sed -n 's/^cargo:rustc-link-search=/-L /p; s/^cargo:rustc-link-lib=/-l /p')
    # shellcheck disable=SC2086 # several flags
    rustc --edition 2021 -D warnings -A dead_code -o walk src/main.rs $flags
    judge Rust ./walk
else
    echo 'Rust: left out, there is no rustc'
fi
if command -v go >/dev/null; then
    cd "$SCRATCH/go"
    GOCACHE=$SCRATCH/go-cache GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=1 go build -o walk .
    judge Go ./walk
else
    echo 'Go: left out, there is no go'
fi
[ $ran -gt 0 ] || exit 77
