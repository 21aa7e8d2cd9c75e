#!/bin/sh
# SPDX-License-Identifier: MIT
# Applications build against the installed package and run, with the source and build trees out of sight: copied elsewhere, and where
# the system lets us, with an empty file system mounted over both trees.
#
# SWIFTSHADER  driver manifest of the second device; empty: what needs it is skipped, and said
set -eu
lavapipe=${VK_DRIVER_FILES:-}
swiftshader=${SWIFTSHADER:-}
[ -n "$lavapipe" ] || { echo 'skipped: no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CMAKE" --install "$BUILD" --prefix "$work/installed" >"$work/install.log"
cp -r "$SOURCE/tests/consumers" "$work/consumers"
mkdir "$work/vendored"
cp -r "$SOURCE/CMakeLists.txt" "$SOURCE/host" "$SOURCE/shaders" "$work/vendored"
if [ -n "$swiftshader" ]; then # its manifest may be below the source tree
    cp -r "$(dirname "$swiftshader")" "$work/swiftshader"
    swiftshader=$work/swiftshader/$(basename "$swiftshader")
fi

# The guide: each block of C++ or C becomes the body of a function, after its own #include lines.
awk -v folder="$work/consumers/guide/block" '
    /^```(cpp|c)$/ {
        inside = 1; n++; body = 0
        cpp = $0 == "```cpp"
        file = folder n (cpp ? ".cpp" : ".c")
        print "#include \"prelude." (cpp ? "hpp" : "h") "\"" >file
        next
    }
    /^```$/ && inside { inside = 0; print (cpp ? "    return {};\n}" : "}") >file; close(file); next }
    inside && /^#include/ { print >file; next }
    inside && !body { if ($0 == "") next; body = 1; print (cpp ? "vkrope::Status" : "vkrope_result") " block" n (cpp ? "()" : "(void)") " {" >file }
    inside { print >file }' "$SOURCE/host/INTEGRATION.md"
blocks=$(find "$work/consumers/guide" -name 'block*' | wc -l)
[ "$blocks" -ge 5 ] || { echo "host/INTEGRATION.md has $blocks blocks of code: 5 at least"; exit 1; }

if grep -rn -e "$SOURCE" -e "$BUILD" "$work/installed/include" "$work/installed/share" "$work/installed"/lib*/cmake; then
    echo 'the installed package refers to the tree that it was built from'
    exit 1
fi

# A library with sanitizers needs their run-time library in the application.
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
flags="-Wall -Wextra -Werror${sanitize:+ -fsanitize=$sanitize}"

# hidden COMMAND...: runs it where the trees are empty, if the system allows that.
if unshare -rm true 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell's arguments
    hidden() {
        unshare -rm sh -c 'for tree in "$1" "$2"; do [ ! -d "$tree" ] || mount -t tmpfs none "$tree"; done; shift 2; cd /; exec "$@"' \
            sh "$SOURCE" "$BUILD" "$@"
    }
    [ -z "$(hidden ls "$SOURCE")" ] || { echo 'the source tree is still in sight'; exit 1; }
    echo 'the source and build trees are out of sight'
else
    hidden() { (cd / && "$@"); }
    echo 'the source and build trees stay in sight: unshare is not allowed here'
fi

export CMAKE_PREFIX_PATH="$work/installed"
hidden "$CMAKE" -S "$work/consumers" -B "$work/build" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_BUILD_TYPE=Debug >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
hidden "$CMAKE" --build "$work/build" -j 2
hidden "$CMAKE" -S "$work/consumers/subdirectory" -B "$work/build_sub" -DCMAKE_CXX_COMPILER="$CXX" -DVKROPE_SOURCE="$work/vendored" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
hidden "$CMAKE" --build "$work/build_sub" -j 2
if [ -n "$(find "$work/installed" -name 'libvkrope.*')" ]; then # the C interface
    hidden "$CMAKE" -S "$work/consumers/c_app" -B "$work/build_c" -DCMAKE_C_FLAGS="$flags" >"$work/configure.log" ||
        { cat "$work/configure.log"; exit 1; }
    hidden "$CMAKE" --build "$work/build_c" -j 2
fi
for trace in "$work"/build*/build.ninja; do
    if [ -f "$trace" ] && grep -n -e "$SOURCE/" -e "$BUILD/" "$trace"; then
        echo 'the applications were built with files of the source or build tree'
        exit 1
    fi
done

# Every message of the layer, where it is installed, fails the application: that is how the guide's barriers are known to be right.
if [ -n "$(find /usr/share/vulkan/explicit_layer.d /etc/vulkan "${VULKAN_SDK:-/nonexistent}" -name 'VkLayer_khronos_validation.json' 2>/dev/null)" ]; then
    export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
    export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT VK_KHRONOS_VALIDATION_VALIDATE_SYNC=true
    export VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1
else
    echo 'without the validation layer: it is not installed'
fi
# run_on MANIFEST PROGRAM [ARGUMENT...]
run_on() {
    manifest=$1
    program=$2
    shift 2
    # Drivers leak a little, and unload before a sanitizer could name them.
    hidden env VK_DRIVER_FILES="$manifest" VK_ICD_FILENAMES="$manifest" ASAN_OPTIONS=detect_leaks=0 "$program" "$@"
}
run_on "$lavapipe" "$work/build/engine"
run_on "$lavapipe" "$work/build/no_push"
run_on "$lavapipe" "$work/build/walk"
run_on "$lavapipe" "$work/build_sub/subdirectory"
[ ! -x "$work/build_c/c_app" ] || run_on "$lavapipe" "$work/build_c/c_app"
if [ -x "$work/build/volk" ]; then
    run_on "$lavapipe" "$work/build/volk"
else
    echo 'volk: skipped: no volk.h (Debian: libvulkan-volk-dev)'
fi
if [ -n "$swiftshader" ]; then
    run_on "$swiftshader" "$work/build/no_push"
    run_on "$lavapipe:$swiftshader" "$work/build/two_devices" llvmpipe SwiftShader
else
    echo 'no_push on SwiftShader: skipped: VKROPE_SWIFTSHADER_ICD is empty'
    run_on "$lavapipe" "$work/build/two_devices" llvmpipe llvmpipe
fi
