# SPDX-License-Identifier: MIT
# Implements ./dev install, amalgamate, crate, wheel, package and release: builds the release and
# installs or packs it. ./dev sources this file and provides its functions.
# shellcheck shell=sh

umask 022 # packages contain modes that follow from it

install_to() {
    require install
    configure release release
    compile release
    quietly install cmake --install build/release --prefix "$1"
    echo "installed: the libraries, headers and shaders of vkrope and bin/vkrope are below $1"
}

# write_to COMMAND FOLDER CONTENT
write_to() {
    require "$1"
    quietly "$1" sh "host/packaging/$1.sh" . "$2"
    echo "written: $3 are in $2"
}

amalgamate_to() { write_to amalgamate "$1" 'vkrope.h, vkrope.hpp and vkrope.cpp'; }

crate_to() { write_to crate "$1" 'the crates vkrope-sys and vkrope'; }

wheel_to() {
    require wheel
    configure release release
    compile release
    rm -rf build/wheel
    quietly wheel cmake --install build/release --prefix build/wheel
    sh host/python/wheel.sh build/wheel "$1"
    echo "built: $(ls "$1"/vkrope-*.whl)"
}

package_to() {
    require package
    configure release release
    compile release
    quietly package cpack --config build/release/CPackConfig.cmake -G DEB -B "$1"
    rm -rf "$1/_CPack_Packages"
    echo "built: the packages are in $1"
}

# The commands that make the files of a release, with paths in build/release_files. A folder there
# becomes an archive. The kits are in build.
release_commands='amalgamate vkrope-copy
crate vkrope-crates
package .
wheel .
bundle
bundle --for arm64
bundle --for windows'

# describe FILE: says what a file of a release is.
describe() {
    # shellcheck source=/dev/null
    system=$(. /etc/os-release && echo "$PRETTY_NAME")
    case $1 in
        vkrope-copy-*) echo 'vkrope.h, vkrope.hpp and vkrope.cpp, to copy into a project' ;;
        vkrope-crates-*) echo 'the crates vkrope-sys and vkrope for Rust' ;;
        vkrope-kit-*) echo 'the kit, which tests and times devices without a compiler' ;;
        *.deb) echo "package of $system" ;;
        *.whl) echo "Python package, built on $system" ;;
        "vkrope-$version.tar.gz") echo 'the source' ;;
    esac
}

# release_notes: prints the page of the release whose files are in the working folder.
release_notes() {
    echo "# vkrope $version"
    awk -v version="$version" '/^## / { inside = $2 == version; next } inside' "$tree/CHANGELOG.md"
    printf '\n### The files\n\nMade from commit %s. SHA256SUMS has their checksums.\n\n' "$commit"
    echo '| file | bytes | content |'
    echo '|---|---|---|'
    for file in *; do echo "| $file | $(wc -c <"$file") | $(describe "$file") |"; done
}

# The files appear in the folder when all are made. Archives have the time of the commit.
release_to() {
    prefix=$(git rev-parse --show-prefix 2>/dev/null) && [ -z "$prefix" ] ||
        die 'release: this folder is no clone; a release is a commit'
    [ -z "$(ls -A "$1" 2>/dev/null)" ] || die "release: $1 is not empty"
    changes=$(git status --porcelain | head -n 5)
    [ -z "$changes" ] || die "release: commit or remove these files first:
$changes"
    tree=$PWD
    commit=$(git rev-parse HEAD)
    version=$(project_version)
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH
    files=$tree/build/release_files
    rm -rf "$files" build/vkrope-kit-* && mkdir -p "$files"
    echo "$release_commands" >build/release_commands
    cd "$files" || exit
    while read -r line; do
        # shellcheck disable=SC2086 # the words of a command
        sh "$tree/dev" $line </dev/null
    done <../release_commands
    mv ../vkrope-kit-* .
    git -C "$tree" archive --format=tar.gz "--prefix=vkrope-$version/" HEAD \
        >"vkrope-$version.tar.gz"
    for folder in */; do
        name=${folder%/}-$version
        mv "$folder" "$name"
        cp "$tree/LICENSE" "$name"
        tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
            "--mtime=@$SOURCE_DATE_EPOCH" -cf "$name.tar" "$name"
        gzip -9n "$name.tar"
        rm -r "$name"
    done
    release_notes >../notes.md
    mv ../notes.md .
    sums=$(sha256sum -- *)
    echo "$sums" >SHA256SUMS
    mkdir -p "$1" && mv -- * "$1"
    git -C "$tree" tag --points-at HEAD | grep -qxF "v$version" ||
        say "this commit has no tag v$version, so these files are a trial"
    echo "built: the release is in $1"
}
