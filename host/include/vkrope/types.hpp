// SPDX-License-Identifier: MIT
// The words that all tiers share: status, element types, pairings, angle sources and the shape of
// their tables.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace vkrope {

/// What went wrong. `ok` is 0; every other value is an error.
enum class Code : std::int32_t {
    ok = 0,
    invalid_argument,  ///< a field breaks its rule; nothing was created, recorded or changed
    not_supported,     ///< well formed, but not offered by this version or this device
    limit_exceeded,  ///< beyond a limit of the device or of the format; both numbers are in `what`
    invalid_data,    ///< a model file that cannot be read, or that contradicts itself
    no_device,       ///< no Vulkan loader, or no device that fits
    out_of_host_memory,    ///< of the application
    out_of_device_memory,  ///< of the device, or of memory that it can see
    device_lost,   ///< every later call on that device fails the same way; destroying is safe
    timeout,       ///< a bounded wait ran out; the work may still be running
    vulkan_error,  ///< any other VkResult, in `vk_result`
};

/// The outcome of a call. Fixed size, so that failing allocates nothing.
struct [[nodiscard]] Status {
    Code code = Code::ok;
    VkResult vk_result = VK_SUCCESS;  ///< the result behind the error, where Vulkan gave one
    char what[240] = {};              ///< one sentence: field, value, rule. Empty on success.

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

/// Which two channels of a head row form pair j, in a window of R channels that starts at channel
/// O.
enum class Pairing : std::uint32_t {
    half_split = 0,   ///< (O + j, O + j + R/2): GPT-NeoX, Hugging Face Llama
    interleaved = 1,  ///< (O + 2j, O + 2j + 1): RoFormer, GPT-J
};

/// How one element of a tensor is stored, little-endian.
enum class Element : std::uint32_t {
    f32 = 0,   ///< IEEE 754 binary32
    f16 = 1,   ///< IEEE 754 binary16
    bf16 = 2,  ///< the upper half of a binary32
};

/// Bytes of one element.
constexpr std::uint32_t element_bytes(Element element) noexcept {
    return element == Element::f32 ? 4 : 2;
}

/// Where the shader takes cos and sin from. The bits of the output depend on the source alone, on
/// every device. With u = 2^-24 and a = attention factor, f32 output is within B u a (|x0| + |x1|)
/// + 2^-148 of the exact value (2^-123 more where the device flushes subnormals), for factors of
/// 2^-64 to 2^64; f16 and bf16 are the nearest to such a value.
enum class AngleSource : std::uint32_t {
    by_default = 0,  ///< factored_texture for a max_position up to 2^22, computed beyond:
                     ///< plan_angles says which
    factored_texture =
        1,  ///< B = 6: an RGBA32F texture with rows by the two 11-bit digits of |position| < 2^22
    computed = 2,        ///< B = 4.5: no table but 8 bytes a pair; every int32 position
    direct_texture = 3,  ///< B = 3, 2.5 where a = 1: one row a position in an RGBA32F texture, two
                         ///< (cos, sin) pairs a texel
    direct_buffer =
        4,  ///< the same B: one row a position in a storage buffer of float (cos, sin) pairs
    cos_sin_cache = 5,  ///< cos and sin from two storage buffers of the caller, of any values
                        ///< (ONNX): see plan_cos_sin_cache
};

/// What the angle of a pair is.
enum class AnglePrecision : std::uint32_t {
    exact = 0,  ///< position times the double inv_freq, in real arithmetic
    /// float(position) * float(inv_freq) rounded to float, its cos and sin rounded to float, and
    /// those times float(attention_factor) rounded to float: what Hugging Face transformers makes
    /// of its float32 inv_freq. The angle is off by up to 2^-23 of itself (2^-24 where inv_freq are
    /// floats, and 2^-24 more from position 2^24 on), which is 7.8e-3 rad for the fastest pair at
    /// position 131071.
    float32 = 1,
};

/// Where the position of a token comes from.
enum class PositionSource : std::uint32_t {
    implicit = 0,  ///< first position + index of the token in its sequence
    ids = 1,       ///< one int32 or int64 a token, in a buffer
    axis_ids = 2,  ///< one a token and axis (M-RoPE, vision, video)
};

/// Which axis turns a pair, where tokens have a position on each of several axes (M-RoPE, vision,
/// video). Pair j of all windows, with m = j mod the sum of `pairs`:
enum class SectionOrder : std::uint32_t {
    sequential = 0,   ///< the section that m falls into: Qwen2-VL; vision, where each axis has
                      ///< frequencies of its own
    interleaved = 1,  ///< axis m mod 3 where m < 3 * pairs[m mod 3], else leftover_axis: Qwen3-VL
};
inline constexpr std::uint32_t max_axes = 8;
/// The sections of a kernel or a model.
struct Sections {
    SectionOrder order = SectionOrder::sequential;
    std::uint32_t axes =
        0;  ///< 0: one position a token; else 2 to max_axes, of interleaved sections 3 or 4
    std::uint32_t pairs[max_axes] = {};  ///< of each section; the sum is above 0
    std::uint32_t leftover_axis = 0;     ///< of interleaved sections
};
/// Whether both turn every pair by the same axis.
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
    inverse = 1,  ///< s -> -s: the gradient, and the un-rotation where the attention factor is 1
};

/// What happens to the attention factor, which angle tables contain. Where it is not 1, omit and
/// divide_out multiply what they read by a float, which adds up to 2 u to the error bound of the
/// source (u = 2^-24); a table that is filled with the factor that is wanted adds nothing.
enum class Gain : std::uint32_t {
    apply = 0,       ///< multiply by it: forward and gradient
    omit = 1,        ///< leave it out, for shifting keys that carry it already
    divide_out = 2,  ///< divide by it, for a true un-rotation together with Direction::inverse
};

/// What an angle table needs: the caller makes the image or the buffer, fill_angles
/// (frequencies.hpp) its content.
struct AnglePlan {
    AngleSource source = AngleSource::factored_texture;  ///< never by_default
    VkFormat format = VK_FORMAT_UNDEFINED;  ///< textures: VK_FORMAT_R32G32B32A32_SFLOAT; linear
                                            ///< memory order is row major
    VkExtent2D extent = {0, 0};             ///< textures: texels
    VkFlags usage = 0;        ///< VkImageUsageFlags for a texture, VkBufferUsageFlags for a buffer,
                              ///< without transfer bits
    std::size_t bytes = 0;    ///< size of the content
    std::uint32_t pairs = 0;  ///< rotary_dim / 2
    std::uint32_t rows = 0;   ///< positions with |position| < rows are covered
    /// Textures: row r starts at texel (row_texels * (r >> fold_log2), r & ((1 << fold_log2) - 1)).
    /// Direct: row r is position r. Factored: rows 0 to ceil(rows / 2048) - 1 are positions in
    /// steps of 2048, with a factor of 1; those after them are the positions below 2048, with the
    /// attention factor.
    std::uint32_t fold_log2 = 0;
    std::uint32_t row_texels = 0;  ///< textures: texels of one row, two pairs each
    double attention_factor = 1;   ///< that the table contains; finite and above 0
    /// The sections of the rotation: record() refuses a kernel that was created for other ones. A
    /// cos_sin_cache has none.
    Sections sections = {};
    // cos_sin_cache
    Element element = Element::f32;  ///< of cos and sin
    std::uint32_t row_stride =
        0;  ///< elements from one row to the next, of which the first `pairs` count
};

/// A table in lines: texel lines of a texture, positions of a buffer; the numbers of computed
/// angles are one line.
struct AngleLines {
    std::uint32_t count = 0;
    std::size_t bytes = 0;  ///< of one line
};
inline AngleLines angle_lines(const AnglePlan& plan) noexcept {
    if (plan.source == AngleSource::computed) return {1, plan.bytes};
    if (plan.source == AngleSource::direct_buffer)
        return {plan.rows, std::size_t{plan.pairs} * 8};               // cos and sin, a float each
    return {plan.extent.height, std::size_t{plan.extent.width} * 16};  // texels of four floats
}

/// How Q, K or V is stored. A head_dim of 0 means that the kernel never sees this tensor.
struct HeadFormat {
    Element in = Element::f32, out = Element::f32;
    std::uint32_t head_dim = 0;  ///< channels: 2 to 65534
    std::uint32_t rotary_offset =
        0;  ///< first rotated channel; rotary_offset + rotary_dim <= head_dim
};
constexpr bool operator==(const HeadFormat& a, const HeadFormat& b) noexcept {
    return a.in == b.in && a.out == b.out && a.head_dim == b.head_dim &&
           a.rotary_offset == b.rotary_offset;
}

/// Channels of a head row that are rotated among themselves.
struct Window {
    std::uint32_t offset = 0;      ///< first channel, counted from HeadFormat::rotary_offset
    std::uint32_t rotary_dim = 0;  ///< channels: even
};
inline constexpr std::uint32_t max_windows = 4;

/// How the work is laid out over invocations. It never changes a bit of the result.
enum class Mapping : std::uint32_t {
    by_device = 0,  ///< cpu on VK_PHYSICAL_DEVICE_TYPE_CPU, gpu elsewhere
    gpu,            ///< many small invocations, neighbours on neighbouring channels
    cpu,            ///< few large ones: all heads of a token each
};

/// How f16 is converted to f32 and back. It never changes a bit of the result, but for the sign and
/// payload of a NaN.
enum class Conversion : std::uint32_t {
    by_device = 0,  ///< integer on VK_PHYSICAL_DEVICE_TYPE_CPU and where native is not to be had
    /// by the device, as SPIR-V defines it under RoundingModeRTE 16; needs
    /// DeviceFeature::float_controls and shader_float16, and a device that reports
    /// shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16. Subnormal halves are
    /// left to integers where it does not report shaderDenormPreserveFloat16.
    native,
    integer,  ///< by integer operations
};

/// What is fixed when a kernel is created (kernel.hpp); everything else is per call. kernel_info()
/// of frequencies.hpp makes it from a model's rotation.
struct KernelInfo {
    Pairing pairing = Pairing::half_split;
    std::uint32_t rotary_dim = 0;  ///< channels: even, 2 to head_dim; of all windows together
    HeadFormat q = {}, k = {};
    /// V, whose rows are moved with K's, and stored as `out`: never rotated. Its rotary_offset is
    /// 0.
    HeadFormat v = {};
    AngleSource angles =
        AngleSource::factored_texture;  ///< AnglePlan::source; by_default is factored_texture
    PositionSource positions = PositionSource::implicit;
    Mapping mapping = Mapping::by_device;
    /// How rotated pairs are written; another than `pairing` is for calls out of place.
    std::optional<Pairing> pairing_out = {};
    bool scatter_k = false;  ///< k_out's rows, and v_out's, go where Call::paged_cache says
    /// Several windows in a row, ascending and apart, whose rotary_dims add up to rotary_dim: 2-D
    /// vision RoPE. The pairs of the angle table are numbered window after window. All zero: one
    /// window.
    Window windows[max_windows] = {};
    Sections sections = {};        ///< with PositionSource::axis_ids
    Element table = Element::f32;  ///< cos_sin_cache: what cos and sin are stored as
    Conversion conversion = Conversion::by_device;
    /// Heads of Q, of K and of V in every call that has them; 0: any number. On a GPU, lanes are
    /// shared out by them.
    std::uint32_t q_heads = 0, k_heads = 0, v_heads = 0;
};

}  // namespace vkrope
