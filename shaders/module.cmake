# SPDX-License-Identifier: MIT
# Compiles the compute shader SOURCE to OUTPUT.spv, writes the names of the files that it includes
# to OUTPUT.d, and packs the words into OUTPUT.inc (embed.cmake). The programs GLSLANG, SPIRV_OPT
# and SPIRV_VAL are searched if they are not given; only the first must be there, and the others
# are not used if they are given as empty.
cmake_minimum_required(VERSION 3.25)
set(places HINTS $ENV{VULKAN_SDK}/bin $ENV{VULKAN_SDK}/Bin)
find_program(GLSLANG glslangValidator ${places} REQUIRED)
find_program(SPIRV_OPT spirv-opt ${places})
find_program(SPIRV_VAL spirv-val ${places})

execute_process(COMMAND ${GLSLANG} --quiet -g0 --target-env vulkan1.1 -S comp
    -I${CMAKE_CURRENT_LIST_DIR} --depfile ${OUTPUT}.d -o ${OUTPUT}.spv ${SOURCE}
    COMMAND_ERROR_IS_FATAL ANY)
if(SPIRV_OPT)  # renumbers ids in the order in which they appear
    execute_process(COMMAND ${SPIRV_OPT} --compact-ids ${OUTPUT}.spv -o ${OUTPUT}.spv
        COMMAND_ERROR_IS_FATAL ANY)
endif()
if(SPIRV_VAL)
    execute_process(COMMAND ${SPIRV_VAL} --target-env vulkan1.1 ${OUTPUT}.spv
        COMMAND_ERROR_IS_FATAL ANY)
endif()
set(INPUT ${OUTPUT}.spv)
string(APPEND OUTPUT .inc)
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
