# SPDX-License-Identifier: MIT
# vkrope_install_program(TARGET NAME): the program, and what it says of itself: its manual page and
# its completion for bash, zsh and fish. When cross-compiling without an emulator, only the program.
function(vkrope_install_program target name)
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
    if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
        return()
    endif()
    set(places man man/man1/${name}.1
        bash bash-completion/completions/${name}
        zsh zsh/vendor-completions/_${name}
        fish fish/vendor_completions.d/${name}.fish)
    set(outputs)
    while(places)
        list(POP_FRONT places what place)
        set(out ${CMAKE_CURRENT_BINARY_DIR}/generated/${place})
        get_filename_component(folder ${out} DIRECTORY)
        file(MAKE_DIRECTORY ${folder})
        add_custom_command(OUTPUT ${out} DEPENDS ${target} VERBATIM COMMAND ${CMAKE_COMMAND}
            -DPROGRAM=$<TARGET_FILE:${target}> -DWHAT=${what} -DOUT=${out}
            -P ${PROJECT_SOURCE_DIR}/host/packaging/generate.cmake)
        list(APPEND outputs ${out})
        get_filename_component(folder ${place} DIRECTORY)
        install(FILES ${out} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT tools)
    endwhile()
    add_custom_target(${target}_manual ALL DEPENDS ${outputs})
endfunction()

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
