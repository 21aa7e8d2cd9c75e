# SPDX-License-Identifier: MIT
# Installs Vulkan Memory Allocator on Debian 12, which does not package it, from Debian 13's
# package, which contains only headers. ./dev sources this file and provides its functions.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

vma_version=3.2.1+dfsg-1
vma_sha256=75a48c6bfd4779b606576be9f7bb3a8ad4def7642d52db76886c0e6ea3dc9341

# Downloads from this machine's Debian mirror and verifies the checksum; apt's sources and lists
# stay unchanged. A folder gets its final name when it is complete, so that an interrupted download
# starts over.
fetch_vma() {
    [ ! -d build/deps/vma ] || return 0
    say "fetching libvulkan-memory-allocator-dev $vma_version ..."
    rm -rf build/deps/part && mkdir -p build/deps/part/vma
    quietly vma with_lists find_mirror || unavailable vma "$no_mirror"
    file=libvulkan-memory-allocator-dev_${vma_version}_all.deb
    quietly vma /usr/lib/apt/apt-helper download-file \
        "$mirror/pool/main/v/vulkan-memory-allocator/$file" \
        "$PWD/build/deps/part/$file" "SHA256:$vma_sha256" ||
        unavailable vma "$file could not be downloaded with the expected SHA256" \
            'if Debian 13 has a newer version, update host/dev/vma.sh'
    dpkg-deb -x "build/deps/part/$file" build/deps/part/vma
    mv build/deps/part/vma build/deps/vma
    rm -r build/deps/part
}

fetch_vma
