# SPDX-License-Identifier: MIT
# vkrope_install_modules(TARGET KERNELS): SPIR-V modules of the kernels in the file KERNELS, which
# the program makes with the library's own tables. Not when cross-compiling without an emulator.
function(vkrope_install_modules target kernels)
    if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
        return()
    endif()
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated/spirv)
    add_custom_command(OUTPUT ${folder}/manifest.json DEPENDS ${target} ${kernels} VERBATIM
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
        COMMAND ${target} spirv --info ${kernels} --out ${folder})
    add_custom_target(${target}_modules ALL DEPENDS ${folder}/manifest.json)
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vkrope/spirv
            COMPONENT tools)
endfunction()
