# SPDX-License-Identifier: MIT
# Defines the libraries for C programs: a static one for engines and, if all tiers are built, a
# shared library of all tiers.
add_library(vkrope_c_static INTERFACE)
add_library(vkrope::c_static ALIAS vkrope_c_static)
set_target_properties(vkrope_c_static PROPERTIES EXPORT_NAME c_static)
target_link_libraries(vkrope_c_static INTERFACE vkrope_kernel vkrope_frequencies)
# A project without C++ links with the C compiler, which does not add the C++ library by itself.
set(cxx_runtime ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER cxx_runtime INCLUDE REGEX "^(std)?c\\+\\+(abi)?$|^m$")
target_link_libraries(vkrope_c_static INTERFACE "$<$<LINK_LANGUAGE:C>:${cxx_runtime}>")
set_property(GLOBAL APPEND PROPERTY VKROPE_TIERS vkrope_c_static)

if(NOT TARGET vkrope_model OR NOT TARGET vkrope_runtime)
    message(STATUS
        "Without the runtime and model tiers, the C interface is built as vkrope::c_static alone")
    return()
endif()

# Compiles the files that define functions of vkrope.h a second time for the shared library, with
# exported functions. The static tiers hide these functions, so that two copies of vkrope in one
# process do not clash.
function(vkrope_exported name)
    set(sources ${ARGN})
    list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/host/)
    add_library(vkrope_c_${name} OBJECT ${sources})
    set_target_properties(vkrope_c_${name} PROPERTIES
        UNITY_BUILD ${VKROPE_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 0)
    target_include_directories(vkrope_c_${name} PRIVATE ${PROJECT_SOURCE_DIR}/host/include
        ${PROJECT_SOURCE_DIR}/host ${PROJECT_SOURCE_DIR}/shaders)
    target_link_libraries(vkrope_c_${name} PRIVATE Vulkan::Headers vkrope_build_flags)
    target_compile_definitions(vkrope_c_${name} PRIVATE VKROPE_C_EXPORTS)
endfunction()
foreach(tier frequencies kernel runtime)
    get_target_property(${tier} vkrope_${tier} SOURCES)
    list(TRANSFORM ${tier} PREPEND ${tier}/)
endforeach()
vkrope_exported(kernel ${frequencies} ${kernel})
set_target_properties(vkrope_c_kernel PROPERTIES CXX_STANDARD 17)
target_compile_options(vkrope_c_kernel PRIVATE ${no_exceptions})
vkrope_embeds(vkrope_c_kernel rope positions)
vkrope_exported(runtime ${runtime} model/interface.cpp)
set_source_files_properties(runtime/host_rotation.cpp runtime/instance.cpp model/interface.cpp
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
find_package(VulkanMemoryAllocator 3.0 CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
target_link_libraries(vkrope_c_runtime PRIVATE GPUOpen::VulkanMemoryAllocator
    nlohmann_json::nlohmann_json)

add_library(vkrope_c SHARED $<TARGET_OBJECTS:vkrope_c_kernel> $<TARGET_OBJECTS:vkrope_c_runtime>)
add_library(vkrope::c ALIAS vkrope_c)
# Before 1.0 a minor version may break the interface.
set_target_properties(vkrope_c PROPERTIES LINKER_LANGUAGE CXX
    EXPORT_NAME c OUTPUT_NAME vkrope VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(vkrope_c
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/host/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# The library contains all tiers, so users link nothing else.
target_link_libraries(vkrope_c PUBLIC Vulkan::Headers
    PRIVATE $<BUILD_INTERFACE:vkrope_build_flags> $<BUILD_INTERFACE:vkrope_model>
    ${CMAKE_DL_LIBS})
set_property(GLOBAL APPEND PROPERTY VKROPE_TIERS vkrope_c)
if(UNIX AND NOT APPLE)
    # Ninja's shell would lose a $ in the path of a link option, so the path is relative to the
    # folder in which the linker runs.
    configure_file(packaging/exports.map exports.map COPYONLY)
    set(map exports.map)
    if(CMAKE_GENERATOR MATCHES Ninja)
        file(RELATIVE_PATH map ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
    endif()
    target_link_options(vkrope_c PRIVATE LINKER:--version-script=${map})
    set_target_properties(vkrope_c PROPERTIES LINK_DEPENDS
        ${CMAKE_CURRENT_SOURCE_DIR}/packaging/exports.map)
endif()
