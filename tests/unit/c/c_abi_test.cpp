// SPDX-License-Identifier: MIT
// The rules that the C interface adds to the C++ one: sizes of structs, zero as the default, codes,
// and that nothing but a code comes out. Linked with the shared library, to test what other
// languages call.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

using namespace vkrope::test;

namespace {

struct DestroyRotation {
    void operator()(vkrope_rotation* rotation) const { vkrope_rotation_destroy(rotation); }
};
using OwnedRotation = std::unique_ptr<vkrope_rotation, DestroyRotation>;

template <class Struct>
Struct sized() {
    Struct s = {};
    s.struct_size = sizeof s;
    return s;
}

const std::vector<double> frequencies = {1.0, 0.01};

vkrope_rotation_info four_channels() {
    auto info = sized<vkrope_rotation_info>();
    info.head_dim = info.rotary_dim = 4;
    info.inv_freq = frequencies.data();
    info.inv_freq_count = frequencies.size();
    return info;
}

OwnedRotation rotation_of(const vkrope_rotation_info& info) {
    vkrope_rotation* rotation = nullptr;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_SUCCESS, error.what);
    return OwnedRotation(rotation);
}

vkrope_rotation_info info_of(const OwnedRotation& rotation) {
    auto info = sized<vkrope_rotation_info>();
    REQUIRE(vkrope_rotation_get_info(rotation.get(), &info, nullptr) == VKROPE_SUCCESS);
    return info;
}

bool says(const vkrope_error& error, const char* words) {
    INFO(error.what);
    return std::strstr(error.what, words) != nullptr;
}

PFN_vkVoidFunction VKAPI_PTR no_functions(VkInstance, const char*) {
    return nullptr;
}

}  // namespace

TEST_CASE("C: the header's version is the library's and the project's") {
    CHECK(vkrope_version() == VKROPE_VERSION);
    const std::string header = std::to_string(VKROPE_VERSION_MAJOR) + "." +
                               std::to_string(VKROPE_VERSION_MINOR) + "." +
                               std::to_string(VKROPE_VERSION_PATCH);
    CHECK(header == VKROPE_TEST_VERSION);
}

TEST_CASE("C: every code has words of its own, any other number has some") {
    std::vector<std::string> seen;
    for (int code = VKROPE_SUCCESS; code >= VKROPE_ERROR_INTERNAL; --code) {
        const std::string words = vkrope_status_string(vkrope_result(code));
        CHECK(words != "unknown result");
        for (const std::string& other : seen) CHECK(words != other);
        seen.push_back(words);
    }
    CHECK(std::string(vkrope_status_string(vkrope_result(-12))) == "unknown result");
    CHECK(std::string(vkrope_status_string(vkrope_result(1))) == "unknown result");
}

TEST_CASE("C: an error is written whole, success clears it, and nobody has to ask for it") {
    vkrope_error error;
    std::memset(&error, 0x5a, sizeof error);
    double inv_freq[2];
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.code == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.vk_result == VK_SUCCESS);
    CHECK(says(error, "base is -1"));
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, nullptr) == VKROPE_ERROR_INVALID_ARGUMENT);

    CHECK(vkrope_default_inv_freq(10000.0, 4, inv_freq, &error) == VKROPE_SUCCESS);
    CHECK(error.code == VKROPE_SUCCESS);
    CHECK(std::string(error.what).empty());
}

TEST_CASE("C: struct_size 0 is an error that names it") {
    auto info = four_channels();
    vkrope_error error;
    for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t) - 1}) {
        info.struct_size = size;
        auto* rotation = reinterpret_cast<vkrope_rotation*>(&info);
        CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(says(error, "info.struct_size"));
        CHECK(rotation == nullptr);
    }
    vkrope_boundary boundary = {};
    CHECK(vkrope_get_boundary(&boundary, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "boundary.struct_size"));
}

TEST_CASE("C: an older, smaller struct has zeros where it ends") {
    auto info = four_channels();
    info.attention_factor = 3;
    info.softmax_scale = 5;
    info.rope_type = "not part of the older struct";
    info.struct_size = offsetof(vkrope_rotation_info, softmax_scale);
    const OwnedRotation rotation = rotation_of(info);
    const vkrope_rotation_info read = info_of(rotation);
    CHECK(read.attention_factor == 3);
    CHECK(read.softmax_scale == 1);
    CHECK(std::string(read.rope_type) == "default");
}

TEST_CASE("C: a newer, larger struct is accepted while its new fields are 0") {
    struct Newer {
        vkrope_rotation_info known;
        std::uint64_t added[2];
    } newer = {four_channels(), {0, 0}};
    newer.known.struct_size = sizeof newer;
    vkrope_error error;
    vkrope_rotation* rotation = nullptr;
    CHECK(vkrope_rotation_create(&newer.known, &rotation, &error) == VKROPE_SUCCESS);

    // Fields that this version does not know become 0.
    newer.added[1] = 7;
    CHECK(vkrope_rotation_get_info(rotation, &newer.known, &error) == VKROPE_SUCCESS);
    CHECK(newer.known.struct_size == sizeof newer);
    CHECK(newer.known.head_dim == 4);
    CHECK(newer.added[1] == 0);
    vkrope_rotation_destroy(rotation);

    newer.known = four_channels();
    newer.known.struct_size = sizeof newer;
    newer.added[1] = 1;
    CHECK(vkrope_rotation_create(&newer.known, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.struct_size"));
    CHECK(rotation == nullptr);
}

TEST_CASE("C: no byte past the size of a smaller struct is written") {
    const OwnedRotation rotation = rotation_of(four_channels());
    auto plan = sized<vkrope_angle_plan>();
    plan.struct_size = offsetof(vkrope_angle_plan, pairs);
    plan.pairs = 1234;
    plan.bytes = 5678;
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 8, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_DIRECT_BUFFER);
    CHECK(plan.usage == VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    CHECK(plan.pairs == 1234);
    CHECK(plan.bytes == 5678);
}

TEST_CASE("C: a rotation gives back what it was made of, zero being the default") {
    const char* const warnings[] = {"first", "second"};
    auto info = four_channels();
    info.pairing = VKROPE_PAIRING_INTERLEAVED;
    info.head_dim = 12;
    info.q_rotary_offset = 1;
    info.k_rotary_offset = 2;
    info.softmax_scale = 0.5;
    info.max_position = 1 << 20;
    info.rope_type = "llama3";
    info.warnings = warnings;
    info.warning_count = 2;
    const OwnedRotation rotation = rotation_of(info);
    const vkrope_rotation_info read = info_of(rotation);
    CHECK(read.pairing == VKROPE_PAIRING_INTERLEAVED);
    CHECK(read.head_dim == 12);
    CHECK(read.rotary_dim == 4);
    CHECK(read.q_rotary_offset == 1);
    CHECK(read.k_rotary_offset == 2);
    REQUIRE(read.rotates != nullptr);
    CHECK(*read.rotates == VK_TRUE);
    REQUIRE(read.inv_freq_count == 2);
    CHECK(read.inv_freq != info.inv_freq);  // a copy
    CHECK(read.inv_freq[1] == 0.01);
    CHECK(read.attention_factor == 1);
    CHECK(read.softmax_scale == 0.5);
    CHECK(read.max_position == 1 << 20);
    CHECK(std::string(read.rope_type) == "llama3");
    REQUIRE(read.warning_count == 2);
    CHECK(std::string(read.warnings[1]) == "second");
    // The returned info makes the same rotation again.
    CHECK(info_of(rotation_of(read)).k_rotary_offset == 2);
}

TEST_CASE("C: arrays without a size are believed only where their count is the rule's") {
    vkrope_error error;
    vkrope_rotation* rotation = nullptr;
    auto info = four_channels();
    info.inv_freq_count = 16;  // a count of bytes by mistake
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.inv_freq_count is 16"));
    info = four_channels();
    info.inv_freq = nullptr;
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.inv_freq is null"));
    const char* const hole[] = {"first", nullptr};
    info = four_channels();
    info.warnings = hole;
    info.warning_count = 2;
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.warnings[1]"));
    CHECK(rotation == nullptr);
}

/// What C makes of the frequencies and the attention factor, against what C++ makes of them.
struct Scaled {
    std::vector<double> inv_freq;
    double attention_factor = 7, softmax_scale = 7;
    friend bool operator==(const Scaled&, const Scaled&) = default;
};

template <class C, class Cpp>
void same_scaling(const char* name, const std::vector<double>& from, C&& c, Cpp&& cpp) {
    CAPTURE(name);
    Scaled ours = {from}, theirs = {from};
    REQUIRE(cpp(theirs));
    REQUIRE(c(ours) == VKROPE_SUCCESS);
    CHECK(ours == theirs);
    CHECK(ours.inv_freq != from);
}

/// Every scaling with numbers of its own, and those that C leaves at 0.
void check_scalings(const std::vector<double>& from) {
    std::vector<double> divisors(from.size(), 3), longer(from.size(), 5);
    divisors[0] = 1;
    same_scaling(
        "positions", from,
        [](Scaled& s) {
            return vkrope_scale_positions(s.inv_freq.data(), s.inv_freq.size(), 0.5, nullptr);
        },
        [](Scaled& s) { return vkrope::scale_positions(s.inv_freq, 0.5); });
    same_scaling(
        "divisors", from,
        [&](Scaled& s) {
            return vkrope_scale_divisors(s.inv_freq.data(), s.inv_freq.size(), divisors.data(),
                                         nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_divisors(s.inv_freq, divisors.data(), divisors.size());
        });
    same_scaling(
        "ntk", from,
        [](Scaled& s) {
            return vkrope_scale_ntk(s.inv_freq.data(), s.inv_freq.size(), 8, nullptr);
        },
        [](Scaled& s) { return vkrope::scale_ntk(s.inv_freq, 8); });
    same_scaling(
        "dynamic_ntk", from,
        [](Scaled& s) {
            auto c = sized<vkrope_dynamic_ntk_scaling>();
            c.factor = 2, c.max_position_embeddings = 4096;
            return vkrope_scale_dynamic_ntk(s.inv_freq.data(), s.inv_freq.size(), &c, 16384,
                                            nullptr);
        },
        [](Scaled& s) {
            return vkrope::scale_dynamic_ntk(s.inv_freq, {2, 4096}, 16384);
        });
    for (const bool truncate : {true, false}) {
        same_scaling(
            truncate ? "yarn" : "yarn, not truncated", from,
            [truncate](Scaled& s) {
                auto c = sized<vkrope_yarn_scaling>();
                const VkBool32 no = VK_FALSE;
                c.factor = 4, c.original_max_position_embeddings = 8192;
                if (!truncate) c.truncate = &no, c.beta_fast = 30, c.mscale = 1.5;
                if (!truncate) c.beta_slow = 2, c.mscale_all_dim = 0.5;
                return vkrope_scale_yarn(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                         &s.attention_factor, nullptr);
            },
            [truncate](Scaled& s) {
                vkrope::YarnScaling numbers = {.factor = 4,
                                               .original_max_position_embeddings = 8192};
                if (!truncate) numbers = {4, 8192, 30, 2, false, 0, 1.5, 0.5};
                return vkrope::scale_yarn(s.inv_freq, 500000, numbers, s.attention_factor);
            });
    }
    same_scaling(
        "deepseek_yarn", from,
        [](Scaled& s) {
            auto c = sized<vkrope_deepseek_yarn_scaling>();
            c.factor = 40, c.original_max_position_embeddings = 4096;
            c.mscale = 1, c.mscale_all_dim = 0.707;
            return vkrope_scale_deepseek_yarn(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                              &s.attention_factor, &s.softmax_scale, nullptr);
        },
        [](Scaled& s) {
            return vkrope::scale_deepseek_yarn(s.inv_freq, 500000, {40, 4096, 32, 1, 1, 0.707},
                                               s.attention_factor, s.softmax_scale);
        });
    same_scaling(
        "longrope", from,
        [&](Scaled& s) {
            auto c = sized<vkrope_longrope_scaling>();
            c.short_factor = divisors.data(), c.long_factor = longer.data();
            c.count = divisors.size();
            c.original_max_position_embeddings = 4096, c.factor = 32, c.long_mscale = 1.25;
            return vkrope_scale_longrope(s.inv_freq.data(), s.inv_freq.size(), &c, 8192,
                                         &s.attention_factor, nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_longrope(
                s.inv_freq, {divisors.data(), longer.data(), divisors.size(), 4096, 32, 0, 0, 1.25},
                8192, s.attention_factor);
        });
    same_scaling(
        "ggml", from,
        [&](Scaled& s) {
            auto c = sized<vkrope_ggml_scaling>();
            c.freq_scale = 0.25, c.ext_factor = 1, c.attn_factor = 1.5, c.beta_fast = 32;
            c.beta_slow = 1, c.n_ctx_orig = 8192, c.n_dims = 128;
            c.freq_factors = divisors.data(), c.freq_factor_count = divisors.size();
            return vkrope_scale_ggml(s.inv_freq.data(), s.inv_freq.size(), 500000, &c,
                                     &s.attention_factor, nullptr);
        },
        [&](Scaled& s) {
            return vkrope::scale_ggml(
                s.inv_freq, 500000,
                {0.25, 1, 1.5, 32, 1, 8192, 128, divisors.data(), divisors.size()},
                s.attention_factor);
        });
    // A failure changes neither frequencies nor factors, and names the parameter.
    Scaled kept = {from};
    vkrope_error error;
    auto yarn = sized<vkrope_yarn_scaling>();
    CHECK(vkrope_scale_yarn(kept.inv_freq.data(), kept.inv_freq.size(), 500000, &yarn,
                            &kept.attention_factor, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "factor is 0"));
    auto lists = sized<vkrope_longrope_scaling>();
    lists.count = from.size();
    CHECK(vkrope_scale_longrope(kept.inv_freq.data(), kept.inv_freq.size(), &lists, 0,
                                &kept.attention_factor, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_scale_divisors(kept.inv_freq.data(), kept.inv_freq.size(), nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "divisors is null"));
    CHECK(kept == Scaled{from});
}

TEST_CASE("C: small functions are those of the C++ headers") {
    std::vector<double> ours(64), theirs(64);
    REQUIRE(vkrope_inclusive_inv_freq(10000, 128, ours.data(), nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope::inclusive_inv_freq(10000, 128, theirs.data()));
    CHECK(ours == theirs);
    auto half = sized<vkrope_proportional_scaling>();
    half.factor = 8;
    half.partial_rotary_factor = 0.5;
    REQUIRE(vkrope_proportional_inv_freq(10000, 128, &half, ours.data(), nullptr) ==
            VKROPE_SUCCESS);
    REQUIRE(vkrope::proportional_inv_freq(10000, 128, {8, 0.5}, theirs.data()));
    CHECK(ours == theirs);
    REQUIRE(vkrope_proportional_inv_freq(10000, 128, nullptr, ours.data(), nullptr) ==
            VKROPE_SUCCESS);
    REQUIRE(vkrope::proportional_inv_freq(10000, 128, {}, theirs.data()));
    CHECK(ours == theirs);

    CHECK(vkrope_turn_fraction(0.3) == vkrope::turn_fraction(0.3));
    CHECK(vkrope_element_bytes(VKROPE_ELEMENT_F32) == 4);
    CHECK(vkrope_element_bytes(VKROPE_ELEMENT_BF16) == 2);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_EXACT, 4096) ==
          VKROPE_ANGLES_FACTORED_TEXTURE);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_EXACT, 1u << 23) == VKROPE_ANGLES_COMPUTED);
    CHECK(vkrope_default_angles(VKROPE_ANGLE_PRECISION_FLOAT32, 4096) ==
          VKROPE_ANGLES_DIRECT_TEXTURE);
    for (const double factor : {1.0, 1.5}) {
        for (std::uint32_t source = 1; source <= 5; ++source) {
            CHECK(vkrope_error_bound(vkrope_angle_source(source), factor) ==
                  vkrope::error_bound(vkrope::AngleSource(source), factor));
        }
    }
    auto sections = sized<vkrope_sections>();
    sections.axes = 3;
    sections.pairs[0] = 16, sections.pairs[1] = 24, sections.pairs[2] = 24;
    vkrope::Sections same = {.axes = 3, .pairs = {16, 24, 24}};
    for (std::uint32_t pair = 0; pair < 64; ++pair)
        CHECK(vkrope_axis_of(&sections, pair) == vkrope::axis_of(same, pair));
    CHECK(vkrope_axis_of(nullptr, 63) == 0);
    sections.order = vkrope_section_order(9);
    CHECK(vkrope_axis_of(&sections, 63) == 0);

    auto info = four_channels();
    info.base = 500000;
    info.k_rotary_offset = 512;
    const OwnedRotation rotation = rotation_of(info);
    CHECK(info_of(rotation).base == 500000);
    CHECK(vkrope_row_channels(rotation.get(), 0) == 4);
    CHECK(vkrope_row_channels(rotation.get(), 512) == 516);
    CHECK(vkrope_row_channels(nullptr, 0) == 0);
}

TEST_CASE("C: a query's pairing replaces the model's") {
    const std::string config =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})";
    auto query = sized<vkrope_model_query>();
    vkrope_pairing pairing = VKROPE_PAIRING_INTERLEAVED;
    for (const bool given : {false, true}) {
        query.pairing = given ? &pairing : nullptr;
        vkrope_rotation* read = nullptr;
        REQUIRE(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &read,
                                               nullptr) == VKROPE_SUCCESS);
        const OwnedRotation rotation(read);
        CHECK(info_of(rotation).pairing ==
              (given ? VKROPE_PAIRING_INTERLEAVED : VKROPE_PAIRING_HALF_SPLIT));
        CHECK(info_of(rotation).base == 10000);
    }
    put(pairing, 9u);
    vkrope_rotation* none = nullptr;
    vkrope_error error;
    CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &none, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "query.pairing is 9"));
}

TEST_CASE("C: the numbers are those of the C++ tier") {
    std::vector<double> expected(64), made(64);
    REQUIRE(vkrope::default_inv_freq(500000.0, 128, expected.data()));
    REQUIRE(vkrope_default_inv_freq(500000.0, 128, made.data(), nullptr) == VKROPE_SUCCESS);
    CHECK(made == expected);

    auto scaling = sized<vkrope_llama3_scaling>();
    scaling.factor = 8;
    scaling.low_freq_factor = 1;
    scaling.high_freq_factor = 4;
    scaling.original_max_position_embeddings = 8192;
    auto scaled = expected;
    REQUIRE(vkrope::scale_llama3(scaled, {8, 1, 4, 8192}));
    REQUIRE(vkrope::scale_linear(scaled, 2));
    REQUIRE(vkrope_scale_llama3(made.data(), made.size(), &scaling, nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope_scale_linear(made.data(), made.size(), 2, nullptr) == VKROPE_SUCCESS);
    CHECK(made == scaled);

    check_scalings(expected);

    // A failure changes nothing.
    vkrope_error error;
    scaling.high_freq_factor = scaling.low_freq_factor / 2;
    CHECK(vkrope_scale_llama3(made.data(), made.size(), &scaling, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "low_freq_factor"));
    CHECK(vkrope_scale_linear(made.data(), made.size(), 0, nullptr) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(made == scaled);
}

TEST_CASE("C: plan and content of a table are those of the C++ tier") {
    const OwnedRotation rotation = rotation_of(four_channels());
    vkrope::Rotation same;
    same.head_dim = same.rotary_dim = 4;
    same.inv_freq = frequencies;
    for (const auto source :
         {vkrope::AngleSource::by_default, vkrope::AngleSource::factored_texture,
          vkrope::AngleSource::computed, vkrope::AngleSource::direct_texture,
          vkrope::AngleSource::direct_buffer}) {
        const auto expected = vkrope::plan_angles(same, source, 100, 64);
        REQUIRE(expected);
        auto plan = sized<vkrope_angle_plan>();
        REQUIRE(vkrope_plan_angles(rotation.get(), vkrope_angle_source(source), 100, 64, &plan,
                                   nullptr) == VKROPE_SUCCESS);
        CHECK(int(plan.source) == int(expected->source));
        CHECK(plan.format == expected->format);
        CHECK(plan.extent.width == expected->extent.width);
        CHECK(plan.extent.height == expected->extent.height);
        CHECK(plan.usage == expected->usage);
        CHECK(plan.pairs == expected->pairs);
        CHECK(plan.rows == expected->rows);
        CHECK(plan.fold_log2 == expected->fold_log2);
        CHECK(plan.row_texels == expected->row_texels);
        REQUIRE(plan.bytes == expected->bytes);

        std::vector<float> theirs(expected->bytes / 4), ours(expected->bytes / 4);
        REQUIRE(vkrope::fill_angles(same, expected.value, theirs.data(), expected->bytes));
        REQUIRE(vkrope_fill_angles(rotation.get(), &plan, ours.data(), expected->bytes, nullptr) ==
                VKROPE_SUCCESS);
        CHECK(ours == theirs);

        // The same table in two parts.
        auto lines = sized<vkrope_angle_lines>();
        REQUIRE(vkrope_get_angle_lines(&plan, &lines, nullptr) == VKROPE_SUCCESS);
        REQUIRE(lines.count * lines.bytes == plan.bytes);
        std::vector<float> parts(expected->bytes / 4);
        const auto half = std::uint32_t(lines.count / 2), rest = std::uint32_t(lines.count - half);
        const std::size_t half_bytes = half * lines.bytes;
        CHECK(vkrope_fill_angle_lines(rotation.get(), &plan, 0, half, parts.data(), half_bytes,
                                      nullptr) == VKROPE_SUCCESS);
        CHECK(vkrope_fill_angle_lines(rotation.get(), &plan, half, rest,
                                      parts.data() + half_bytes / 4, plan.bytes - half_bytes,
                                      nullptr) == VKROPE_SUCCESS);
        CHECK(parts == theirs);

        vkrope_error error;
        CHECK(vkrope_fill_angles(rotation.get(), &plan, ours.data(), expected->bytes - 1, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(says(error, "bytes"));
    }
    vkrope_error error;
    auto plan = sized<vkrope_angle_plan>();
    CHECK(vkrope_plan_angles(rotation.get(), vkrope_angle_source(99), 100, 64, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "source is 99"));
    // The meaning of a zero argument.
    static_assert(VKROPE_ANGLES_BY_DEFAULT == 0 && VKROPE_ANGLE_PRECISION_EXACT == 0 &&
                  VKROPE_CONVERSION_BY_DEVICE == 0);
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_BY_DEFAULT, 1u << 22, 4096, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_FACTORED_TEXTURE);
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_BY_DEFAULT, (1u << 22) + 1, 0, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_COMPUTED);
    CHECK(plan.usage == VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    plan.source = VKROPE_ANGLES_BY_DEFAULT;
    float numbers[12] = {};
    CHECK(vkrope_fill_angles(rotation.get(), &plan, numbers, sizeof numbers, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "plan.source is 0"));
}

TEST_CASE("C: the product of an angle is the rotation's, and its table that of the C++ tier") {
    auto info = four_channels();
    info.attention_factor = 1.25;
    CHECK(info_of(rotation_of(info)).precision == VKROPE_ANGLE_PRECISION_EXACT);
    info.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    const OwnedRotation rotation = rotation_of(info);
    CHECK(info_of(rotation).precision == VKROPE_ANGLE_PRECISION_FLOAT32);
    auto plan = sized<vkrope_angle_plan>();
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_BY_DEFAULT, 4000, 4096, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_DIRECT_TEXTURE);
    std::vector<float> ours(plan.bytes / 4), theirs(plan.bytes / 4), exact(plan.bytes / 4);
    REQUIRE(vkrope_fill_angles(rotation.get(), &plan, ours.data(), plan.bytes, nullptr) ==
            VKROPE_SUCCESS);
    vkrope::Rotation same;
    same.head_dim = same.rotary_dim = 4;
    same.inv_freq = frequencies;
    same.attention_factor = 1.25;
    const auto planned = vkrope::plan_angles(same, vkrope::AngleSource::direct_texture, 4000, 4096);
    REQUIRE(vkrope::fill_angles(same, planned.value, exact.data(), plan.bytes));
    same.precision = vkrope::AnglePrecision::float32;
    REQUIRE(vkrope::fill_angles(same, planned.value, theirs.data(), plan.bytes));
    CHECK(ours == theirs);
    CHECK(ours != exact);
    vkrope_error error;
    CHECK(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_COMPUTED, 4000, 4096, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation.precision is VKROPE_ANGLE_PRECISION_FLOAT32"));
}

TEST_CASE("C: a model file that has no RoPE that is known is a code and a sentence") {
    vkrope_error error;
    vkrope_rotation* rotation = nullptr;
    const char broken[] = "{\"model_type\": ";
    CHECK(vkrope_rotation_from_hf_config(broken, sizeof broken - 1, nullptr, &rotation, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    CHECK(rotation == nullptr);
    CHECK(!std::string(error.what).empty());
    CHECK(vkrope_rotation_from_hf_config(nullptr, 0, nullptr, &rotation, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "json is null"));
}

TEST_CASE("C: what is asked of a model, zero being the default") {
    const std::string json =
        R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
           "rope_theta": 10000.0, "num_hidden_layers": 3,
            "max_position_embeddings": 2048})";
    auto query = sized<vkrope_model_query>();
    const auto ask = [&](vkrope_error& error) {
        vkrope_rotation* rotation = nullptr;
        const vkrope_result result = vkrope_rotation_from_hf_config(json.data(), json.size(),
                                                                    &query, &rotation, &error);
        CHECK((rotation != nullptr) == (result == VKROPE_SUCCESS));
        vkrope_rotation_destroy(rotation);
        return result;
    };
    vkrope_error error;
    CHECK(ask(error) == VKROPE_SUCCESS);
    std::uint32_t layer = 2;  // the last one
    query.layer = &layer;
    CHECK(ask(error) == VKROPE_SUCCESS);
    layer = 3;
    CHECK(ask(error) == VKROPE_ERROR_INVALID_ARGUMENT);
    layer = UINT32_MAX;
    CHECK(ask(error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "query.layer is 4294967295"));
    query = sized<vkrope_model_query>();
    query.tower = "vision";
    CHECK(ask(error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "vision_config"));
}

TEST_CASE("C: a GGUF file, through a function and from a disk") {
    GgufBuilder file("qwen2vl");
    file.u32("attention.key_length", 128)
        .u32("rope.dimension_count", 128)
        .f32("rope.freq_base", 1e6f);
    const std::string bytes = file.i32_list("rope.dimension_sections", {16, 24, 24, 0}).file();
    const vkrope_read_at read = [](void* user, std::uint64_t offset, void* to, std::size_t count) {
        return static_cast<std::string*>(user)->copy(static_cast<char*>(to), count,
                                                     std::size_t(offset));
    };
    std::string content = bytes;
    vkrope_rotation* made = nullptr;
    vkrope_error error;
    REQUIRE(vkrope_rotation_from_gguf(content.size(), read, &content, nullptr, &made, &error) ==
            VKROPE_SUCCESS);
    const OwnedRotation rotation(made);
    CHECK(info_of(rotation).pairing == VKROPE_PAIRING_HALF_SPLIT);
    CHECK(info_of(rotation).inv_freq_count == 64);
    REQUIRE(info_of(rotation).sections != nullptr);
    CHECK(info_of(rotation).sections->pairs[1] == 24);

    const std::string path = std::string(VKROPE_TEST_SCRATCH) + "/c.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    REQUIRE(vkrope_rotation_from_gguf_file(path.c_str(), nullptr, &made, &error) == VKROPE_SUCCESS);
    CHECK(info_of(OwnedRotation(made)).inv_freq_count == 64);

    auto query = sized<vkrope_model_query>();
    query.tower = "vision";
    CHECK(vkrope_rotation_from_gguf_file(path.c_str(), &query, &made, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "vision"));
    CHECK(made == nullptr);
    content.resize(20);  // shorter than the stated size
    CHECK(vkrope_rotation_from_gguf(bytes.size(), read, &content, nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    CHECK(vkrope_rotation_from_gguf(bytes.size(), nullptr, nullptr, nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "read is null"));
    CHECK(vkrope_rotation_from_gguf_file(nullptr, nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "path is null"));
    CHECK(vkrope_rotation_from_gguf_file((path + ".missing").c_str(), nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    CHECK(says(error, "does not exist"));
}

TEST_CASE("C: a rotation has its sections, and null without any") {
    CHECK(info_of(rotation_of(four_channels())).sections == nullptr);
    auto sections = sized<vkrope_sections>();
    sections.order = VKROPE_SECTIONS_INTERLEAVED;
    sections.axes = 3;
    sections.pairs[0] = 1, sections.pairs[2] = 1;
    sections.leftover_axis = 2;
    auto info = four_channels();
    info.sections = &sections;
    const OwnedRotation rotation = rotation_of(info);
    const vkrope_rotation_info read = info_of(rotation);
    REQUIRE(read.sections != nullptr);
    CHECK(read.sections != &sections);
    CHECK(std::memcmp(read.sections, &sections, sizeof sections) == 0);

    const std::string json = R"({"model_type": "qwen2_vl", "head_dim": 128, "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})";
    vkrope_rotation* made = nullptr;
    REQUIRE(vkrope_rotation_from_hf_config(json.data(), json.size(), nullptr, &made, nullptr) ==
            VKROPE_SUCCESS);
    const OwnedRotation model(made);
    const vkrope_rotation_info of_model = info_of(model);
    REQUIRE(of_model.sections != nullptr);
    CHECK(of_model.sections->axes == 3);
    CHECK(of_model.sections->pairs[1] == 24);

    sections.struct_size = 1;
    vkrope_rotation* none = nullptr;
    vkrope_error error;
    CHECK(vkrope_rotation_create(&info, &none, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.sections"));
    CHECK(none == nullptr);
}

TEST_CASE("C: null where an object must be is an error, and nothing to destroy") {
    vkrope_error error;
    auto info = sized<vkrope_rotation_info>();
    CHECK(vkrope_rotation_create(nullptr, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation is null"));
    CHECK(vkrope_rotation_get_info(nullptr, &info, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_default_inv_freq(1, 2, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_scale_linear(nullptr, 1, 1, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_get_queue(nullptr, nullptr, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_submit(nullptr, nullptr, nullptr, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "device is null"));
    CHECK(vkrope_buffer_upload(nullptr, nullptr, 0, 0, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_host_rotation_run(nullptr, VKROPE_DIRECTION_FORWARD, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_list_count(nullptr) == 0);
    CHECK(vkrope_host_rotation_q_bytes(nullptr) == 0);
    CHECK(vkrope_buffer_whole(nullptr).buffer == VK_NULL_HANDLE);
    vkrope_rotation_destroy(nullptr);
    vkrope_kernel_destroy(nullptr);
    vkrope_arena_destroy(nullptr);
    vkrope_arena_reset(nullptr);
    vkrope_buffer_destroy(nullptr);
    vkrope_angle_table_destroy(nullptr);
    vkrope_host_rotation_destroy(nullptr);
    vkrope_device_list_destroy(nullptr);
    vkrope_device_destroy(nullptr);
}

TEST_CASE("C: structs within structs are checked under their own names") {
    vkrope_error error;
    vkrope_tensor tensor = {};
    auto call = sized<vkrope_call>();
    call.k_out = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.k_out.struct_size is 0"));
    vkrope_angle_plan plan = {};
    auto angles = sized<vkrope_angles>();
    angles.plan = &plan;
    call.k_out = nullptr;
    call.v_in = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.v_in.struct_size is 0"));
    call.v_in = nullptr;
    call.v_out = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.v_out.struct_size is 0"));
    call.v_out = nullptr;
    call.angles = &angles;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.angles.plan.struct_size is 0"));
    call.angles = nullptr;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "commands is null"));

    vkrope_kernel* kernel = nullptr;
    vkrope_head_format width = {};
    const auto device = sized<vkrope_device_ref>();
    auto info = sized<vkrope_kernel_info>();
    info.q = &width;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.q.struct_size is 0"));
    info.q = nullptr;
    info.v = &width;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.v.struct_size is 0"));
    info.v = nullptr;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(kernel == nullptr);
}

TEST_CASE("C: what a rotation is recorded between is the kernel tier's") {
    auto boundary = sized<vkrope_boundary>();
    REQUIRE(vkrope_get_boundary(&boundary, nullptr) == VKROPE_SUCCESS);
    CHECK(boundary.stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    CHECK(boundary.input_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT));
    CHECK(boundary.output_access == VK_ACCESS_SHADER_WRITE_BIT);
    CHECK(boundary.in_place_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
    CHECK(boundary.texture_access == VK_ACCESS_SHADER_READ_BIT);
    CHECK(boundary.reserved == 0);
}

TEST_CASE("C: without Vulkan there is no device, and no crash") {
    vkrope_error error;
    auto options = sized<vkrope_device_options>();
    options.get_instance_proc_addr = no_functions;
    vkrope_device* device = nullptr;
    vkrope_device_list* list = nullptr;
    CHECK(vkrope_device_open(&options, &device, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(vkrope_device_list_create(&options, &list, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(device == nullptr);
    CHECK(list == nullptr);
}

TEST_CASE("C: a count that no memory holds is an error") {
    double inv_freq[1] = {1};
    vkrope_error error;
    CHECK(vkrope_scale_linear(inv_freq, SIZE_MAX / 8, 2, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "count is"));
    CHECK(inv_freq[0] == 1);
}

// Sanitizers end the program in places where the standard library throws.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VKROPE_TEST_SANITIZED
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(VKROPE_TEST_SANITIZED)
TEST_CASE("C: an exception of the standard library comes out as a code") {
    double inv_freq[1] = {1};
    vkrope_error error;
    CHECK(vkrope_scale_linear(inv_freq, SIZE_MAX / 32, 2, &error) ==
          VKROPE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(error.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(says(error, "memory"));
    CHECK(inv_freq[0] == 1);
}
#endif

namespace {

// Calls with numbers that are not enumerators.
template <class Enum, class Call>
void refuses_numbers(const char* name, Call&& call) {
    for (const std::uint32_t number : no_enumerators) {
        Enum value = {};
        put(value, number);
        vkrope_error error;
        INFO(name << " " << number);
        CHECK(call(value, &error) != VKROPE_SUCCESS);
        CHECK(says(error, name));
        CHECK(says(error, std::to_string(number).c_str()));
    }
}

}  // namespace

// Under the undefined-behaviour sanitizer this also shows that none of these numbers is treated as
// an enumerator on the way.
TEST_CASE("C: numbers that are no enumerators are refused, and named") {
    refuses_numbers<vkrope_pairing>("info.pairing",
                                    [](const vkrope_pairing& pairing, vkrope_error* error) {
                                        auto info = four_channels();
                                        std::memcpy(&info.pairing, &pairing, sizeof pairing);
                                        vkrope_rotation* rotation = nullptr;
                                        return vkrope_rotation_create(&info, &rotation, error);
                                    });
    refuses_numbers<vkrope_angle_precision>(
        "info.precision", [](const vkrope_angle_precision& product, vkrope_error* error) {
            auto info = four_channels();
            std::memcpy(&info.precision, &product, sizeof product);
            vkrope_rotation* rotation = nullptr;
            return vkrope_rotation_create(&info, &rotation, error);
        });
    refuses_numbers<vkrope_section_order>(
        "info.sections.order", [](const vkrope_section_order& order, vkrope_error* error) {
            auto info = four_channels();
            auto sections = sized<vkrope_sections>();
            sections.axes = 2;
            std::memcpy(&sections.order, &order, sizeof order);
            info.sections = &sections;
            vkrope_rotation* rotation = nullptr;
            return vkrope_rotation_create(&info, &rotation, error);
        });
    const OwnedRotation rotation = rotation_of(four_channels());
    auto plan = sized<vkrope_angle_plan>();
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    refuses_numbers<vkrope_angle_source>("source", [&](const vkrope_angle_source& source,
                                                       vkrope_error* error) {
        return as_in_c(vkrope_plan_angles)(rotation.get(), number_in(source), 4, 16, &plan, error);
    });
    refuses_numbers<vkrope_element>(
        "element", [&](const vkrope_element& element, vkrope_error* error) {
            return as_in_c(vkrope_plan_cos_sin_cache)(2, 4, 2, number_in(element), &plan, error);
        });
    refuses_numbers<vkrope_angle_source>(
        "plan.source", [&](const vkrope_angle_source& source, vkrope_error* error) {
            vkrope_angle_plan other = plan;
            std::memcpy(&other.source, &source, sizeof source);
            float memory[16];
            return vkrope_fill_angles(rotation.get(), &other, memory, sizeof memory, error);
        });

    // Enumerators of a kernel: these rules are checked before any function of the device is looked
    // up.
    auto device = sized<vkrope_device_ref>();
    device.instance = reinterpret_cast<VkInstance>(std::uintptr_t{1});
    device.physical = reinterpret_cast<VkPhysicalDevice>(std::uintptr_t{1});
    device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
    device.get_instance_proc_addr = no_functions;
    auto width = sized<vkrope_head_format>();
    width.head_dim = 4;
    vkrope_head_format values = width;
    auto info = sized<vkrope_kernel_info>();
    info.rotary_dim = 4;
    info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    info.q = &width;
    info.v = &values;
    const auto field = [&](const char* name, auto& place) {
        using Enum = std::remove_reference_t<decltype(place)>;
        const Enum before = place;
        refuses_numbers<Enum>(name, [&](const Enum& value, vkrope_error* error) {
            std::memcpy(&place, &value, sizeof value);
            vkrope_kernel* kernel = nullptr;
            return vkrope_kernel_create(&device, &info, &kernel, error);
        });
        place = before;
    };
    field("pairing", info.pairing);
    field("angles", info.angles);
    field("positions", info.positions);
    field("mapping", info.mapping);
    field("table", info.table);
    field("conversion", info.conversion);
    field("q.in", width.in);
    field("q.out", width.out);
    field("v.in", values.in);
    field("v.out", values.out);
    vkrope_pairing pairing_out = VKROPE_PAIRING_HALF_SPLIT;
    info.pairing_out = &pairing_out;
    field("pairing_out", pairing_out);

    // 0 is a number of the enum, but only vkrope_plan_angles knows what it stands for.
    info.angles = VKROPE_ANGLES_BY_DEFAULT;
    vkrope_kernel* kernel = nullptr;
    vkrope_error error;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error,
               "angles is VKROPE_ANGLES_BY_DEFAULT: it must be vkrope_angle_plan::source, which "
               "vkrope_plan_angles chose"));
}

TEST_CASE("C: errors name the fields that C has") {
    auto unrotated = four_channels();
    const VkBool32 no = VK_FALSE;
    unrotated.rotates = &no;
    const OwnedRotation rotation = rotation_of(unrotated);
    auto plan = sized<vkrope_angle_plan>();
    vkrope_error error;
    CHECK(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation.rotates is false"));
    auto in_floats = four_channels();
    in_floats.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    const OwnedRotation floats = rotation_of(in_floats);
    CHECK(vkrope_plan_angles(floats.get(), VKROPE_ANGLES_COMPUTED, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error,
               "rotation.precision is VKROPE_ANGLE_PRECISION_FLOAT32: source must be "
               "VKROPE_ANGLES_DIRECT_TEXTURE"));

    const std::string config =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1,
           "num_hidden_layers": 4,
        "max_position_embeddings": 2048, "rope_theta": 10000.0})";
    auto query = sized<vkrope_model_query>();
    std::uint32_t layer = 4;
    query.layer = &layer;
    vkrope_rotation* read = nullptr;
    CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &read, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "layer is 4: the model has only 4 layers"));
    query.layer_type = "full_attention";
    CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &read, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "query.layer is 4 and query.layer_type is given; set only one of them"));

    auto calling = four_channels();
    const OwnedRotation four = rotation_of(calling);
    CHECK(vkrope_plan_angles(four.get(), VKROPE_ANGLES_COS_SIN_CACHE, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what) ==
          "source is VKROPE_ANGLES_COS_SIN_CACHE: use vkrope_plan_cos_sin_cache for a cache of "
          "your own cos and sin");
    REQUIRE(vkrope_plan_angles(four.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    plan.bytes = 12;
    float memory[16];
    CHECK(vkrope_fill_angles(four.get(), &plan, memory, sizeof memory, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what) ==
          "plan.bytes is 12: it must be the size that vkrope_plan_angles returned for 4 positions");
}

TEST_CASE("C: what the caller wrote is quoted as it is, whatever it looks like") {
    auto query = sized<vkrope_model_query>();
    const std::uint32_t layer = 2;
    query.layer = &layer;
    vkrope_error error;
    vkrope_rotation* none = nullptr;
    for (const std::string path :
         {"rotation.rotates is false: a layer without RoPE has no angle table",
          "source is 9: it must be an AngleSource",
          "source is cos_sin_cache: use plan_cos_sin_cache for a cache of your own cos and sin",
          "layer is 2: the model has only 4 layers", "positions.int64 ",
          "device.enabled is 0x1f: it must hold only bits of DeviceFeature"}) {
        CHECK(vkrope_rotation_from_gguf_file(path.c_str(), &query, &none, &error) ==
              VKROPE_ERROR_INVALID_DATA);
        CHECK(std::string(error.what) == path + " does not exist");
        auto other = sized<vkrope_model_query>();
        other.tower = path.c_str();
        const std::string config =
            R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})";
        CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &other, &none, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(says(error, path.substr(0, 20).c_str()));
    }
}

TEST_CASE("C: a rotation's kernel has its channels, offsets and sections") {
    auto sections = sized<vkrope_sections>();
    sections.axes = 2;
    sections.pairs[0] = sections.pairs[1] = 1;
    auto made = four_channels();
    made.q_rotary_offset = 12;  // latent: the window is beyond head_dim
    made.sections = &sections;
    const OwnedRotation rotation = rotation_of(made);
    auto plan = sized<vkrope_angle_plan>();
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    CHECK(plan.axes == 2);
    CHECK(plan.section_pairs[1] == 1);
    auto q = sized<vkrope_head_format>();
    q.in = VKROPE_ELEMENT_BF16;
    q.out = VKROPE_ELEMENT_F16;
    auto info = sized<vkrope_kernel_info>();
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_rotation_get_kernel_info(rotation.get(), &plan, &q, nullptr, &info,
                                                    &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(info.q == &q);
    CHECK(info.k == nullptr);
    CHECK(q.struct_size == sizeof q);
    CHECK(q.in == VKROPE_ELEMENT_BF16);
    CHECK(q.out == VKROPE_ELEMENT_F16);
    CHECK(q.head_dim == 16);
    CHECK(q.rotary_offset == 12);
    CHECK(info.rotary_dim == 4);
    CHECK(info.angles == VKROPE_ANGLES_DIRECT_BUFFER);
    CHECK(info.positions == VKROPE_POSITIONS_AXIS_IDS);
    REQUIRE(info.sections);
    CHECK(info.sections->axes == 2);

    CHECK(vkrope_rotation_get_kernel_info(rotation.get(), &plan, nullptr, nullptr, &info, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "both absent"));
    plan.axes = 0;
    CHECK(vkrope_rotation_get_kernel_info(rotation.get(), &plan, &q, nullptr, &info, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "plan.sections has 0 axes"));
    CHECK(vkrope_rotation_get_kernel_info(nullptr, &plan, &q, nullptr, &info, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation is null"));
}

TEST_CASE("C: the image of a plan, and an upload that is refused before anything is recorded") {
    const OwnedRotation rotation = rotation_of(four_channels());
    auto plan = sized<vkrope_angle_plan>();
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_TEXTURE, 5, 16, &plan,
                               nullptr) == VKROPE_SUCCESS);
    VkImageCreateInfo image;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_get_angle_image_info(&plan, &image, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(image.format == plan.format);
    CHECK(image.extent.width == plan.extent.width);
    CHECK(image.usage == (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT));
    VkImageViewCreateInfo view;
    const auto handle = (VkImage)std::uintptr_t{5};
    REQUIRE_MESSAGE(vkrope_get_angle_view_info(&plan, handle, &view, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(view.image == handle);
    auto device = sized<vkrope_device_ref>();
    device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
    device.get_instance_proc_addr = no_functions;
    auto upload = sized<vkrope_angle_upload>();
    const auto commands = reinterpret_cast<VkCommandBuffer>(std::uintptr_t{1});
    const auto refuses = [&](const char* words) {
        CHECK(vkrope_record_angle_upload(commands, &device, &plan, &upload, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(says(error, words));
    };
    refuses("upload.staging is null");
    upload.staging = (VkBuffer)std::uintptr_t{1};
    refuses("upload.image is null");
    upload.image = handle;
    upload.staging_offset = 8;
    refuses("upload.staging_offset is 8");
    upload.staging_offset = 16;
    upload.first_line = plan.extent.height;
    refuses("upload.lines is 0 and upload.first_line is 5: the table has only 5 lines");
    upload.first_line = 0;
    refuses("get_instance_proc_addr: it returned null for ");
    VkBuffer buffer = VK_NULL_HANDLE;
    plan.source = VKROPE_ANGLES_COS_SIN_CACHE;
    upload.buffer = buffer;
    refuses("plan.source is 5");
}
