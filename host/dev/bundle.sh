# SPDX-License-Identifier: MIT
# Implements ./dev bundle: packs the programs into an archive for machines without a compiler.
# ./dev sources this file and provides its functions.
# shellcheck shell=sh disable=SC2154 # `dev` defines the variables

# Debian's packages of Google Benchmark contain only a shared library, which would need the C++
# library of the other machine. The source is from this machine's Debian mirror, and its checksum is
# verified.
benchmark_version=1.7.1
benchmark_sha256=6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7

# fetch_static_benchmark [ARGUMENT...]: builds it into build/deps/benchmark$suffix, with these
# arguments for CMake.
fetch_static_benchmark() {
    [ ! -d "build/deps/benchmark$suffix" ] || return 0
    say "fetching and building Google Benchmark $benchmark_version ..."
    part=$PWD/build/deps/part
    rm -rf "$part" && mkdir -p "$part/source"
    quietly benchmark with_lists find_mirror ||
        unavailable benchmark "$no_mirror"
    file=benchmark_$benchmark_version.orig.tar.gz
    quietly benchmark /usr/lib/apt/apt-helper download-file \
        "$mirror/pool/main/b/benchmark/$file" "$part/$file" "SHA256:$benchmark_sha256" ||
        unavailable benchmark "$file could not be had with the right SHA256"
    tar -xzf "$part/$file" -C "$part/source" --strip-components=1
    quietly benchmark cmake -S "$part/source" -B "$part/build" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DBENCHMARK_ENABLE_TESTING=OFF -DBENCHMARK_ENABLE_WERROR=OFF \
        -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_PREFIX=$part/installed" "$@"
    quietly benchmark cmake --build "$part/build" --target install
    mkdir -p "$part/installed/share/doc" && cp "$part/source/LICENSE" "$part/installed/share/doc/"
    mv "$part/installed" "build/deps/benchmark$suffix"
    rm -rf "$part"
}

# with_headers COMMAND...: runs the command with CMake arguments that name copies of the headers of
# Debian's packages, because the other headers in /usr/include are for this machine.
with_headers() {
    copies=$PWD/build/deps/headers
    rm -rf "$copies" && mkdir -p "$copies"
    # Debian 12 has no package of the allocator: build/deps/vma has its headers.
    { dpkg -L libcli11-dev libfmt-dev libvulkan-dev libvulkan-memory-allocator-dev \
        nlohmann-json3-dev spirv-headers 2>/dev/null || :; } |
        grep -E '^/usr/(include/.*/|lib/.*/cmake/.*/|share/cmake/.*/|include/vk_mem)' |
        grep -v fmt-targets-none | sed 's|^/||' | tar -C / -ch --no-recursion -T - |
        tar -x -C "$copies" # with the times of the files, so that no build starts afresh
    for config in $(cd "$copies" && find usr -name '*[Cc]onfig.cmake'); do
        folder=${config%/*}
        set -- "$@" "-D${folder##*/}_DIR=$copies/$folder"
    done
    "$@" "-DVKROPE_SPIRV_HPP=$copies/usr/include/spirv/unified1/spirv.hpp" \
        "-DVulkan_INCLUDE_DIR=$copies/usr/include" -DVulkan_LIBRARY=not-linked
}

# build_programs [ARGUMENT...]: builds the programs into build/kit$suffix, with these arguments for
# CMake.
# shellcheck disable=SC2120 # with_headers passes arguments
build_programs() {
    fetch_static_benchmark "$@"
    configure "kit$suffix" release -DVKROPE_STANDALONE=ON -DVKROPE_BENCH=ON -DVKROPE_C=OFF \
        "-Dbenchmark_DIR=$PWD/build/deps/benchmark$suffix/lib/cmake/benchmark" "$@"
    for target in vkrope_tool vkrope_conformance vkrope_bench; do
        compile "kit$suffix" $target
    done
}

# start_kit PLATFORM PREFIX ENDING LIBRARIES: makes the folder of the kit with its programs, and
# sets `name` and `kit`. PREFIX is that of the binutils, ENDING that of the programs' names, and
# LIBRARIES an expression of the shared libraries that every such system has.
start_kit() {
    version=$(project_version)
    name=vkrope-kit-$version-$1
    kit=build/kit$suffix/$name
    rm -rf "$kit" && mkdir -p "$kit/lib/bin" "$kit/licences"
    # MinGW's binutils write this time into programs: that of the files of the archive.
    export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-1577836800}"
    for program in "vkrope$3" "vkrope-conformance$3" "vkrope-bench$3"; do
        "$2strip" -o "$kit/lib/bin/$program" "build/kit$suffix/bin/$program"
        foreign=$("$2objdump" -p "$kit/lib/bin/$program" |
            sed -n 's/^ *NEEDED *//p;s/^.*DLL Name: //p' | grep -vE "^($4)\$" || true)
        [ -z "$foreign" ] || die "bundle: $program needs $foreign, which another machine may lack"
    done
    cp LICENSE "$kit/"
    for package in libcli11-dev libfmt-dev nlohmann-json3-dev libstdc++6; do
        cp "/usr/share/doc/$package/copyright" "$kit/licences/$package"
    done
    vma=/usr/share/doc/libvulkan-memory-allocator-dev/copyright
    [ -e $vma ] || vma=build/deps/vma$vma
    cp $vma "$kit/licences/libvulkan-memory-allocator-dev"
    cp "build/deps/benchmark$suffix/share/doc/LICENSE" "$kit/licences/google-benchmark"
}

kit_commands='bench conform report vkrope'

# check_size ARCHIVE NOTE: prints the name of the archive, which must be small.
check_size() {
    bytes=$(wc -c <"$1")
    [ "$bytes" -lt 20000000 ] || die "bundle: $1 has $bytes bytes, more than 20 MB"
    echo "the kit: $1 ($((bytes / 1000)) kB; $2)"
}

# pack_for_linux MACHINE PREFIX ROOT: packs the programs for Linux on this machine, as `uname -m`
# names it. PREFIX is that of its compiler, and ROOT has its package libvulkan1.
pack_for_linux() {
    start_kit "$1-linux" "$2" '' 'lib[cm]\.so\.6|ld-linux.*'
    mkdir "$kit/lib/loader"
    echo "Linux $1" >"$kit/lib/machine"
    "$2objdump" -T "$kit"/lib/bin/* | sed -n 's/.*(*GLIBC_\([0-9.]*\)).*/\1/p' | sort -V |
        tail -n 1 >"$kit/lib/glibc"
    cp -L "$3/usr/lib/$("$2gcc" -print-multiarch)/libvulkan.so.1" "$kit/lib/loader/"
    cp "$3/usr/share/doc/libvulkan1/copyright" "$kit/licences/libvulkan1"
    for command in $kit_commands; do
        cp host/packaging/kit/start.sh "$kit/$command" && chmod 755 "$kit/$command"
    done
    cp host/packaging/kit/README.txt "$kit/"
    tar -C "build/kit$suffix" --sort=name --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --mtime='2020-01-01 UTC' -cf - "$name" | gzip -9n >"build/$name.tar.gz"
    check_size "build/$name.tar.gz" "needs glibc $(cat "$kit/lib/glibc")"
}

kit_for_linux() {
    build_programs
    pack_for_linux "$(uname -m)" '' ''
}

# The loader is from the packages on which the tests run the kit.
kit_for_arm64() {
    fetch_arm64
    [ -d build/deps/arm64 ] ||
        die 'bundle: --for arm64 needs Debian 12 on amd64; on arm64, leave --for out'
    prefix=aarch64-linux-gnu-
    with_headers build_programs -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=${prefix}g++ -DCMAKE_C_COMPILER=${prefix}gcc
    pack_for_linux aarch64 $prefix build/deps/arm64
}

kit_for_windows() {
    prefix=x86_64-w64-mingw32-
    with_headers build_programs -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64 \
        -DCMAKE_CXX_COMPILER=${prefix}g++-posix -DCMAKE_C_COMPILER=${prefix}gcc-posix \
        -DCMAKE_RC_COMPILER=${prefix}windres
    start_kit x86_64-windows $prefix .exe 'KERNEL32\.dll|msvcrt\.dll'
    cp /usr/share/doc/mingw-w64-x86-64-dev/copyright "$kit/licences/mingw-w64"
    for file in "$kit/LICENSE" "$kit"/licences/*; do
        sed 's/$/\r/' "$file" >"$file.txt"
        rm "$file"
    done
    for command in $kit_commands; do
        sed 's/$/\r/' host/packaging/kit/start.cmd >"$kit/$command.cmd"
    done
    sed -e 's|\./lib/bin/|.\\lib\\bin\\|' -e 's|\./\([a-z]\)|.\\\1|g' \
        -e 's|in LICENSE|in LICENSE.txt|' -e 's|[^ ]*\*\.json|REPORT.json ...|' -e 's/$/\r/' \
        host/packaging/kit/README.txt >"$kit/README.txt"
    # The archives of other programs contain the times of this run, and the number of the user.
    chmod -R u=rwX,go=rX "$kit"
    find "$kit" -exec touch -d '2020-01-01 UTC' {} +
    (cd build/kit-windows && TZ=UTC python3 -m zipfile -c "../$name.zip" "$name")
    check_size "build/$name.zip" 'needs Windows 10 of 2019 or newer'
}

# bundle [--for SYSTEM]: makes the kit for this machine, or for a system that is cross-compiled for.
bundle() {
    suffix=
    system=linux
    if [ $# != 0 ]; then
        suffix=-$2
        system=$2
        case $2 in
            arm64 | windows) ;;
            *)
                die "bundle: --for: '$2' is not a system for which there is a kit (arm64, windows)"
                ;;
        esac
    fi
    require "bundle|bundle_$system"
    [ -e /usr/share/doc/libcli11-dev/copyright ] ||
        die 'bundle: needs Debian, whose packages the licences and the headers come from'
    "kit_for_$system"
}
