#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the Debian packages: lintian reports nothing, apt can install them, and unpacked together
# they serve a C consumer and a C++ consumer (each through pkg-config), and their commands run.
set -eu
[ -n "${VK_DRIVER_FILES:-}" ] || { echo 'skipped: no lavapipe'; exit 77; }
left_out() {
    echo "skipped: $*"
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}
for program in dpkg-deb dpkg-shlibdeps lintian pkg-config; do
    command -v $program >/dev/null || left_out "there is no $program (./dev test --thorough)"
done
sanitize=$(sed -n 's/^VKROPE_SANITIZE:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
[ -z "$sanitize" ] || { echo 'skipped: packages are not made with sanitizers'; exit 77; }
wrong() { echo "FAILED: $*"; exit 1; }
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
cd "$SCRATCH"

# The build makes a package for each component.
cpack --config "$BUILD/CPackConfig.cmake" -G DEB -B "$SCRATCH/debs" >cpack.log 2>&1 ||
    { tail -n 20 cpack.log; exit 1; }
for package in "libvkrope${VERSION%.*}" libvkrope-dev vkrope-tools; do
    [ -n "$(find debs -maxdepth 1 -name "${package}_${VERSION}_*.deb")" ] ||
        wrong "no package $package: $(ls debs)"
done

# Some tags of lintian do not apply. One concerns only uploads to Debian. The libraries are for one
# architecture, so they and the files of pkg-config are in lib itself. The commands have --help, not
# manual pages.
lintian --fail-on error,warning debs/*.deb --suppress-tags \
    initial-upload-closes-no-bugs,pkg-config-unavailable-for-cross-compilation,no-manual-page ||
    wrong 'lintian: see above'

# Where apt has lists of packages, the dependencies must be available.
if [ -n "$(apt-cache search --names-only '^libvulkan1$' 2>/dev/null)" ]; then
    apt-get install --simulate ./debs/*.deb >apt.log 2>&1 || { cat apt.log; wrong 'apt-get'; }
    [ "$(grep -c '^Inst .*vkrope' apt.log)" = 3 ] || wrong 'apt-get would not install all three'
else
    echo 'left out: apt has no lists of packages'
fi

for package in debs/*.deb; do dpkg-deb -x "$package" root; done
root=$SCRATCH/root/usr
export LD_LIBRARY_PATH="$root/lib" PKG_CONFIG_PATH="$root/lib/pkgconfig"
[ "$(pkg-config --modversion vkrope)" = "$VERSION" ] || wrong 'vkrope.pc has another version'
consumers=$SOURCE/tests/package/consumers
# shellcheck disable=SC2046 # flags are words
cc -std=c11 "$consumers"/c_app/main.c -o c_app $(pkg-config --cflags --libs vkrope) -lm
./c_app
# shellcheck disable=SC2046
"$CXX" -std=c++17 '-DENGINE_NAME="cpp_app"' "$consumers"/engine/*.cpp -o cpp_app \
    $(pkg-config --cflags --libs vkrope-kernel) -lvulkan
./cpp_app
"$root/bin/vkrope" explain --model "$SOURCE/tests/data/models/llama-3.1-8b.json" >explained
"$root/bin/vkrope-conformance" --version >version
