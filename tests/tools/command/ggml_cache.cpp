// SPDX-License-Identifier: MIT
// A quantised cache of this project's beside ggml's own, on ggml's CPU backend.
//
//   vkrope_ggml_cache TYPE HEAD_DIM HEADS TOKENS HADAMARD IN.f32 FINISHED.f32 CODES
//
// IN        [tokens, heads, head_dim] of K before the rotation, token t at position t, base 10000,
//           half_split
// FINISHED  the same rows in f32 after the rotation and the Hadamard transform
// CODES     these rows as TYPE
//
// CODES must be, byte for byte, what ggml's reference makes of FINISHED. The second cache is that
// of a graph as llama.cpp builds it, from IN: rope, product with a Hadamard matrix, set_rows. Its
// arithmetic is not ours: angles are f32, sums have another order, and SIMD rounds halves to even.
// So a code may be one step from ours, and few may be.
#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr double largest_share = 0.002;  // of the codes that may be one step away

struct Rows {
    std::int64_t head_dim = 0, heads = 0, tokens = 0, hadamard = 0;

    std::int64_t channels() const { return head_dim * heads; }
};

[[noreturn]] void fail(const std::string& sentence) {
    std::fprintf(stderr, "ggml_cache: %s\n", sentence.c_str());
    std::exit(1);
}

template <class T>
std::vector<T> read(const char* path, std::size_t count) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() != count * sizeof(T)) {
        fail(std::string(path) + " has " + std::to_string(bytes.size()) + " bytes, must have " +
             std::to_string(count * sizeof(T)));
    }
    std::vector<T> values(count);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
}

ggml_type type_of(const std::string& name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char* known = ggml_type_name(static_cast<ggml_type>(i));
        if (known != nullptr && name == known) {
            return static_cast<ggml_type>(i);
        }
    }
    fail("ggml has no type " + name);
}

std::vector<float> hadamard_matrix(std::int64_t n) {
    std::vector<float> matrix;
    for (std::int64_t i = 0; i < n * n; ++i) {
        const bool odd = std::popcount(static_cast<std::uint64_t>(i / n & i % n)) % 2 != 0;
        matrix.push_back((odd ? -1.f : 1.f) / std::sqrt(static_cast<float>(n)));
    }
    return matrix;
}

/// The cache of the graph.
std::vector<std::uint8_t> cache_of_graph(ggml_type type, const Rows& rows,
                                         const std::vector<float>& in) {
    ggml_backend_load_all();
    const ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    if (cpu == nullptr) {
        fail("ggml has no CPU backend");
    }
    ggml_context* context = ggml_init({1 << 20, nullptr, true});
    ggml_tensor* k = ggml_new_tensor_3d(context, GGML_TYPE_F32, rows.head_dim, rows.heads,
                                        rows.tokens);
    ggml_tensor* positions = ggml_new_tensor_1d(context, GGML_TYPE_I32, rows.tokens);
    ggml_tensor* slots = ggml_new_tensor_1d(context, GGML_TYPE_I64, rows.tokens);
    ggml_tensor* matrix = ggml_new_tensor_2d(context, GGML_TYPE_F32, rows.hadamard, rows.hadamard);
    ggml_tensor* cache = ggml_new_tensor_2d(context, type, rows.channels(), rows.tokens);
    ggml_tensor* rotated = ggml_rope_ext(context, k, positions, nullptr,
                                         static_cast<int>(rows.head_dim), GGML_ROPE_TYPE_NEOX, 0,
                                         10000.f, 1.f, 0.f, 1.f, 0.f, 0.f);
    ggml_tensor* blocks = ggml_reshape_2d(context, rotated, rows.hadamard,
                                          rows.channels() * rows.tokens / rows.hadamard);
    ggml_tensor* turned = ggml_reshape_2d(context, ggml_mul_mat(context, matrix, blocks),
                                          rows.channels(), rows.tokens);
    ggml_tensor* stored = ggml_set_rows(context, cache, turned, slots);
    ggml_cgraph* graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, stored);
    ggml_backend_buffer* memory = ggml_backend_alloc_ctx_tensors(context, cpu);

    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> slot_ids;
    for (std::int64_t t = 0; t < rows.tokens; ++t) {
        ids.push_back(static_cast<std::int32_t>(t));
        slot_ids.push_back(t);
    }
    const std::vector<float> hadamard = hadamard_matrix(rows.hadamard);
    ggml_backend_tensor_set(k, in.data(), 0, ggml_nbytes(k));
    ggml_backend_tensor_set(positions, ids.data(), 0, ggml_nbytes(positions));
    ggml_backend_tensor_set(slots, slot_ids.data(), 0, ggml_nbytes(slots));
    ggml_backend_tensor_set(matrix, hadamard.data(), 0, ggml_nbytes(matrix));
    if (ggml_backend_graph_compute(cpu, graph) != GGML_STATUS_SUCCESS) {
        fail("ggml could not compute the graph");
    }
    std::vector<std::uint8_t> bytes(ggml_nbytes(cache));
    ggml_backend_tensor_get(cache, bytes.data(), 0, bytes.size());
    ggml_backend_buffer_free(memory);
    ggml_free(context);
    ggml_backend_free(cpu);
    return bytes;
}

std::vector<float> numbers_of(ggml_type type, const std::vector<std::uint8_t>& bytes,
                              std::size_t count) {
    std::vector<float> numbers(count);
    ggml_get_type_traits(type)->to_float(bytes.data(), numbers.data(),
                                         static_cast<std::int64_t>(count));
    return numbers;
}

/// From one code to the next, at most.
double step_of(ggml_type type, const float* block) {
    const auto [min, max] = std::minmax_element(block, block + 32);
    const double amax = std::max(std::fabs(double{*min}), std::fabs(double{*max}));
    switch (type) {
        case GGML_TYPE_Q8_0: return amax / 127;
        case GGML_TYPE_Q4_0: return amax / 8;
        case GGML_TYPE_Q5_0: return amax / 16;
        case GGML_TYPE_Q4_1: return (double{*max} - double{*min}) / 15;
        default: return (double{*max} - double{*min}) / 31;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 9) {
        fail("TYPE HEAD_DIM HEADS TOKENS HADAMARD IN.f32 FINISHED.f32 CODES");
    }
    const ggml_type type = type_of(argv[1]);
    const Rows rows = {std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]),
                       std::atoll(argv[5])};
    const auto count = static_cast<std::size_t>(rows.channels() * rows.tokens);
    const std::size_t bytes = ggml_row_size(type, rows.channels()) *
                              static_cast<std::size_t>(rows.tokens);
    const auto in = read<float>(argv[6], count), finished = read<float>(argv[7], count);
    const auto codes = read<std::uint8_t>(argv[8], bytes);

    std::vector<std::uint8_t> reference(bytes);
    ggml_quantize_chunk(type, finished.data(), reference.data(), 0, rows.tokens, rows.channels(),
                        nullptr);
    std::size_t differing = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        differing += codes[i] != reference[i] ? 1 : 0;
    }

    const std::vector<float> ours = numbers_of(type, codes, count),
                             theirs = numbers_of(type, cache_of_graph(type, rows, in), count);
    std::size_t one_step = 0, further = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double off = std::fabs(double{ours[i]} - double{theirs[i]});
        const double step = step_of(type, &finished[i / 32 * 32]);
        // A scale that differs by one unit of f16 moves a number by up to 2^-10 of itself.
        one_step += off > 0.5 * step ? 1 : 0;
        further += off > 1.1 * step || std::isnan(off) ? 1 : 0;
    }
    std::printf(
        "%s: %zu of %zu bytes differ from ggml's reference on the same rows; of its graph, "
        "%zu of %zu codes are one step away, %zu further\n",
        argv[1], differing, bytes, one_step - std::min(one_step, further), count, further);
    const bool right = differing == 0 && further == 0 &&
                       static_cast<double>(one_step) <= largest_share * static_cast<double>(count);
    return right ? 0 : 1;
}
