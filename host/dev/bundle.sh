# SPDX-License-Identifier: MIT
# Implements ./dev bundle: packs the programs and a Vulkan loader into an archive for
# machines without a compiler. ./dev sources this file and provides its functions.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# Debian's packages of Google Benchmark contain only a shared library, which would need the C++
# library of the other machine. The source is from this machine's Debian mirror, and its checksum is
# verified.
benchmark_version=1.7.1
benchmark_sha256=6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7

fetch_static_benchmark() {
    [ ! -d build/deps/benchmark ] || return 0
    say "fetching and building Google Benchmark $benchmark_version ..."
    part=$PWD/build/deps/part
    rm -rf "$part" && mkdir -p "$part/source"
    quietly benchmark with_lists find_mirror ||
        unavailable benchmark "apt's sources name no Debian mirror"
    file=benchmark_$benchmark_version.orig.tar.gz
    quietly benchmark /usr/lib/apt/apt-helper download-file \
        "$mirror/pool/main/b/benchmark/$file" "$part/$file" "SHA256:$benchmark_sha256" ||
        unavailable benchmark "$file could not be had with the right SHA256"
    tar -xzf "$part/$file" -C "$part/source" --strip-components=1
    quietly benchmark cmake -S "$part/source" -B "$part/build" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DBENCHMARK_ENABLE_TESTING=OFF -DBENCHMARK_ENABLE_WERROR=OFF \
        -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_PREFIX=$part/installed"
    quietly benchmark cmake --build "$part/build" --target install
    mkdir -p "$part/installed/share/doc" && cp "$part/source/LICENSE" "$part/installed/share/doc/"
    mv "$part/installed" build/deps/benchmark
    rm -rf "$part"
}

bundle() {
    require bundle
    [ -e /usr/share/doc/libcli11-dev/copyright ] ||
        die 'bundle: needs Debian, whose packages the licences and the loader come from'
    fetch_static_benchmark
    configure kit release -DVKROPE_STANDALONE=ON -DVKROPE_BENCH=ON -DVKROPE_C=OFF \
        "-Dbenchmark_DIR=$PWD/build/deps/benchmark/lib/cmake/benchmark"
    for target in vkrope_tool vkrope_conformance vkrope_bench; do compile kit $target; done
    version=$(sed -n 's/^#define VKROPE_VERSION_[A-Z]* \([0-9]*\).*/\1/p' \
        host/include/vkrope/version.h | paste -sd . -)
    name=vkrope-kit-$version-$(uname -m)-linux
    kit=build/kit/$name
    rm -rf "$kit" && mkdir -p "$kit/lib/bin" "$kit/lib/loader" "$kit/licences"
    for program in vkrope vkrope-conformance vkrope-bench; do
        strip -o "$kit/lib/bin/$program" "build/kit/bin/$program"
        foreign=$(objdump -p "$kit/lib/bin/$program" | sed -n 's/^ *NEEDED *//p' |
            grep -vE '^(lib[cm]\.so\.6|ld-linux.*)$' || true)
        [ -z "$foreign" ] || die "bundle: $program needs $foreign, which another machine may lack"
    done
    echo "$(uname -s) $(uname -m)" >"$kit/lib/machine"
    objdump -T "$kit"/lib/bin/* | sed -n 's/.*(*GLIBC_\([0-9.]*\)).*/\1/p' | sort -V |
        tail -n 1 >"$kit/lib/glibc"
    cp -L "/usr/lib/$(gcc -print-multiarch)/libvulkan.so.1" "$kit/lib/loader/"
    cp host/packaging/kit/start.sh "$kit/lib/"
    for command in conform bench report vkrope; do
        cp "host/packaging/kit/$command.sh" "$kit/$command" && chmod 755 "$kit/$command"
    done
    cp host/packaging/kit/README.txt LICENSE "$kit/"
    copy_licences
    tar -C build/kit --sort=name --owner=0 --group=0 --numeric-owner --mtime='2020-01-01 UTC' \
        -cf - "$name" | gzip -9n >"build/$name.tar.gz"
    bytes=$(wc -c <"build/$name.tar.gz")
    [ "$bytes" -lt 20000000 ] || die "bundle: build/$name.tar.gz has $bytes bytes, more than 20 MB"
    echo "the kit: build/$name.tar.gz ($((bytes / 1000)) kB; needs glibc $(cat "$kit/lib/glibc"))"
}

copy_licences() {
    for package in libcli11-dev libfmt-dev nlohmann-json3-dev libvulkan1 libstdc++6; do
        cp "/usr/share/doc/$package/copyright" "$kit/licences/$package"
    done
    vma=/usr/share/doc/libvulkan-memory-allocator-dev/copyright
    [ -e $vma ] || vma=build/deps/vma$vma
    cp $vma "$kit/licences/libvulkan-memory-allocator-dev"
    cp build/deps/benchmark/share/doc/LICENSE "$kit/licences/google-benchmark"
}
