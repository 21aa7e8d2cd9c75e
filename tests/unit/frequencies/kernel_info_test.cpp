// SPDX-License-Identifier: MIT
// Checks KernelInfo from a model: widths, offsets, sections and positions, in C++ and in C, and
// that a plan of another model is detected.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "base/meaning.hpp"
#include "support/names.hpp"
#include "unit/kernel/given.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

namespace {

RopeParams read(const char* file) {
    std::ifstream json(std::string(VKROPE_TEST_MODELS) + "/" + file);
    const std::string text{std::istreambuf_iterator<char>(json), {}};
    REQUIRE(!text.empty());
    auto rotation = from_hf_config(text);
    REQUIRE_MESSAGE(rotation, rotation.status.what);
    return std::move(rotation.value);
}

AngleTableLayout plan_of(const RopeParams& rotation, AngleSource source = VKROPE_ANGLES_AUTOMATIC) {
    const auto plan = plan_angles(rotation, source, 4096, 16384);
    REQUIRE_MESSAGE(plan, plan.status.what);
    return plan.value;
}

KernelInfo info_of(const RopeParams& rotation, std::optional<Element> q = VKROPE_F16,
                   std::optional<Element> k = VKROPE_F16) {
    const auto info = kernel_info(rotation, plan_of(rotation), q, k);
    REQUIRE_MESSAGE(info, info.status.what);
    return info.value;
}

void refuses(const Status& status, const char* words) {
    test::check_invalid(status, words);
}

}  // namespace

TEST_CASE("kernel_info: a model with one position per token") {
    const RopeParams llama = read("llama-3.1-8b.json");
    const KernelInfo info = info_of(llama, VKROPE_BF16, VKROPE_F16);
    CHECK(info.pairing == VKROPE_HALF_SPLIT);
    CHECK(info.rotary_dim == 128);
    CHECK(same_format(info.tensor[Q], TensorInfo{VKROPE_BF16, VKROPE_BF16, 128, 0}));
    CHECK(same_format(info.tensor[K], TensorInfo{VKROPE_F16, VKROPE_F16, 128, 0}));
    CHECK(info.angles == VKROPE_ANGLES_FACTORED_TEXTURE);
    CHECK(info.positions == VKROPE_POSITIONS_IMPLICIT);
    CHECK(info.sections.axes == 0);
    CHECK(info_of(llama, VKROPE_F32, {}).tensor[K].head_dim == 0);
    CHECK(info_of(llama, {}, VKROPE_F32).tensor[Q].head_dim == 0);
    CHECK(kernel_info(llama, plan_of(llama, VKROPE_ANGLES_COMPUTED), VKROPE_F32, {})->angles ==
          VKROPE_ANGLES_COMPUTED);
}

TEST_CASE("kernel_info: the windows of a rotation") {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = 24;
    rotation.rotary_dim = 20;
    rotation.windows[0] = {0, 8};
    rotation.windows[1] = {10, 12};
    rotation.inv_freq = std::vector<double>(10, 1.0);
    const KernelInfo info = info_of(rotation);
    CHECK(info.rotary_dim == 20);
    CHECK(info.windows[0].rotary_dim == 8);
    CHECK(info.windows[1].offset == 10);
    CHECK(info.windows[1].rotary_dim == 12);
    CHECK(info.windows[2].rotary_dim == 0);
    CHECK(vkrope_row_channels(&rotation, 0) == 24);
    CHECK(vkrope_row_channels(&rotation, 4) == 28);  // the last window ends at 26
    const auto refused = [&](const char* words) {
        refuses(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 16384).status, words);
    };
    rotation.windows[1] = {6, 12};
    refused("rotation.windows[1].offset 6 windows[0] 8");
    rotation.windows[1] = {10, 11};
    refused("rotation.windows[1].rotary_dim 11");
    rotation.windows[1] = {10, 10};
    refused("rotation.rotary_dim 20 18");
    rotation.windows[1] = {10, 0};
    refused("rotation.windows[1].rotary_dim 0 10");
    rotation.windows[1] = {};
    rotation.windows[2] = {10, 12};
    refused("rotation.windows[2].rotary_dim 12 windows[1]");
}

TEST_CASE("kernel_info: rows of latent attention are wider than the rotated channels") {
    const RopeParams deepseek = read("deepseek-v2-lite.json");
    REQUIRE(deepseek.head_dim == 64);
    const KernelInfo info = info_of(deepseek);
    CHECK(same_format(info.tensor[Q], TensorInfo{VKROPE_F16, VKROPE_F16, 192,
                                                 128}));  // qk_nope_head_dim + qk_rope_head_dim
    CHECK(same_format(info.tensor[K], TensorInfo{VKROPE_F16, VKROPE_F16, 576,
                                                 512}));  // kv_lora_rank + qk_rope_head_dim
    CHECK(vkrope_row_channels(&deepseek, deepseek.q_rotary_offset) == 192);
    CHECK(vkrope_row_channels(&deepseek, deepseek.k_rotary_offset) == 576);
    RopeParams partial;
    partial.head_dim = 80;
    partial.rotary_dim = 20;
    partial.q_rotary_offset = 60;
    partial.inv_freq = std::vector<double>(10, 1.0);
    CHECK(vkrope_row_channels(&partial, partial.q_rotary_offset) ==
          80);  // a window at the end of the head does not mean a latent row
    CHECK(vkrope_row_channels(&partial, partial.k_rotary_offset) == 80);
}

TEST_CASE("kernel_info: a layer without RoPE has rows, ops and heads, and defaults otherwise") {
    RopeParams nope = read("llama-3.1-8b.json");
    nope.no_rope = true;
    nope.rotary_dim = 0;
    nope.inv_freq = {};
    nope.sections = {.axes = 2, .pairs = {32, 32}};
    nope.head_groups = 2;
    nope.ops.tensor[Q].scale_tokens = true;
    nope.ops.tensor[K].norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-5f};
    const auto info = kernel_info(nope, VKROPE_F16, VKROPE_BF16, VKROPE_F32);
    REQUIRE_MESSAGE(info, info.status.what);
    KernelInfo wanted;
    wanted.tensor[Q] = {VKROPE_F16, VKROPE_F16, 128, 0, 32, {.scale_tokens = true}};
    wanted.tensor[K] = {VKROPE_BF16, VKROPE_BF16, 128, 0, 8, nope.ops.tensor[K]};
    wanted.tensor[V] = {VKROPE_F32, VKROPE_F32, 128, 0, 8};
    CHECK(std::memcmp(&info.value, &wanted, sizeof wanted) == 0);
    const Status allowed = check(Given{}.device, completed(info.value));
    CHECK_MESSAGE(allowed, allowed.what);

    const auto only_k = kernel_info(nope, {}, VKROPE_F16);
    REQUIRE(only_k);
    CHECK(only_k->tensor[Q].head_dim == 0);
    CHECK(only_k->tensor[K].head_dim == 128);
    CHECK(kernel_info(nope, VKROPE_F16, {})->tensor[K].head_dim == 0);

    const AngleTableLayout plan = plan_of(read("llama-3.1-8b.json"));
    refuses(kernel_info(nope, plan, VKROPE_F16, {}).status, "layout given rotation.no_rope");
    refuses(kernel_info(nope, {}, {}).status, "q k");
    for (const std::uint32_t head_dim : {0u, 1u, 65536u}) {
        nope.head_dim = head_dim;
        refuses(kernel_info(nope, VKROPE_F16, {}).status, "rotation.head_dim");
    }
}

TEST_CASE("kernel_info: a latent row without RoPE is whole, and other rows have no latent norm") {
    RopeParams kimi;  // Kimi Linear's layers of latent attention
    kimi.head_dim = 64;
    kimi.q_rotary_offset = 128;
    kimi.k_rotary_offset = 512;
    kimi.no_rope = true;
    const Norm norm = {
        .kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL, .channels = 512};
    kimi.ops.tensor[K].norm = norm;
    kimi.ops.q_heads = 32;
    kimi.ops.k_heads = 1;
    const auto latent = kernel_info(kimi, VKROPE_F16, VKROPE_F16);
    REQUIRE_MESSAGE(latent, latent.status.what);
    CHECK(latent->tensor[Q].head_dim == 192);
    CHECK(latent->tensor[Q].rotary_offset == 0);
    CHECK(latent->tensor[Q].heads == 32);
    CHECK(latent->tensor[K].head_dim == 576);
    CHECK(latent->tensor[K].rotary_offset == 0);
    CHECK(latent->tensor[K].heads == 1);
    CHECK(std::memcmp(&latent->tensor[K].ops.norm, &norm, sizeof norm) == 0);
    kimi.q_rotary_offset = 64;  // the window of a query may begin where head_dim ends
    CHECK(vkrope_row_channels(&kimi, kimi.q_rotary_offset) == 128);

    // The rotated channels alone, and keys assembled for each head, also if they are long enough
    // for the latent norm.
    for (const std::uint32_t offset : {0u, 128u, 576u}) {
        kimi.k_rotary_offset = offset;
        const auto other = kernel_info(kimi, VKROPE_F16, VKROPE_F16);
        REQUIRE_MESSAGE(other, other.status.what);
        CHECK(other->tensor[K].head_dim == 64 + offset);
        CHECK(other->tensor[K].ops.norm.kind == VKROPE_NORM_NONE);
        CHECK(other->tensor[K].ops.norm.channels == 0);
        CHECK(other->tensor[K].heads == 0);
    }
}

TEST_CASE("kernel_info: sections are copied, and record refuses a kernel without them") {
    const RopeParams qwen = read("qwen2-vl-2b.json");
    REQUIRE(qwen.sections.axes == 3);
    const AngleTableLayout plan = plan_of(qwen);
    KernelInfo info = info_of(qwen);
    CHECK(info.positions == VKROPE_POSITIONS_AXIS_IDS);
    CHECK(info.sections == qwen.sections);
    CHECK(plan.sections == qwen.sections);

    const auto buffer = fake<VkBuffer>(1);
    Call call{.tokens = 1};
    call.in[Q] = call.out[Q] = {.where = {buffer, 0, 256}, .heads = 1};
    call.positions.ids = {buffer, 256, 12};
    call.positions.axis_stride = 1;
    call.angles = {.layout = &plan, .view = fake<VkImageView>(2)};
    const auto told = [&] {
        return resolve(completed(info), ops_needs(info), {.range = 1u << 20}, call).status;
    };
    REQUIRE_MESSAGE(told(), told().what);
    KernelInfo without = info;
    without.sections = {};
    without.positions = VKROPE_POSITIONS_IDS;
    std::swap(info, without);
    call.positions.axis_stride = 0;
    refuses(told(), "angles.layout->sections.axes 3");
    std::swap(info, without);
    call.positions.axis_stride = 1;
    info.sections.order = VKROPE_SECTIONS_INTERLEAVED;
    refuses(told(), "angles.layout->sections");
    info.sections = qwen.sections;
    std::swap(info.sections.pairs[0], info.sections.pairs[1]);
    refuses(told(), "angles.layout->sections");
    info.sections = qwen.sections;
    info.sections.leftover_axis = 2;  // has no meaning in this order
    refuses(check(Given{}.device, info), "sections.leftover_axis 2");
}

TEST_CASE("kernel_info: what it refuses, and what it returns for the caller's own table") {
    const RopeParams llama = read("llama-3.1-8b.json"), deepseek = read("deepseek-v2-lite.json"),
                     qwen = read("qwen2-vl-2b.json");
    const std::optional<Element> none;
    refuses(kernel_info(llama, nullptr, VKROPE_F16, none, none).status, "layout null");
    refuses(kernel_info(llama, plan_of(deepseek), VKROPE_F16, {}).status, "layout.pairs 32");
    refuses(kernel_info(llama, AngleTableLayout{}, VKROPE_F16, {}).status, "layout.source 0");
    refuses(kernel_info(llama, plan_of(qwen), VKROPE_F16, {}).status, "layout.sections 3");
    RopeParams other_order = qwen;
    other_order.sections.order = VKROPE_SECTIONS_INTERLEAVED;
    refuses(kernel_info(other_order, plan_of(qwen), VKROPE_F16, {}).status, "layout.sections");
    refuses(kernel_info(llama, plan_of(llama), {}, {}).status, "q k");
    RopeParams changed = llama;
    changed.pairing = RopeParams().pairing;
    refuses(kernel_info(changed, plan_of(llama), VKROPE_F16, {}).status, "rotation.pairing 0");
    changed = llama;
    for (const std::uint32_t head_dim : {0u, 64u, 127u, 65536u}) {
        changed.head_dim = head_dim;
        refuses(kernel_info(changed, plan_of(llama), VKROPE_F16, {}).status, "rotation.head_dim");
    }
    AngleTableLayout broken = plan_of(llama);
    broken.source = AngleSource(9);
    refuses(kernel_info(llama, broken, VKROPE_F16, {}).status, "layout.source 9");

    const auto theirs = plan_cos_sin_cache(64, 100, 64, VKROPE_BF16);
    REQUIRE(theirs);
    const auto info = kernel_info(qwen, theirs.value, VKROPE_F16, {});
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->angles == VKROPE_ANGLES_COS_SIN_CACHE);
    CHECK(info->table == VKROPE_BF16);
    CHECK(info->sections == qwen.sections);
}

TEST_CASE("sections are equal where every pair has the same axis") {
    const Sections none, sequential{.axes = 3, .pairs = {16, 24, 24}},
        interleaved{.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {24, 20, 20}};
    CHECK(none == Sections{.order = VKROPE_SECTIONS_INTERLEAVED, .pairs = {1}, .leftover_axis = 2});
    CHECK(none != sequential);
    CHECK(sequential == Sections{.axes = 3, .pairs = {16, 24, 24}, .leftover_axis = 1});
    CHECK(sequential != Sections{.axes = 3, .pairs = {24, 16, 24}});
    CHECK(sequential != Sections{.axes = 4, .pairs = {16, 24, 24}});
    CHECK(interleaved != Sections{.order = VKROPE_SECTIONS_INTERLEAVED,
                                  .axes = 3,
                                  .pairs = {24, 20, 20},
                                  .leftover_axis = 1});
    CHECK(interleaved != Sections{.axes = 3, .pairs = {24, 20, 20}});
}

}  // namespace vkrope
