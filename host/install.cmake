# SPDX-License-Identifier: MIT
# Installs files for applications: libraries, headers, the GLSL files, and a package for
# find_package(vkrope).
include(CMakePackageConfigHelpers)
get_property(tiers GLOBAL PROPERTY VKROPE_TIERS)
# Components, for packages: runtime (the shared library), development, tools.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS ${tiers} EXPORT vkropeTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development RUNTIME COMPONENT runtime)
set(headers version.h vkrope.h vkrope.hpp)
list(TRANSFORM headers PREPEND include/vkrope/)
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkrope)
# Installs every .glsl file, because they include each other.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/shaders/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vkrope/shaders
        FILES_MATCHING PATTERN "*.glsl" PATTERN "interface.h")
install(EXPORT vkropeTargets NAMESPACE vkrope:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vkrope)
configure_package_config_file(vkropeConfig.cmake.in ${PROJECT_BINARY_DIR}/vkropeConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vkrope)
# Before 1.0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vkropeConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vkropeConfig.cmake
    ${PROJECT_BINARY_DIR}/vkropeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vkrope)
# Files of pkg-config: for the shared library of the C interface, and for the static library of C++.
file(RELATIVE_PATH relative_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(packages vkrope-kernel)
if(TARGET vkrope_c)
    list(APPEND packages vkrope)
endif()
foreach(package ${packages})
    configure_file(packaging/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
