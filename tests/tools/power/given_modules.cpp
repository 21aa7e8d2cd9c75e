// SPDX-License-Identifier: MIT
// Provides the modules of the library to a program that checks changed shaders: rope.inc and
// positions.inc in the folder that VKROPE_MODULES names. This file is linked before the library, so
// the linker leaves out modules.cpp of the library.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "kernel/spirv/modules.hpp"

namespace vkrope {
namespace {

// Reads a file of shaders/embed.cmake: a line of comment, then bytes separated by commas.
std::vector<std::uint8_t> packed(const char* name) {
    const char* const folder = std::getenv("VKROPE_MODULES");
    std::ifstream file(std::string(folder == nullptr ? "" : folder) + "/" + name + ".inc");
    std::string comment;
    std::getline(file, comment);
    std::vector<std::uint8_t> bytes;
    unsigned byte = 0;
    for (char comma = 0; file >> byte >> comma;) bytes.push_back(std::uint8_t(byte));
    if (bytes.empty()) {
        std::fprintf(stderr, "VKROPE_MODULES: there is no %s.inc\n", name);
        std::exit(2);
    }
    return bytes;
}

const std::vector<std::uint8_t> rope_bytes = packed("rope"), position_bytes = packed("positions");

}  // namespace

const PackedModule rope_module = {rope_bytes.data(), rope_bytes.size()};
const PackedModule position_module = {position_bytes.data(), position_bytes.size()};

}  // namespace vkrope
