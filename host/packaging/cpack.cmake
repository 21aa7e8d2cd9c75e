# SPDX-License-Identifier: MIT
# Settings of cpack for the Debian packages (libvkrope0.1, libvkrope-dev, vkrope-tools).
set(VKROPE_MAINTAINER "vkrope authors <maintainers@vkrope.invalid>" CACHE STRING
    "Name and address that the Debian packages give as their maintainer")

set(CPACK_PACKAGE_NAME vkrope)
set(CPACK_PACKAGE_VENDOR vkrope)
set(CPACK_PACKAGE_CONTACT "${VKROPE_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)

set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(of_runtime "libvkrope${soversion} (= ${PROJECT_VERSION})")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/host/packaging/debian_files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/host/packaging/debian_triggers.cmake)
set(CPACK_COMPONENTS_ALL tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME vkrope-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "libvulkan1, mesa-vulkan-drivers | vulkan-icd")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Rotary position embedding on Vulkan: commands
 vkrope rotates tensors in files, explains a model's RoPE and judges the
 output of another engine. vkrope-conformance tests Vulkan devices.")
if(TARGET vkrope_c)
    list(APPEND CPACK_COMPONENTS_ALL runtime development)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libvkrope${soversion})
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
        ${PROJECT_SOURCE_DIR}/host/packaging/triggers)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libvulkan1, mesa-vulkan-drivers | vulkan-icd")
    set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Rotary position embedding on Vulkan: shared library
 The library rotates the query and key tensors of transformer models on
 Vulkan devices, within a stated error bound at every position. It serves
 programs that use its C interface.")
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libvkrope-dev)
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${of_runtime}, libvulkan-dev")
    set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Rotary position embedding on Vulkan: development
 Headers for C and C++, static libraries, shaders, and files for CMake and
 pkg-config, to build programs that rotate the query and key tensors of
 transformer models.")
endif()
include(CPack)
