# SPDX-License-Identifier: MIT
# Implements ./dev install, amalgamate, wheel and package: builds the release and installs or packs
# it. ./dev sources this file and provides its functions.
# shellcheck shell=sh

install_to() {
    require install
    configure release release
    compile release
    quietly install cmake --install build/release --prefix "$1"
    echo "installed: the libraries, headers and shaders of vkrope and bin/vkrope are below $1"
}

amalgamate_to() {
    require amalgamate
    quietly amalgamate sh host/packaging/amalgamate.sh . "$1"
    echo "written: vkrope.h, vkrope.hpp and vkrope.cpp are in $1"
}

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
    quietly package cpack --config build/release/CPackSourceConfig.cmake -B "$1"
    rm -rf "$1/_CPack_Packages"
    echo "built: the packages are in $1"
}
