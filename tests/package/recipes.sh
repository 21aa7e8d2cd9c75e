#!/bin/sh
# SPDX-License-Identifier: MIT
# The vcpkg port and the Conan recipe promise what the project has: its version, its source archive,
# its options, and a dependency for each package that CMake looks for. Neither tool is in Debian, so
# stand-ins run them; python3 runs Conan's.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/vkrope-$VERSION"
packaging=$SOURCE/host/packaging
cd "$SCRATCH"
failed=0
wrong() { echo "$*"; failed=1; }
# has TEXT WORD WHAT
has() { case " $1 " in *" $2 "*) ;; *) wrong "$3 lacks $2: $1" ;; esac }
lacks() { case " $1 " in *" $2 "*) wrong "$3 has $2: $1" ;; esac }

# The archive that cpack makes has this name and a folder of the same name.
grep -qx 'set(CPACK_SOURCE_PACKAGE_FILE_NAME vkrope-..PROJECT_VERSION.)' "$packaging/cpack.cmake" ||
    wrong 'cpack.cmake names the source archive otherwise'
cp "$SOURCE/CMakeLists.txt" "$SOURCE/LICENSE" "vkrope-$VERSION"
cp -r "$packaging/vcpkg" port
"$CMAKE" -E tar czf "port/vkrope-$VERSION.tar.gz" "vkrope-$VERSION"

# CMake's names of packages, and theirs.
of_vcpkg() {
    case $1 in
        VulkanMemoryAllocator) echo vulkan-memory-allocator ;;
        nlohmann_json) echo nlohmann-json ;;
        CLI11) echo cli11 ;;
        fmt) echo fmt ;;
        Vulkan | VulkanHeaders) echo vulkan-headers ;;
        *) echo "unknown-$1" ;;
    esac
}
of_conan() { of_vcpkg "$1" | sed 's/nlohmann-json/nlohmann_json/'; }
# packages_of FOLDER...: what CMake looks for there.
packages_of() {
    for folder; do
        sed -n 's/^ *find_package(\([A-Za-z0-9_]*\).*/\1/p' "$SOURCE/$folder/CMakeLists.txt"
    done |
        sort -u
}

# vcpkg: each feature is an option of CMake, and each option a feature.
json() { "$CMAKE" -DFILE="$packaging/vcpkg/vcpkg.json" -DWHERE="$1" -P json.cmake 2>&1; }
cat >json.cmake <<'END'
file(READ ${FILE} text)
string(JSON part GET "${text}" ${WHERE})
string(REGEX MATCHALL "\"[a-z0-9-]+\"" words "${part}")
list(JOIN words " " line)
string(REPLACE "\"" "" line "${line}")
message("${line}")
END
port() {
    "$CMAKE" -DPORT="$SCRATCH/port" "-DFEATURES=$1" -P "$SOURCE/tests/package/recipes.cmake" \
        >"port.log" 2>&1 || { wrong "the port fails with '$1'"; cat port.log; }
    rm -rf extracted
}
port ''
grep -qx "version $VERSION" port.log || wrong "the port has another version than $VERSION"
grep -qx 'config lib/cmake/vkrope' port.log || wrong 'the port looks elsewhere for the config file'
for feature in c model runtime tools; do
    option=VKROPE_$(echo $feature | tr "[:lower:]" "[:upper:]")
    grep -q "^option($option\$\|^option($option " "$SOURCE/CMakeLists.txt" ||
        wrong "CMake has no option $option"
    port ''
    grep -q -- "-D$option=OFF" port.log || wrong "the port does not turn $option off"
    port "$feature"
    grep -q -- "-D$option=ON" port.log || wrong "the port does not turn $option on"
    json "features;$feature" >/dev/null || wrong "vcpkg.json has no feature $feature"
done
options=$(grep -o '^option(VKROPE_[A-Z]*' "$SOURCE/CMakeLists.txt" | sed 's/option(//')
for option in $options; do
    case $option in VKROPE_STANDALONE | VKROPE_WERROR) continue ;; esac # off by default
    grep -q -- "-D$option=" port.log || wrong "the port does not set $option"
done
for name in $(sed -n 's/^tools //p' port.log | tr ';' ' '); do
    grep -rq "vkrope_install_program([a-z_]* $name)" "$SOURCE/host/tools" ||
        wrong "the port copies $name, which is not installed"
done
always=$(json dependencies)
for package in glslang spirv-headers; do has "$always" $package 'vcpkg.json'; done
for package in $(packages_of host); do
    has "$always" "$(of_vcpkg "$package")" 'vcpkg.json'
done
for part in model runtime tools; do
    for package in $(packages_of host/$part); do
        name=$(of_vcpkg "$package")
        [ "$part $package" = 'tools nlohmann_json' ] || # by its model
            has "$(json "features;$part")" "$name" "the feature $part"
        lacks "$always" "$name" 'vcpkg.json without features'
    done
done

# Conan.
if command -v python3 >/dev/null; then
    python3 "$SOURCE/tests/package/recipes.py" "$packaging/conan/conanfile.py" >conan.log
    grep -qx "version $VERSION" conan.log || wrong "the recipe has another version than $VERSION"
    grep -qx "archive vkrope-$VERSION.tar.gz" conan.log || wrong 'the recipe wants another archive'
    for refused in c tools 'c tools' 'c model' 'runtime tools'; do
        grep -qx "$refused: refused" conan.log || wrong "the recipe takes '$refused' alone"
    done
    nothing=$(sed -n 's/^nothing: //p' conan.log)
    all=$(sed -n 's/^c model runtime tools: //p' conan.log)
    for option in $options; do
        case $option in VKROPE_STANDALONE | VKROPE_WERROR) continue ;; esac
        value=ON
        case $option in VKROPE_TESTS | VKROPE_BENCH) value=OFF ;; esac
        has "$all" "$option=$value" 'the recipe with all'
        [ "$option" = VKROPE_INSTALL ] || has "$nothing" "$option=OFF" 'the recipe without options'
    done
    for package in glslang spirv-headers cmake; do has "$nothing" $package 'the recipe'; done
    for package in $(packages_of host); do
        has "$nothing" "$(of_conan "$package")" 'the recipe'
    done
    for part in model runtime tools; do
        for package in $(packages_of host/$part); do
            has "$all" "$(of_conan "$package")" 'the recipe with all'
            lacks "$nothing" "$(of_conan "$package")" 'the recipe without options'
        done
    done
else
    echo 'Conan: left out, there is no python3'
fi
exit $failed
