# SPDX-License-Identifier: MIT
# Rewrites the parts of GLSL that no C++ header can provide: `out` parameters, swizzles and
# constructors of structs. Makes functions inline, since several files may define them.
#
# cmake -DINPUT=file.glsl -DOUTPUT=file.inc -P glsl_to_cpp.cmake
file(READ "${INPUT}" text)
string(REGEX REPLACE "([(,][ \n]*)(in)?out ([A-Za-z0-9_]+) " "\\1\\3& " text "${text}")
string(REGEX REPLACE "\\.(xz|yw|zwxy)([^A-Za-z0-9_])" ".\\1()\\2" text "${text}")
string(REGEX REPLACE "struct ([A-Za-z]+) {\n +([a-z0-9]+) a, b;"
       "struct \\1 {\n\\1() = default; \\1(\\2 first, \\2 second) : a(first), b(second) {}\n\\2 a, b;" text "${text}")
string(REGEX REPLACE "return (VkropeTurnFactor)\\(([^)]*)\\);" "return \\1{\\2};" text "${text}")
string(REGEX REPLACE "\n([A-Za-z0-9]+ vkrope_)" "\ninline \\1" text "${text}")
string(REGEX REPLACE "\nconst ([a-z]+ [a-z]+_)" "\ninline const \\1" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
