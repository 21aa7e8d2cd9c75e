# SPDX-License-Identifier: MIT
# Fetches the devices of the tests: SwiftShader, the lavapipe of Debian 13, and that of arm64. This
# machine already has its own lavapipe. ./dev sources this file and provides its functions.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# Lets lavapipe keep compiled shaders, for tests that create the same pipelines.
keep_shaders() {
    export MESA_SHADER_CACHE_DISABLE=false MESA_SHADER_CACHE_DIR="$PWD/build/deps/mesa_cache"
    mkdir -p "$MESA_SHADER_CACHE_DIR"
}

# Fetches a second Vulkan device for the tests, with few features where lavapipe has all of them,
# and a mock device that computes nothing but takes buffers of any size. Debian ships both inside
# Chromium, which is not installed.
fetch_swiftshader() {
    [ -n "$debian" ] && [ ! -e build/deps/swiftshader/mock_icd.json ] || return 0
    case $(dpkg --print-architecture) in amd64 | arm64) ;; *) return 0 ;; esac
    say 'fetching SwiftShader, a second device for the tests (30 MB) ...'
    rm -rf build/deps/part && mkdir -p build/deps/part/swiftshader
    quietly swiftshader with_lists unpack_swiftshader ||
        unavailable swiftshader 'SwiftShader could not be downloaded from chromium-common'
    # The loader resolves this path relative to the JSON file, so the checkout may move.
    echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "./libvk_swiftshader.so", "api_version": "1.3.0"}}' \
        >build/deps/part/swiftshader/icd.json
    echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "./libVkICD_mock_icd.so", "api_version": "1.3.0"}}' \
        >build/deps/part/swiftshader/mock_icd.json
    rm -rf build/deps/swiftshader
    mv build/deps/part/swiftshader build/deps/swiftshader
    rm -r build/deps/part
}

unpack_swiftshader() (
    cd build/deps/part && rm -f ./*.deb && apt-get download chromium-common &&
        dpkg-deb --fsys-tarfile chromium-common_*.deb |
        tar -x -C swiftshader --strip-components 4 ./usr/lib/chromium/libvk_swiftshader.so \
        ./usr/lib/chromium/libVkICD_mock_icd.so
)

# Fetches Debian 13's lavapipe and validation layer, because Debian 12's validation layer is older
# and misses bugs (tests/device/seeded_bugs_test.cpp). Debian 13's libraries need Debian 13's C
# library, so build/deps/debian13/run starts a program with all of them and with nothing of this
# system's Vulkan.
fetch_debian13() {
    [ "$debian" = 12 ] && [ ! -d build/deps/debian13 ] || return 0
    case $(dpkg --print-architecture) in amd64 | arm64) ;; *) return 0 ;; esac
    say "fetching Debian 13's lavapipe and validation layer, a third device for the tests (75 MB) ..."
    rm -rf build/deps/part && mkdir -p build/deps/part
    quietly debian13 with_lists find_mirror ||
        unavailable debian13 "$no_mirror"
    quietly debian13 unpack_debian13 ||
        unavailable debian13 \
        "Debian 13's lavapipe and validation layer could not be downloaded from this system's mirror"
    mv build/deps/part/debian13 build/deps/debian13
    rm -r build/deps/part
}

# unpack_packages SUITE ARCHITECTURE PACKAGE... unpacks the packages, and all that they need, into
# root/ of this folder. With separate lists, cache and settings, apt computes what a system without
# any package would install.
unpack_packages() {
    suite=$1
    architecture=$2
    shift 2
    mkdir -p lists/partial archives/partial root
    : >status
    cat >apt.conf <<END
Dir::Etc::sourcelist "$PWD/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$PWD/lists";
Dir::State::status "$PWD/status";
Dir::Cache::archives "$PWD/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Default-Release "";
#clear APT::Update;
END
    options="arch=$architecture target=Packages signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
    echo "deb [$options] $mirror $suite main" >sources.list
    apt-get -c apt.conf update &&
        apt-get -c apt.conf install -y --no-install-recommends --download-only "$@" || return
    for deb in archives/*.deb; do
        dpkg-deb -x "$deb" root || return
    done
}

unpack_debian13() (
    cd build/deps/part && mkdir -p debian13/lib debian13/layers &&
        unpack_packages trixie "$(dpkg --print-architecture)" \
            libstdc++6 libvulkan1 mesa-vulkan-drivers vulkan-validationlayers || exit
    cp root/usr/share/vulkan/icd.d/lvp_icd*.json debian13/lvp_icd.json &&
        cp root/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json debian13/layers &&
        cp root/usr/lib/*/ld-linux-*.so.* debian13/ld.so &&
        keep_needed "$PWD"/root/usr/lib/*-linux-gnu || exit
    cat >debian13/run <<'END'
#!/bin/sh
# run PROGRAM ARGUMENT... starts a program with Debian 13's dynamic loader, libraries, Vulkan
# loader, lavapipe and validation layer. A library that only the program needs is this system's.
here=$(cd -- "$(dirname -- "$0")" && pwd)
export VK_DRIVER_FILES="$here/lvp_icd.json" VK_LAYER_PATH="$here/layers"
export VK_IMPLICIT_LAYER_PATH="$here/none"
exec "$here/ld.so" --inhibit-cache --library-path "$here/lib" "$@"
END
    chmod +x debian13/run
)

# Fetches lavapipe for arm64 and what the kit's scripts call, for tests/package/arm64.sh.
fetch_arm64() {
    [ "$debian" = 12 ] && [ ! -e build/deps/arm64/usr/bin/env ] || return 0
    [ "$(dpkg --print-architecture)" = amd64 ] || return 0
    say "fetching arm64's lavapipe, for tests under qemu (65 MB) ..."
    rm -rf build/deps/part && mkdir -p build/deps/part
    quietly arm64 with_lists find_mirror || unavailable arm64 "$no_mirror"
    quietly arm64 unpack_arm64 ||
        unavailable arm64 "arm64's lavapipe could not be downloaded from this system's mirror"
    rm -rf build/deps/arm64
    mv build/deps/part/root build/deps/arm64
    rm -r build/deps/part
}

unpack_arm64() (
    cd build/deps/part && unpack_packages bookworm arm64 \
        coreutils dash grep libc-bin libvulkan1 mesa-vulkan-drivers sed
)

# keep_needed FOLDER copies the driver, the layer, the Vulkan loader and all that they need. The
# remaining files belong to other drivers.
keep_needed() {
    for library in libvulkan_lvp.so libVkLayer_khronos_validation.so libvulkan.so.1; do
        echo " => $1/$library"
        debian13/ld.so --inhibit-cache --library-path "$1" --list "$1/$library" ||
            echo " => nothing for $library"
    done | sed -n 's/ (0x[0-9a-f]*)$//; s/.* => //p' | sort -u | while read -r file; do
        case $file in
            "$1"/*) cp -L "$file" debian13/lib || exit ;;
            *) echo "not in Debian 13's packages: $file" && exit 1 ;;
        esac
    done
}
