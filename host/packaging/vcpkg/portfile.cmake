# SPDX-License-Identifier: MIT
# A vcpkg port of the source archive that lies beside this file: nothing is downloaded.
vcpkg_extract_source_archive(SOURCE_PATH
    ARCHIVE "${CMAKE_CURRENT_LIST_DIR}/vkrope-${VERSION}.tar.gz")
vcpkg_check_features(OUT_FEATURE_OPTIONS options
    FEATURES
        c       VKROPE_C
        model   VKROPE_MODEL
        runtime VKROPE_RUNTIME
        tools   VKROPE_TOOLS)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS ${options} -DVKROPE_INSTALL=ON -DVKROPE_TESTS=OFF -DVKROPE_BENCH=OFF
        "-DVKROPE_GLSLANG=${CURRENT_HOST_INSTALLED_DIR}/tools/glslang/glslangValidator${VCPKG_HOST_EXECUTABLE_SUFFIX}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/vkrope)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES vkrope vkrope-conformance AUTO_CLEAN)
endif()
# The C interface is a shared library in every triplet.
if("c" IN_LIST FEATURES)
    set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
