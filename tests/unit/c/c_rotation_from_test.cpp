// SPDX-License-Identifier: MIT
// C: a rotation from the arguments of ggml equals the C++ one, with 0 for what is not given.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "c_rotation.hpp"
#include "vkrope/rotation_from.hpp"

using namespace vkrope::test;

namespace {

template <class Rope>
using Make = vkrope_result(VKAPI_PTR*)(const Rope*, vkrope_rotation**, vkrope_error*);

template <class Rope>
void check_same(Make<Rope> make, const Rope& rope, const vkrope::Result<vkrope::Rotation>& cpp) {
    REQUIRE_MESSAGE(cpp, cpp.status.what);
    vkrope_rotation* made = nullptr;
    vkrope_error error;
    REQUIRE_MESSAGE(make(&rope, &made, &error) == VKROPE_SUCCESS, error.what);
    const OwnedRotation rotation(made);
    const vkrope_rotation_info info = info_of(rotation);
    CHECK(std::vector<double>(info.inv_freq, info.inv_freq + info.inv_freq_count) == cpp->inv_freq);
    CHECK(info.attention_factor == cpp->attention_factor);
    CHECK(info.head_dim == cpp->head_dim);
    CHECK(info.rotary_dim == cpp->rotary_dim);
    CHECK(int(info.pairing) == int(cpp->pairing));
    CHECK(info.rope_type == cpp->rope_type);
    CHECK(info.base == cpp->base);
    CHECK(info.longest_seq_len == cpp->longest_seq_len);
    CHECK(info.sections == cpp->sections);
    CHECK(make(nullptr, &made, nullptr) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(make(&rope, nullptr, nullptr) == VKROPE_ERROR_INVALID_ARGUMENT);
}

}  // namespace

TEST_CASE("C: a rotation from the arguments of ggml") {
    const std::vector<double> divisors(32, 4.0);
    vkrope_ggml_rope ggml = {};
    ggml.head_dim = ggml.n_dims = 64, ggml.mode = 2;
    check_same<vkrope_ggml_rope>(
        vkrope_rotation_from_ggml, ggml,
        vkrope::rotation_from_ggml({.head_dim = 64, .n_dims = 64, .mode = 2}));
    ggml.mode = 8, ggml.sections[0] = 8, ggml.sections[1] = ggml.sections[2] = 12;
    ggml.n_ctx_orig = 4096, ggml.freq_base = 5e5, ggml.freq_scale = 0.25, ggml.ext_factor = 1;
    ggml.attn_factor = 0.5, ggml.beta_fast = 30, ggml.beta_slow = 2;
    ggml.freq_factors = divisors.data(), ggml.freq_factor_count = divisors.size();
    check_same<vkrope_ggml_rope>(vkrope_rotation_from_ggml, ggml,
                                 vkrope::rotation_from_ggml({64,
                                                             64,
                                                             8,
                                                             4096,
                                                             5e5,
                                                             0.25,
                                                             1,
                                                             0.5,
                                                             30,
                                                             2,
                                                             divisors.data(),
                                                             divisors.size(),
                                                             {8, 12, 12}}));
}
