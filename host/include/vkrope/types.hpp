// SPDX-License-Identifier: MIT
// Types that all tiers share: status, element types, pairings, angle sources, table layouts. Longer
// than other files, because KernelInfo and its parts stay together.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "vkrope/version.h"

namespace vkrope {

/// Result of a call: 0, or an error code.
enum class Code : std::int32_t {
    ok = 0,
    invalid_argument,    ///< a field has an invalid value; nothing was created, recorded or changed
    not_supported,       ///< valid, but not supported by this version or this device
    limit_exceeded,      ///< exceeds a limit of the device or the format; `what` gives both numbers
    invalid_data,        ///< the model file cannot be read or contradicts itself
    no_device,           ///< no Vulkan loader, or no suitable device
    out_of_host_memory,  ///< a host allocation of the library, Vulkan or a callback failed
    out_of_device_memory,  ///< Vulkan could not allocate device memory
    device_lost,   ///< every later call on this device fails the same way; destroying is safe
    timeout,       ///< a wait reached its time limit; the work may still be running
    vulkan_error,  ///< any other VkResult; see `vk_result`
};

/// The outcome of a call. Has a fixed size, so reporting an error allocates nothing.
struct [[nodiscard]] Status {
    Code code = Code::ok;
    VkResult vk_result = VK_SUCCESS;  ///< VkResult that caused the error, if any; else VK_SUCCESS
    char what[240] = {};              ///< one sentence, null-terminated: field, value, rule

    explicit operator bool() const noexcept { return code == Code::ok; }
};

/// A value, or the status that says why there is none (`value` is then value-initialised).
template <class T>
struct [[nodiscard]] Result {
    Status status;
    T value{};

    explicit operator bool() const noexcept { return bool(status); }
    T* operator->() noexcept { return &value; }
    const T* operator->() const noexcept { return &value; }
};

/// Index of a tensor in arrays of three: KernelInfo::tensor, Call::in and others.
enum TensorIndex : std::uint32_t { Q, K, V };
inline constexpr TensorIndex every_tensor[] = {Q, K, V};
inline constexpr std::uint32_t tensor_count = 3;

/// Which two channels of a head row form pair j, in a window of R channels that starts at channel
/// O.
enum class Pairing : std::uint32_t {
    half_split = 0,   ///< (O + j, O + j + R/2): GPT-NeoX, Hugging Face Llama
    interleaved = 1,  ///< (O + 2j, O + 2j + 1): RoFormer, GPT-J
};

/// Storage format of a tensor element, little-endian. The quantised types, from e4m3fn on, are for
/// TensorInfo::out only; their bytes equal the named definition on every device.
enum class Element : std::uint32_t {
    f32 = 0,     ///< IEEE 754 binary32
    f16 = 1,     ///< IEEE 754 binary16
    bf16 = 2,    ///< bfloat16: the upper half of a binary32
    e4m3fn = 3,  ///< 8-bit float (OFP8, Open Compute Project) with 4 exponent bits, rounded to
                 ///< nearest even; clamped to a magnitude of 448, infinities too; a NaN is 0x7f
    e5m2 =
        4,  ///< 8-bit float (OFP8) with 5 exponent bits, as e4m3fn; clamped to a magnitude of 57344
    int8 = 5,  ///< two's complement, ties away from zero, -127 to 127; a NaN is 0
    /// Blocks of 32 channels as ggml's functions quantize_row_*_ref make them. A NaN is left out of
    /// a block's scale and has the code of 0, or for q4_1 and q5_1 of the smallest channel; if the
    /// scale or its reciprocal overflows, all channels have this code.
    q8_0 = 6,
    q4_0 = 7,   ///< as q8_0
    q4_1 = 8,   ///< as q8_0
    q5_0 = 9,   ///< as q8_0
    q5_1 = 10,  ///< as q8_0
};

/// Whether a type can only be stored.
constexpr bool is_quantised(Element element) noexcept {
    return element > Element::bf16;
}

/// Channels of a block: 32 for ggml's types; 1 for the others, whose elements stand alone.
constexpr std::uint32_t block_channels(Element element) noexcept {
    return element >= Element::q8_0 && element <= Element::q5_1 ? 32 : 1;
}

/// Bytes of one element, or of one block.
constexpr std::uint32_t element_bytes(Element element) noexcept {
    constexpr std::uint32_t bytes[] = {4, 2, 2, 1, 1, 1, 34, 18, 20, 22, 24};
    return element <= Element::q5_1 ? bytes[std::uint32_t(element)] : 2;
}

/// Where the shader gets cos and sin. For a given source the output bits are the same on every
/// device. f32 output is within B u a (|x0| + |x1|) + 2^-148 of the exact value (2^-123 more if the
/// device flushes subnormals), with u = 2^-24 and a = attention_factor, 2^-64 to 2^64; f16 and bf16
/// output is such a value rounded to nearest.
enum class AngleSource : std::uint32_t {
    by_default = 0,  ///< plan_angles chooses: direct_texture for AnglePrecision::float32, else
                     ///< factored_texture for a max_position up to 2^22, else computed
    factored_texture =
        1,  ///< B = 6: RGBA32F texture with rows for the two 11-bit digits of |position| < 2^22
    computed = 2,        ///< B = 4.5: no table, 8 bytes per pair; every int32 position
    direct_texture = 3,  ///< B = 3 (2.5 if a = 1): RGBA32F texture, one row per position, two (cos,
                         ///< sin) pairs per texel
    direct_buffer =
        4,  ///< B as direct_texture: storage buffer of float (cos, sin) pairs, one row per position
    cos_sin_cache = 5,  ///< cos and sin from two storage buffers of the caller, with any values
                        ///< (ONNX); see plan_cos_sin_cache
};

/// How the angle of a pair is computed.
enum class AnglePrecision : std::uint32_t {
    exact = 0,  ///< position times the double inv_freq, not rounded
    /// float(position) * float(inv_freq) rounded to float; its cos and sin rounded to float,
    /// multiplied by float(attention_factor) and rounded to float. This is what Hugging Face
    /// transformers computes from its float32 inv_freq. The relative error of the angle is up to
    /// 2^-23 (2^-24 if inv_freq are floats; 2^-24 more from position 2^24 on): 7.8e-3 rad for the
    /// fastest pair at position 131071.
    float32 = 1,
};

/// Where the position of a token comes from.
enum class PositionSource : std::uint32_t {
    implicit = 0,  ///< first position + index of the token in its sequence
    ids = 1,       ///< one int32 or int64 per token, in a buffer
    axis_ids = 2,  ///< one per token and axis (M-RoPE, vision, video)
};

/// Which axis rotates a pair if tokens have a position on each of several axes (M-RoPE, vision,
/// video). For pair j, counted over all windows, let m = j mod the sum of `pairs`:
enum class SectionOrder : std::uint32_t {
    sequential = 0,  ///< the section that contains m: Qwen2-VL; vision, where each axis has its own
                     ///< frequencies
    interleaved = 1,  ///< axis m mod 3 if m < 3 * pairs[m mod 3], else leftover_axis: Qwen3-VL
    /// No pair has an axis of its own: the angle of each pair is the sum over all axes of position
    /// times frequency. Every axis has frequencies for every pair, and `pairs` are 0.
    /// AngleSource::computed only: Mochi, RoPE-ViT with learned frequencies.
    sum = 2,
};
inline constexpr std::uint32_t max_axes = 8;
/// Which axis rotates which pairs.
struct Sections {
    SectionOrder order = SectionOrder::sequential;
    std::uint32_t axes = 0;  ///< 2 to max_axes, interleaved: 3 or 4; 0: one position per token
    std::uint32_t pairs[max_axes] = {};  ///< pairs of each section; the sum is above 0, except in
                                         ///< SectionOrder::sum
    std::uint32_t leftover_axis = 0;     ///< interleaved only
};
/// Axes whose products of position and frequency are added in the angle of one pair.
constexpr std::uint32_t summed_axes(const Sections& sections) noexcept {
    return sections.order == SectionOrder::sum ? sections.axes : 1;
}

/// True if both assign the same axis to every pair. Ignores fields that have no effect.
constexpr bool operator==(const Sections& a, const Sections& b) noexcept {
    if (a.axes != b.axes) return false;
    if (a.axes == 0) return true;
    for (std::uint32_t i = 0; i < max_axes; ++i) {
        if (a.pairs[i] != b.pairs[i]) return false;
    }
    return a.order == b.order &&
           (a.order != SectionOrder::interleaved || a.leftover_axis == b.leftover_axis);
}
constexpr bool operator!=(const Sections& a, const Sections& b) noexcept {
    return !(a == b);
}

enum class Direction : std::uint32_t {
    forward = 0,  ///< y0 = x0 c - x1 s, y1 = x0 s + x1 c
    inverse = 1,  ///< s -> -s: the gradient; undoes the rotation if the attention factor is 1
};

/// How the attention factor, which angle tables contain, is applied. If it is not 1, `omit` and
/// `divide_out` multiply cos and sin by a float, which adds up to 2 u to the error bound of the
/// source (u = 2^-24). A table filled with the wanted factor avoids this error.
enum class Gain : std::uint32_t {
    apply = 0,       ///< multiply by it: forward and gradient
    omit = 1,        ///< leave it out: for shifting the positions of keys that contain it
    divide_out = 2,  ///< divide by it: undoes a rotation, together with Direction::inverse
};

/// Layout of an angle table. The caller creates the image or buffer; fill_angles (frequencies.hpp)
/// writes its content.
struct AnglePlan {
    AngleSource source = AngleSource::factored_texture;  ///< never by_default
    VkFormat format = VK_FORMAT_UNDEFINED;  ///< textures: VK_FORMAT_R32G32B32A32_SFLOAT; linear
                                            ///< memory is row-major
    VkExtent2D extent = {0, 0};             ///< textures: size in texels
    VkFlags usage = 0;        ///< VkImageUsageFlags of a texture or VkBufferUsageFlags of a buffer,
                              ///< without transfer bits
    std::size_t bytes = 0;    ///< size of the content
    std::uint32_t pairs = 0;  ///< rotary_dim / 2
    std::uint32_t rows = 0;   ///< covers positions with |position| < rows
    /// Textures: row r starts at texel (row_texels * (r >> fold_log2), r & ((1 << fold_log2) - 1)).
    /// Direct: row r is position r. Factored: rows 0 to ceil(rows / 2048) - 1 are the multiples of
    /// 2048, with a factor of 1; the rows after them are the positions below 2048, with the
    /// attention factor.
    std::uint32_t fold_log2 = 0;
    std::uint32_t row_texels = 0;  ///< textures: texels per row; a texel holds two pairs
    double attention_factor = 1;   ///< factor that the table contains; finite and above 0
    /// Sections of the rotation; record() rejects a kernel created for different ones. A
    /// cos_sin_cache has none.
    Sections sections = {};
    bool phase = false;              ///< each pair has a phase: Rotation::phase
    std::uint32_t head_groups = 1;   ///< groups of heads with frequencies of their own
    Element element = Element::f32;  ///< cos_sin_cache: element type of cos and sin
    std::uint32_t row_stride =
        0;  ///< cos_sin_cache: elements from one row to the next; only the first `pairs` of
            ///< a row are used, or 2 * pairs with channel_angles
    /// cos_sin_cache: each channel has cos and sin of its own, in the order of the rotated
    /// channels: y0 = x0 c[channel 0] - x1 s[channel 0], y1 = x1 c[channel 1] + x0 s[channel 1].
    bool channel_angles = false;
};

/// Division of a table into lines: texel lines of a texture, positions of a buffer. Computed angles
/// are one line.
struct AngleLines {
    std::uint32_t count = 0;
    std::size_t bytes = 0;  ///< bytes per line
};
inline AngleLines angle_lines(const AnglePlan& plan) noexcept {
    if (plan.source == AngleSource::computed) return {1, plan.bytes};
    if (plan.source == AngleSource::direct_buffer)
        return {plan.phase ? 2 * plan.rows - 1 : plan.rows,  // with phases, -rows + 1 to rows - 1
                std::size_t{plan.pairs} * 8};                // cos and sin, a float each
    return {plan.extent.height, std::size_t{plan.extent.width} * 16};  // texels of four floats
}

/// Range of channels of a head row; pairs are formed within it.
struct Window {
    std::uint32_t offset = 0;      ///< first channel, relative to TensorInfo::rotary_offset
    std::uint32_t rotary_dim = 0;  ///< channels: even
};
constexpr bool operator==(const Window& a, const Window& b) noexcept {
    return a.offset == b.offset && a.rotary_dim == b.rotary_dim;
}
inline constexpr std::uint32_t max_windows = 4;

/// How work is distributed over invocations. Does not change the result bits.
enum class Mapping : std::uint32_t {
    by_device = 0,  ///< cpu for VK_PHYSICAL_DEVICE_TYPE_CPU, gpu for other devices
    gpu,            ///< many small invocations; neighbours process neighbouring channels
    cpu,            ///< few large invocations: each processes all heads of a token
};

/// How f16 is converted to and from f32. Does not change the result bits, except the sign and
/// payload of a NaN.
enum class Conversion : std::uint32_t {
    by_device = 0,  ///< integer for VK_PHYSICAL_DEVICE_TYPE_CPU and if native is not available
    /// By the device, as SPIR-V defines it under RoundingModeRTE 16. Requires
    /// DeviceFeature::float_controls and shader_float16, and a device that reports
    /// shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16. Subnormal halves are
    /// converted by integer operations unless it reports shaderDenormPreserveFloat16.
    native,
    integer,  ///< by integer operations
};

/// Which norm a row takes. A row is the channels of one head, or of all heads of a token.
enum class NormKind : std::uint32_t {
    none = 0,
    rms = 1,    ///< x / sqrt(mean of x^2 + eps)
    layer = 2,  ///< (x - m) / sqrt(mean of (x - m)^2 + eps), m the mean of x
};

/// What a norm takes as one row.
enum class NormSpan : std::uint32_t {
    head = 0,   ///< the head_dim channels of one head (Qwen3, Gemma 3)
    token = 1,  ///< all heads of a token (OLMo 2, video models); requires the number of heads
};

/// Where a norm stands.
enum class NormPlace : std::uint32_t {
    before = 0,  ///< before clip and rotation
    after = 1,   ///< after the rotation (HunYuan, Llama 4)
};

/// Shape of a weight, bias or scale in the parameter buffer.
enum class ParameterShape : std::uint32_t {
    none = 0,          ///< absent
    channel = 1,       ///< [head_dim], the same for all heads
    head_channel = 2,  ///< [heads, head_dim], which [heads * head_dim] equals; requires the number
                       ///< of heads
    tensor = 3,        ///< one number: a scale
    head = 4,          ///< [heads]: a scale for each head; requires the number of heads
};

/// A norm over the whole row, whatever part of it is rotated. Everything is f32; a normalised
/// channel of an RMS norm is within (k/2 + 7) 2^-24 of exact, relative, with k = ceil(log2
/// head_dim)
/// + (token: ceil(log2 heads)). An infinity becomes NaN, and the rest of its row 0, or NaN with a
/// layer norm; a NaN makes its whole row NaN.
struct Norm {
    NormKind kind = NormKind::none;  ///< none: the other fields must have their defaults
    NormSpan span = NormSpan::head;
    NormPlace place = NormPlace::before;
    float eps = 0;  ///< added to the mean square, inside the root: 1e-20 to 1
    ParameterShape weight = ParameterShape::none;
    std::uint32_t weight_offset = 0;  ///< 0: the weight is w; 1: it is 1 + w (Gemma). See
                                      ///< fill_parameters
    ParameterShape bias = ParameterShape::none;  ///< layer only; added after the weight
    /// Rounds to the element type of the input after the division and again after the weight, as
    /// Hugging Face does for many models; else nothing is rounded before the store.
    bool round_between = false;
};

/// Where the scale of an output of e4m3fn, e5m2 or int8 comes from.
enum class StoreScale : std::uint32_t {
    none = 0,        ///< no scale: channels are quantised as they are
    given = 1,       ///< one scale of the tensor multiplies before the store: see
                     ///< TensorParameters::store_scale
    given_head = 2,  ///< one scale of each head multiplies; requires the number of heads
    /// A scale made for each row divides it: the larger of Finish::scale_floor and the row's
    /// largest magnitude over the largest finite value of the type (448, 57344, 127), both f32.
    /// Stored as f32 to Call::scales_out; requires the number of heads.
    made = 3,
    /// As `made`, but the smallest power of two from 2^-126 on that is not below that number: of
    /// UE8M0 scales, as DeepSeek's indexer stores them, bits 23 to 30 are the byte. An infinity in
    /// the row makes an infinite scale.
    made_power_of_two = 4,
};

/// Whether a scale is made for each row.
constexpr bool is_made(StoreScale scale) noexcept {
    return scale >= StoreScale::made;
}

/// Where the made scales of K or V go if scatter_k is set; otherwise to [batch, tokens, heads].
enum class ScaleLayout : std::uint32_t {
    slots_heads = 0,  ///< [slots, heads] (NHD)
    pages_heads = 1,  ///< [pages, heads, page_size] (HND)
};

/// What happens to a tensor besides its rotation, in this order: bias, norm before, clip, rotation
/// (never of V), norm after, scale, Hadamard transform, store. Channels that are not rotated take
/// every other step. Norms, Hadamard transforms and quantised outputs exchange channels in shared
/// memory; create() returns not_supported for rows that do not fit 16 KiB of it.
struct Finish {
    ParameterShape bias = ParameterShape::none;  ///< added to the input
    Norm norm = {};
    float clip = 0;   ///< clamps to -clip to clip; finite; 0: does not
    float scale = 1;  ///< multiplies; finite, not 0
    /// Q only: Call::q_scale multiplies too. Its double product with `scale`, rounded to
    /// float, is one factor.
    bool scale_call = false;
    bool scale_tokens = false;  ///< also multiplies by a factor for each token: Call::scale_tokens
    /// Multiplies blocks of this many channels by the orthonormal Hadamard matrix in Sylvester's
    /// order: a power of two, 2 to 512, that divides head_dim; 0: none. See hadamard_of_llama_cpp
    /// (frequencies.hpp).
    std::uint32_t hadamard = 0;
    StoreScale store_scale = StoreScale::none;  ///< of an output of e4m3fn, e5m2 or int8
    /// Made scales: the smallest one; finite, not negative; made_power_of_two: at most 2^127.
    float scale_floor = 0;
    ScaleLayout scale_layout = ScaleLayout::slots_heads;  ///< made scales, of K and V
};

/// Place of a weight, bias or scale in a parameter buffer.
struct ParameterItem {
    ParameterShape shape = ParameterShape::none;  ///< none: absent
    std::uint32_t offset = 0;  ///< floats from the start of the buffer; a multiple of 4
    std::uint32_t count = 0;   ///< floats
    std::uint32_t added = 0;   ///< fill_parameters adds it: Norm::weight_offset
};

/// Parameters of one tensor.
struct TensorParameters {
    ParameterItem bias;         ///< Finish::bias
    ParameterItem weight;       ///< Norm::weight
    ParameterItem norm_bias;    ///< Norm::bias
    ParameterItem store_scale;  ///< StoreScale::given, given_head: finite and not 0
};

/// Layout of the parameter buffer of a layer: f32 weights, biases and scales of Q, K and V. The
/// caller creates the buffer; fill_parameters (frequencies.hpp) writes its content.
struct ParameterPlan {
    TensorParameters tensor[tensor_count];
    std::size_t bytes = 0;  ///< size of a set, a multiple of 16; 0: the kernel reads no parameters
};

/// Q, K or V when a kernel is created. head_dim 0: the kernel does not handle this tensor, and the
/// other fields must have their defaults.
struct TensorInfo {
    Element in = Element::f32;   ///< f32, f16 or bf16
    Element out = Element::f32;  ///< any type; with blocks, head_dim must be a multiple of 32
    std::uint32_t head_dim = 0;  ///< channels per head: 2 to 65534; with a norm, at most 4096
    /// First rotated channel; rotary_offset + rotary_dim <= head_dim. Of V it must be 0.
    std::uint32_t rotary_offset = 0;
    /// Heads in every call that has the tensor; 0: any number. On a GPU, lanes are distributed
    /// accordingly.
    std::uint32_t heads = 0;
    /// Norm, bias, clip, scale, Hadamard transform and scales of a quantised output.
    Finish ops = {};
};

/// Whether two tensors have the same types and channels.
constexpr bool same_format(const TensorInfo& a, const TensorInfo& b) noexcept {
    return a.in == b.in && a.out == b.out && a.head_dim == b.head_dim &&
           a.rotary_offset == b.rotary_offset;
}

/// Properties that are fixed when a kernel is created (kernel.hpp); everything else is per call. A
/// field that is given and has no effect on this kernel is an error: the type of an absent tensor,
/// sections without axis_ids.
/// kernel_info() (frequencies.hpp) derives it from a rotation.
struct KernelInfo {
    Pairing pairing = Pairing::half_split;
    std::uint32_t rotary_dim = 0;  ///< rotated channels in all windows: even, 2 to head_dim
    /// By Q, K, V. V is copied together with K and stored as `out`, never rotated.
    TensorInfo tensor[tensor_count] = {{}, {}, {}};  // not {}: g++ 12 could not return {status, {}}
    /// AnglePlan::source of the plan that each call names. by_default is an error here: the choice
    /// depends on max_position, which plan_angles knows.
    AngleSource angles = AngleSource::factored_texture;
    PositionSource positions = PositionSource::implicit;
    Mapping mapping = Mapping::by_device;
    /// Pairing of the output; a different one requires out-of-place calls; empty: same as
    /// `pairing`.
    std::optional<Pairing> pairing_out = {};
    bool scatter_k = false;  ///< rows of K and V go to the slots of Call::paged_cache
    /// Windows of a row, ascending and without overlap; their rotary_dims add up to rotary_dim: 2-D
    /// vision RoPE. Pairs of the angle table are numbered window after window. All zero: one
    /// window.
    Window windows[max_windows] = {};
    Sections sections = {};  ///< required for PositionSource::axis_ids, else absent
    bool phase = false;      ///< AnglePlan::phase of the plan that each call names
    /// AnglePlan::head_groups of the plan: 1 to 65535, and above 1 only with computed angles. Heads
    /// of Q and of K are divided into that number of groups of consecutive heads, each with
    /// frequencies of its own; V has none.
    std::uint32_t head_groups = 1;
    Element table = Element::f32;  ///< cos_sin_cache: element type of cos and sin
    bool channel_angles = false;   ///< cos_sin_cache: AnglePlan::channel_angles; one window
    Conversion conversion = Conversion::by_device;
    /// Tokens from Call::first_set_tokens on take another set of all weights, biases and given
    /// scales, of the same shapes: text and image tokens of a block with two streams.
    bool two_parameter_sets = false;
};

}  // namespace vkrope
