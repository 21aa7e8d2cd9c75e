// SPDX-License-Identifier: MIT
#include "shapes.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "meaning.hpp"

namespace vkrope::bench {
namespace {

Shape llama3_8b(std::string name, std::uint32_t tokens) {
    return {.name = std::move(name),
            .model = "Llama 3.1 8B",
            .tokens = tokens,
            .q_heads = 32,
            .k_heads = 8,
            .q_head_dim = 128,
            .k_head_dim = 128,
            .rotary_dim = 128,
            .base = 500000,
            .max_position = std::max(tokens, 1u)};
}

/// Returns a decode shape: one token in each of `sequences`, and 16 384 cache rows, which do not
/// fit in a CPU cache.
Shape decode(std::string name, std::uint32_t sequences) {
    Shape shape = llama3_8b(std::move(name), sequences);
    shape.numbering = Numbering::decoding;
    shape.max_position = 131072;
    shape.page_size = 16;
    shape.pages = 1024;
    return shape;
}

const std::vector<Shape>& table() {
    static const std::vector<Shape> all = [] {
        std::vector<Shape> made = {llama3_8b("prefill_llama3_8b", 4096)};
        Shape shape = llama3_8b("prefill_llama3_70b", 4096);
        shape.model = "Llama 3.1 70B";
        shape.q_heads = 64;
        made.push_back(shape);
        shape = llama3_8b("prefill_qwen3_30b", 4096);
        shape.model = "Qwen3 30B-A3B";
        shape.k_heads = 4;
        shape.base = 1000000;
        made.push_back(shape);
        made.push_back(llama3_8b("long_llama3_8b", 131072));
        made.push_back(decode("decode_b1", 1));
        made.push_back(decode("decode_b64", 64));
        made.push_back(decode("decode_b256", 256));
        made.push_back({.name = "mla_deepseek",
                        .model = "DeepSeek-V3",
                        .tokens = 1024,
                        .q_heads = 128,
                        .k_heads = 1,
                        .q_head_dim = 192,
                        .k_head_dim = 576,
                        .rotary_dim = 64,
                        .q_offset = 128,
                        .k_offset = 512,
                        .pairing = VKROPE_INTERLEAVED,
                        .max_position = 1024});
        made.push_back({.name = "partial_neox_20b",
                        .model = "GPT-NeoX 20B",
                        .tokens = 2048,
                        .q_heads = 64,
                        .k_heads = 64,
                        .q_head_dim = 96,
                        .k_head_dim = 96,
                        .rotary_dim = 24,
                        .max_position = 2048});
        made.push_back({.name = "mrope_qwen2_vl",
                        .model = "Qwen2-VL 7B",
                        .tokens = 4096,
                        .q_heads = 28,
                        .k_heads = 4,
                        .q_head_dim = 128,
                        .k_head_dim = 128,
                        .rotary_dim = 128,
                        .base = 1000000,
                        .max_position = 4096,
                        .numbering = Numbering::text_image,
                        .sections = {.axes = 3, .pairs = {16, 24, 24}}});
        made.push_back({.name = "vision_2d",
                        .model = "EVA-02-L",
                        .batch = 8,
                        .tokens = 1024,
                        .q_heads = 16,
                        .k_heads = 16,
                        .q_head_dim = 64,
                        .k_head_dim = 64,
                        .rotary_dim = 64,
                        .max_position = 32,
                        .numbering = Numbering::grid,
                        .windows = {{0, 32}, {32, 32}},
                        .sections = {.axes = 2, .pairs = {16, 16}}});
        made.push_back({.name = "gptj_interleaved",
                        .model = "GPT-J 6B",
                        .tokens = 2048,
                        .q_heads = 16,
                        .k_heads = 16,
                        .q_head_dim = 256,
                        .k_head_dim = 256,
                        .rotary_dim = 64,
                        .pairing = VKROPE_INTERLEAVED,
                        .max_position = 2048});
        return made;
    }();
    return all;
}

/// Alternates 64 tokens of text with images of 16 x 16 patches, numbered as in Qwen2-VL: time,
/// height and width continue from the largest previous position.
void number_text_image(std::uint32_t tokens, std::vector<std::int32_t>& ids) {
    constexpr std::uint32_t text = 64, side = 16;
    std::uint32_t next = 0;
    for (std::uint32_t t = 0; t < tokens; ++t) {
        const std::uint32_t within = t % (text + side * side), patch = within - text;
        const bool of_text = within < text;
        const std::uint32_t axes[] = {next, of_text ? next : next + patch / side,
                                      of_text ? next : next + patch % side};
        for (std::uint32_t axis = 0; axis < 3; ++axis)
            ids[std::size_t{axis} * tokens + t] = std::int32_t(axes[axis]);
        if (of_text) next += 1;
        if (within == text + side * side - 1) next += side;
    }
}

}  // namespace

bool Shape::plain() const {
    return numbering == Numbering::ascending && pairing == VKROPE_HALF_SPLIT && batch == 1 &&
           q_head_dim == rotary_dim && k_head_dim == rotary_dim && !scatters();
}

std::span<const Shape> shapes() {
    return table();
}

Shape growing_tokens(std::uint32_t tokens) {
    return llama3_8b("growth/tokens/" + std::to_string(tokens), tokens);
}

Shape growing_tokens_of_one_head(std::uint32_t tokens) {
    Shape shape = llama3_8b("growth/tokens_of_one_head/" + std::to_string(tokens), tokens);
    shape.q_heads = 1;
    shape.k_heads = shape.k_head_dim = 0;
    return shape;
}

Shape growing_heads(std::uint32_t heads) {
    Shape shape = llama3_8b("growth/heads/" + std::to_string(heads), 4096);
    shape.q_heads = heads;
    shape.k_heads = shape.k_head_dim = 0;
    return shape;
}

std::uint64_t device_bytes(const Shape& shape, Element element) {
    return (2 * shape.q_elements() + shape.k_elements() + shape.k_out_elements()) *
           element_bytes(element);
}

Shape reduced(Shape shape, Element element, std::uint64_t bytes) {
    while (shape.tokens > 1 && device_bytes(shape, element) > bytes) shape.tokens /= 2;
    return shape;
}

RopeParams rotation_of(const Shape& shape) {
    RopeParams rotation;
    rotation.pairing = shape.pairing;
    rotation.head_dim = shape.q_head_dim;
    rotation.rotary_dim = shape.rotary_dim;
    rotation.q_rotary_offset = shape.q_offset;
    rotation.k_rotary_offset = shape.k_offset;
    rotation.base = shape.base;
    rotation.sections = shape.sections;
    std::copy(shape.windows.begin(), shape.windows.end(), rotation.windows);
    // Each window has frequencies for its width.
    std::vector<Window> windows = shape.windows;
    if (windows.empty()) windows = {{0, shape.rotary_dim}};
    for (const Window& window : windows) {
        std::vector<double> inv_freq(window.rotary_dim / 2);
        static_cast<void>(default_inv_freq(shape.base, window.rotary_dim,
                                           inv_freq.data()));  // the shapes in the table are valid
        rotation.inv_freq.insert(rotation.inv_freq.end(), inv_freq.begin(), inv_freq.end());
    }
    return rotation;
}

std::vector<std::int32_t> ids_of(const Shape& shape) {
    const std::uint32_t tokens = shape.tokens;
    std::vector<std::int32_t> ids(std::size_t{tokens} * std::max(shape.sections.axes, 1u));
    switch (shape.numbering) {
        case Numbering::ascending: return {};
        case Numbering::decoding: {
            std::mt19937 generator(1);
            for (std::int32_t& id : ids) id = std::int32_t(generator() % shape.max_position);
            ids.back() = std::int32_t(shape.max_position - 1);
            break;
        }
        case Numbering::text_image: number_text_image(tokens, ids); break;
        case Numbering::grid: {
            const auto side = std::uint32_t(shape.max_position);
            for (std::uint32_t t = 0; t < tokens; ++t) {
                ids[t] = std::int32_t(t / side);
                ids[std::size_t{tokens} + t] = std::int32_t(t % side);
            }
        }
    }
    return ids;
}

std::vector<std::int32_t> slots_of(const Shape& shape) {
    if (!shape.scatters()) return {};
    std::vector<std::int32_t> slots(std::size_t{shape.pages} * shape.page_size);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), std::mt19937(2));
    slots.resize(shape.rows());
    return slots;
}

}  // namespace vkrope::bench
