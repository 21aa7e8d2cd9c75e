// SPDX-License-Identifier: MIT
// rotate CONFIG.JSON f32|f16|bf16 TOKENS Q_HEADS Q K_HEADS K FIRST_POSITION: rotates the raw
// tensors [tokens, heads, head_dim] in the files Q and K with every angle source, and leaves the
// results of the default source in these files.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vkrope/vkrope.hpp>

namespace {

std::string read(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(const char* path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

int fail(const vkrope::Status& status) {
    std::fprintf(stderr, "%s\n", status.what);
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 9) return std::fputs("eight arguments\n", stderr), 2;
    const auto rotation = vkrope::from_hf_config(read(arguments[1]));
    if (!rotation) return fail(rotation.status);
    const std::string dtype = arguments[2];
    std::string q = read(arguments[5]), k = read(arguments[7]);
    auto device = vkrope::Device::open();
    if (!device) return fail(device.status);
    vkrope::HostShape shape{
        .tokens = std::uint32_t(std::atoi(arguments[3])),
        .heads = {std::uint32_t(std::atoi(arguments[4])), std::uint32_t(std::atoi(arguments[6]))},
        .element = dtype == "f16"    ? VKROPE_F16
                   : dtype == "bf16" ? VKROPE_BF16
                                     : VKROPE_F32,
        .first_position = std::atoi(arguments[8])};
    std::string q_rotated(q.size(), 0), k_rotated(k.size(), 0);
    for (const auto angles : {VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE,
                              VKROPE_ANGLES_DIRECT_BUFFER, VKROPE_ANGLES_AUTOMATIC}) {
        shape.angles = angles;
        auto work = vkrope::HostRotation::make(device.value, rotation.value, shape);
        if (!work) return fail(work.status);
        if (work->bytes(VKROPE_Q) != q.size() || work->bytes(VKROPE_K) != k.size())
            return std::fputs("a file has another size\n", stderr), 1;
        if (auto s = work->upload(q.data(), k.data()); !s) return fail(s);
        if (auto ran = work->run(); !ran) return fail(ran.status);
        if (auto s = work->download(q_rotated.data(), k_rotated.data()); !s) return fail(s);
    }
    write(arguments[5], q_rotated);
    write(arguments[7], k_rotated);
}
