#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and runs applications against the installed package, with the source and build trees
# hidden: their sources are copied elsewhere first, and where the system permits it, an empty file
# system is mounted over both trees.
#
# SWIFTSHADER  driver manifest of the second device; if empty, the parts that need it are left out
# COMPLETE     if ON, a part that would be left out fails; otherwise the test ends as skipped once
#              the rest has passed
set -eu
lavapipe=${VK_DRIVER_FILES:-}
swiftshader=${SWIFTSHADER:-}
[ -n "$lavapipe" ] || { echo 'skipped: no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'; exit 77; }

result=0
# left_out PART: REASON: says that the part is left out, which is a failure if COMPLETE is ON.
left_out() {
    echo "left out: $*"
    [ "${COMPLETE:-}" != ON ] || exit 1
    result=77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CMAKE" --install "$BUILD" --prefix "$work/installed" >"$work/install.log"
cp -r "$SOURCE/tests/package/consumers" "$work/consumers"
vendored=$work/consumers/subdirectory/third_party/vkrope
mkdir -p "$vendored"
cp -r "$SOURCE/CMakeLists.txt" "$SOURCE/host" "$SOURCE/shaders" "$vendored"
if [ -n "$swiftshader" ]; then # the manifest may be in the source tree
    cp -r "$(dirname "$swiftshader")" "$work/swiftshader"
    swiftshader=$work/swiftshader/$(basename "$swiftshader")
fi

# guide_blocks.awk makes sources from the blocks of the guide and the front page.
! grep -n '@[A-Z]*@' "$SOURCE"/*.md "$SOURCE"/host/guide/*.md ||
    { echo 'a placeholder was left in the documents'; exit 1; }
mkdir "$work/alone"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(pages CXX)\n' >"$work/alone/CMakeLists.txt"
find "$SOURCE" '(' -name build -o -name '.?*' ')' -prune -o -name '*.md' \
    -exec grep -lE '^```(cpp|c|cmake)( |$)' {} + >"$work/pages"
while read -r file; do
    page=$(basename "$file" .md)
    folder=$work/consumers/guide
    written=$(grep -c '^```cpp$' "$file" || :)
    awk -v page="$page" -v blocks="$written" -v folder="$folder" \
        -f "$SOURCE/tests/package/guide_blocks.awk" "$file" || exit 1
    found=$(cat "$folder/$page"_*.cpp 2>/dev/null | grep -c "^vkrope::Status ${page}_" || :)
    [ "$written" = "$found" ] ||
        { echo "$page.md has $written blocks of C++, $found were found"; exit 1; }
    [ "$written" = 0 ] || [ -e "$folder/$page.cmake" ] ||
        { echo "$page.md does not say which targets its blocks link"; exit 1; }
    # The first CMake block is all that a project needs.
    if [ -e "$folder/$page.cmake" ]; then
        mkdir -p "$work/alone/$page"
        {
            echo "add_executable(guide_$page ../../consumers/guide/main.cpp)"
            cat "$folder/$page.cmake"
        } >"$work/alone/$page/CMakeLists.txt"
        echo "add_subdirectory($page)" >>"$work/alone/CMakeLists.txt"
    fi
    # The page tells whether the engine links Vulkan's functions.
    ! grep -q 'Vulkan::Vulkan' "$file" || [ ! -e "$folder/$page.cmake" ] ||
        echo "target_link_libraries(guide_$page PRIVATE Vulkan::Vulkan)" >>"$folder/$page.cmake"
done <"$work/pages"
# Every line of each other CMake block must occur in one of the projects that are built below.
for block in "$work"/consumers/guide/*.lines; do
    lines=$(cat "$block")
    stands=
    for project in "$work"/consumers/CMakeLists.txt "$work"/consumers/*/CMakeLists.txt; do
        case "
$(cat "$project")
" in *"
$lines
"*) stands=$project ;; esac
    done
    [ -n "$stands" ] || { echo "no project has these lines of the guide:"; echo "$lines"; exit 1; }
done

if grep -rn -e "$SOURCE" -e "$BUILD" "$work/installed/include" "$work/installed/share" \
    "$work/installed"/lib*/cmake; then
    echo 'the installed package refers to the tree that it was built from'
    exit 1
fi

"$CMAKE" -S "$work/alone" -B "$work/build_alone" -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_PREFIX_PATH="$work/installed" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; exit 1; }

# A library with sanitizers needs their run-time library in the application.
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
strict="-Wall -Wextra -Werror${sanitize:+ -fsanitize=$sanitize}"

# hidden COMMAND...: runs the command with empty trees, if the system permits that. Containers often
# do not, so the test does not require it.
if unshare -rm true 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell's arguments
    hidden() {
        unshare -rm sh -c \
            'for tree in "$1" "$2"; do [ ! -d "$tree" ] || mount -t tmpfs none "$tree"; done; shift 2; cd /; exec "$@"' \
            sh "$SOURCE" "$BUILD" "$@"
    }
    [ -z "$(hidden ls "$SOURCE")" ] || { echo 'the source tree is still in sight'; exit 1; }
    echo 'the source and build trees are out of sight'
else
    hidden() { (cd / && "$@"); }
    echo 'the source and build trees are copied, and the originals stay in sight: unshare is not allowed here'
fi

export CMAKE_PREFIX_PATH="$work/installed"
# build PROJECT FLAGS [ARGUMENT...]: builds the project in consumers/PROJECT in build/PROJECT.
build() {
    project=$1
    flags=$2
    shift 2
    hidden "$CMAKE" -S "$work/consumers/$project" -B "$work/build/$project" \
        -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_C_FLAGS_RELEASE=-O0 \
        --no-warn-unused-cli "$@" >"$work/configure.log" 2>&1 ||
        { cat "$work/configure.log"; exit 1; }
    hidden "$CMAKE" --build "$work/build/$project" -j 2
}
build . "$strict"
# Each library is compiled as one unit, since this test does not check the code of the library.
build subdirectory "-Wall -Wextra -Werror" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0
if [ -n "$(find "$work/installed" -name 'libvkrope.*')" ]; then build c_app "$strict"; else
    left_out 'c_app: VKROPE_C is off'; fi
if grep -qs c_static "$work"/installed/*/cmake/vkrope/vkropeTargets.cmake; then
    build c_static "$strict"
else
    left_out 'c_static: VKROPE_C is off'; fi

# The files of generators name every file that was read, as text or, in ninja's list of headers, as
# text between numbers. Programs are excluded as binary files, since they may contain paths of the
# library's sources for a debugger.
mentions() {
    grep -rlI "$@" "$work/build" || true
    find "$work/build" -name .ninja_deps -exec grep -la "$@" {} + || true
}
[ -n "$(mentions -F -e "$work/installed/include/vkrope/vkrope.hpp")" ] ||
    { echo 'the files that were read are not found'; exit 1; }
traces=$(mentions -F -e "$SOURCE/" -e "$BUILD/")
[ -z "$traces" ] ||
    { echo "the applications were built with files of the source or build tree, as these say:"; echo \
    "$traces"; exit 1; }

# The layer writes every message to descriptor 3 of the application; any message fails the test.
layered=
if [ -n "$(find /usr/share/vulkan/explicit_layer.d /etc/vulkan "${VULKAN_SDK:-/nonexistent}" \
    -name 'VkLayer_khronos_validation.json' 2>/dev/null)" ]; then
    layered=1
    export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
    export VK_LAYER_SETTINGS_PATH="$work/vk_layer_settings.txt"
    cat >"$VK_LAYER_SETTINGS_PATH" <<'END'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = /dev/fd/3
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.validate_sync = true
khronos_validation.syncval_shader_accesses_heuristic = true
END
else
    left_out 'validation: the layer is not installed (Debian: vulkan-validationlayers)'
fi

# run_on MANIFEST PROGRAM [ARGUMENT...]: runs the program, sets `messages` to the layer's messages,
# and returns the exit status of the program.
run_on() {
    manifest=$1
    program=$work/build/$2
    shift 2
    # Leak checks are off: drivers leak a little, and are unloaded before a sanitizer can name them.
    messages=$(hidden env VK_DRIVER_FILES="$manifest" VK_ICD_FILENAMES="$manifest" \
        ASAN_OPTIONS=detect_leaks=0 "$program" "$@" 3>&1 >&2)
}
# runs MANIFEST PROGRAM [ARGUMENT...]: checks that the program succeeds without a layer's message.
runs() {
    run_on "$@" || exit 1
    [ -z "$messages" ] || { echo "$2: $messages"; exit 1; }
}
runs "$lavapipe" engine
runs "$lavapipe" no_push
runs "$lavapipe" vulkan_1_2
runs "$lavapipe" guide_gemma3
runs "$lavapipe" subdirectory/subdirectory
[ ! -x "$work/build/c_app/c_app" ] || runs "$lavapipe" c_app/c_app
# prints PROGRAM PAGE: checks that the program prints the line that the page shows.
prints() {
    runs "$lavapipe" "$1" 2>"$work/said"
    grep -qF "It prints \`$(tail -n 1 "$work/said")\`" "$SOURCE/host/guide/$2.md" ||
        { echo "the program of $2.md does not print what it says:"; cat "$work/said"; exit 1; }
}
prints program_own_device own_device
for program in c_static c_shared; do
    [ ! -x "$work/build/c_static/$program" ] || prints c_static/$program languages
done
if [ -x "$work/build/volk" ]; then runs "$lavapipe" volk; else
    left_out 'volk: no volk.h (Debian: libvulkan-volk-dev)'; fi
if [ -n "$swiftshader" ]; then
    runs "$swiftshader" no_push
    runs "$swiftshader" vulkan_1_2
else
    left_out 'no_push on SwiftShader: VKROPE_SWIFTSHADER_ICD is empty'
fi
# Checks that the layer is active, with a program that breaks a rule of Vulkan.
if [ -n "$layered" ]; then
    ! run_on "$lavapipe" engine --without-a-barrier 2>/dev/null ||
        { echo 'engine --without-a-barrier: it succeeded'; exit 1; }
    case $messages in
        *SYNC-HAZARD-READ-AFTER-WRITE*)
            echo 'engine --without-a-barrier: reported, as it should be' ;;
        *) echo "engine --without-a-barrier: a hazard was expected, but the layer says: $messages"; exit 1 ;;
    esac
fi
exit $result
