/* SPDX-License-Identifier: MIT */
/**
 * @file vkrope.h
 * @brief Rotary position embedding on Vulkan, for C11 and every language that can call C.
 *
 * Declares every struct and enumeration of the library once, for C++ too, and is their
 * documentation; with version.h it is all that a generator of bindings has to read. So it is longer
 * than other files. Rules:
 *
 * - **Structs.** 0 is the default of every field: `vkrope_call call = {.tokens = 1};`. Where 0
 * would guess, such as a pairing, it is an error. Structs hold others by value; arrays of three are
 *   indexed by VKROPE_Q, VKROPE_K and VKROPE_V. A program must be compiled with the header of the
 *   library that it runs with: see #vkrope_version.
 * - **Errors.** A function that can fail returns a #vkrope_result and takes a `vkrope_error*` last,
 *   which may be null. On failure it writes null to the handle that it would have made; other
 *   results are unspecified. Every function that takes a struct or a required pointer returns
 *   #VKROPE_ERROR_INVALID_ARGUMENT if the pointer is null, and may return
 *   #VKROPE_ERROR_OUT_OF_HOST_MEMORY; the functions below document only other errors. No C++
 *   exception leaves the library.
 * - **Threads.** There is no global state. Unless stated otherwise, an object is immutable once
 *   made and may be used by any number of threads; no thread may use it while or after it is
 *   destroyed. A pointer argument is read during the call only, unless stated otherwise.
 * - **Destroying** null does nothing.
 */
#ifndef VKROPE_H
#define VKROPE_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

#include "vkrope/version.h"

/** @def VKROPE_API
 * Declaration of functions. With VKROPE_STATIC, which the static targets set, they become part of
 * the program, which does not export them. */
#if defined(VKROPE_STATIC) && !defined(VKROPE_C_EXPORTS)
#define VKROPE_API
#elif defined(_WIN32) && defined(VKROPE_C_EXPORTS)
#define VKROPE_API __declspec(dllexport)
#elif defined(_WIN32)
#define VKROPE_API __declspec(dllimport)
#elif defined(__GNUC__)
#define VKROPE_API __attribute__((visibility("default")))
#else
#define VKROPE_API
#endif

/** @def VKROPE_NODISCARD
 * Marks functions whose result reports errors: compilers warn if a caller ignores it. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define VKROPE_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define VKROPE_NODISCARD __attribute__((warn_unused_result))
#else
#define VKROPE_NODISCARD
#endif

/** @def VKROPE_UINT32
 * Type of an enumeration. It makes every number a value of the enumeration, so that a wrong one is
 * an error and not undefined. C before C23 has an int, which is as wide. */
/** @def VKROPE_INT32
 * As VKROPE_UINT32, with numbers below 0. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define VKROPE_UINT32 : uint32_t
#define VKROPE_INT32 : int32_t
#else
#define VKROPE_UINT32
#define VKROPE_INT32
#endif

/** @def VKROPE_ZERO
 * The default of a field, which C++ gives it; in C, write `= {0}` behind a variable. */
#ifdef __cplusplus
#define VKROPE_ZERO = {}
extern "C" {
#else
#define VKROPE_ZERO
#endif

/** The version of the loaded library, as #VKROPE_MAKE_VERSION makes it. Before 1.0 a program
 * needs the minor version that it was compiled with. Thread-safe. */
VKROPE_API uint32_t vkrope_version(void);

/* ---- status ---- */

/** Result of a call: 0, or an error code. */
typedef enum vkrope_result VKROPE_INT32 {
    VKROPE_SUCCESS = 0,
    VKROPE_ERROR_INVALID_ARGUMENT =
        -1, /**< a field has an invalid value; nothing was created, recorded or changed */
    VKROPE_ERROR_NOT_SUPPORTED = -2, /**< valid, but not supported by this version or this device */
    VKROPE_ERROR_LIMIT_EXCEEDED =
        -3, /**< exceeds a limit of the device or the format; `what` gives both numbers */
    VKROPE_ERROR_INVALID_DATA = -4, /**< the model file cannot be read or contradicts itself */
    VKROPE_ERROR_NO_DEVICE = -5,    /**< no Vulkan loader, or no suitable device */
    VKROPE_ERROR_OUT_OF_HOST_MEMORY =
        -6, /**< a host allocation of the library, Vulkan or a callback failed */
    VKROPE_ERROR_OUT_OF_DEVICE_MEMORY = -7, /**< Vulkan could not allocate device memory */
    VKROPE_ERROR_DEVICE_LOST =
        -8, /**< every later call on this device fails the same way; destroying is safe */
    VKROPE_ERROR_TIMEOUT = -9, /**< a wait reached its time limit; the work may still be running */
    VKROPE_ERROR_VULKAN = -10, /**< any other VkResult; see `vk_result` */
    VKROPE_ERROR_INTERNAL = -11, /**< a bug in this library; please report it */
} vkrope_result;

/** Details of an error; success leaves {VKROPE_SUCCESS, VK_SUCCESS, ""}. */
typedef struct vkrope_error {
    vkrope_result code VKROPE_ZERO; /**< the value that the function returns */
    VkResult vk_result VKROPE_ZERO; /**< VkResult that caused the error, if any; else VK_SUCCESS */
    char what[240];                 /**< one sentence, null-terminated: field, value, rule */
} vkrope_error;

/** Short English text for a code; "unknown result" for any other number. Static; never null.
 * Thread-safe. */
VKROPE_API const char* vkrope_status_string(vkrope_result result);

/* ---- types that all tiers share ---- */

/** Largest head_dim of a tensor, and largest rotary_dim. */
#define VKROPE_MAX_HEAD_DIM 65534
/** Largest max_position of a table; positions are int32. Computed angles also cover -2^31. */
#define VKROPE_MAX_POSITIONS (UINT64_C(1) << 31)
/** Largest max_position of a factored table: a position has two 11-bit digits. */
#define VKROPE_MAX_FACTORED_POSITIONS (UINT64_C(1) << 22)
/** Largest number of calls of an arena. */
#define VKROPE_MAX_CALLS 65536

/** Index of a tensor in arrays of three: vkrope_kernel_info::tensor, vkrope_call::in and others. */
typedef enum vkrope_tensor_index VKROPE_UINT32 {
    VKROPE_Q = 0,       /**< queries */
    VKROPE_K = 1,       /**< keys */
    VKROPE_V = 2,       /**< values */
    VKROPE_TENSORS = 3, /**< number of tensors */
} vkrope_tensor_index;

/** Which two channels of a head row form pair j, in a window of R channels that starts at channel
 * O. */
typedef enum vkrope_pairing VKROPE_UINT32 {
    VKROPE_PAIRING_NONE = 0, /**< not given: an error where a pairing is needed */
    VKROPE_HALF_SPLIT = 1,   /**< (O + j, O + j + R/2): GPT-NeoX, Hugging Face Llama */
    VKROPE_INTERLEAVED = 2,  /**< (O + 2j, O + 2j + 1): RoFormer, GPT-J */
} vkrope_pairing;

/** Storage format of a tensor element, little-endian. The quantised types, from
 * VKROPE_E4M3FN on, are for vkrope_tensor_info::out only; their bytes equal the named
 * definition on every device. */
typedef enum vkrope_element VKROPE_UINT32 {
    VKROPE_F32 = 0,  /**< IEEE 754 binary32 */
    VKROPE_F16 = 1,  /**< IEEE 754 binary16 */
    VKROPE_BF16 = 2, /**< bfloat16: the upper half of a binary32 */
    VKROPE_E4M3FN =
        3, /**< 8-bit float (OFP8, Open Compute Project) with 4 exponent bits, rounded to nearest
              even; clamped to a magnitude of 448, infinities too; a NaN is 0x7f */
    VKROPE_E5M2 = 4, /**< 8-bit float (OFP8) with 5 exponent bits, as VKROPE_E4M3FN;
                                clamped to a magnitude of 57344 */
    VKROPE_INT8 = 5, /**< two's complement, ties away from zero, -127 to 127; a NaN is 0 */
    /** Blocks of 32 channels as ggml's functions quantize_row_*_ref make them. A NaN is left out
     * of a block's scale and has the code of 0, or for q4_1 and q5_1 of the smallest channel; if
     * the scale or its reciprocal overflows, all channels have this code. */
    VKROPE_Q8_0 = 6,
    VKROPE_Q4_0 = 7,  /**< as VKROPE_Q8_0 */
    VKROPE_Q4_1 = 8,  /**< as VKROPE_Q8_0 */
    VKROPE_Q5_0 = 9,  /**< as VKROPE_Q8_0 */
    VKROPE_Q5_1 = 10, /**< as VKROPE_Q8_0 */
} vkrope_element;

/** Where the shader gets cos and sin. For a given source the output bits are the same on every
 * device. f32 output is within B u a (|x0| + |x1|) + 2^-148 of the exact value (2^-123 more if
 * the device flushes subnormals), with u = 2^-24 and a = attention_factor, 2^-64 to 2^64; f16
 * and bf16 output is such a value rounded to nearest. */
typedef enum vkrope_angle_source VKROPE_UINT32 {
    VKROPE_ANGLES_AUTOMATIC =
        0, /**< vkrope_plan_angles chooses: direct_texture for VKROPE_ANGLE_PRECISION_FLOAT32, else
              factored_texture for a max_position up to 2^22, else computed */
    VKROPE_ANGLES_FACTORED_TEXTURE =
        1, /**< B = 6: RGBA32F texture with rows for the two 11-bit digits of |position| < 2^22 */
    VKROPE_ANGLES_COMPUTED = 2, /**< B = 4.5: no table, 8 bytes per pair; every int32 position */
    VKROPE_ANGLES_DIRECT_TEXTURE = 3, /**< B = 3 (2.5 if a = 1): RGBA32F texture, one row per
                                         position, two (cos, sin) pairs per texel */
    VKROPE_ANGLES_DIRECT_BUFFER = 4,  /**< B as direct_texture: storage buffer of float (cos, sin)
                                         pairs, one row per position */
    VKROPE_ANGLES_COS_SIN_CACHE = 5,  /**< cos and sin from two storage buffers of the caller, with
                                         any values (ONNX); see vkrope_plan_cos_sin_cache */
} vkrope_angle_source;

/** How the angle of a pair is computed. */
typedef enum vkrope_angle_precision VKROPE_UINT32 {
    VKROPE_ANGLE_PRECISION_EXACT = 0, /**< position times the double inv_freq, not rounded */
    /** float(position) * float(inv_freq) rounded to float; its cos and sin rounded to float,
     * multiplied by float(attention_factor) and rounded to float. This is what Hugging Face
     * transformers computes from its float32 inv_freq. The relative error of the angle is up to
     * 2^-23 (2^-24 if inv_freq are floats; 2^-24 more from position 2^24 on): 7.8e-3 rad for
     * the fastest pair at position 131071. */
    VKROPE_ANGLE_PRECISION_FLOAT32 = 1,
} vkrope_angle_precision;

/** Where the position of a token comes from. */
typedef enum vkrope_position_source VKROPE_UINT32 {
    VKROPE_POSITIONS_IMPLICIT = 0, /**< first position + index of the token in its sequence */
    VKROPE_POSITIONS_IDS = 1,      /**< one int32 or int64 per token, in a buffer */
    VKROPE_POSITIONS_AXIS_IDS = 2, /**< one per token and axis (M-RoPE, vision, video) */
} vkrope_position_source;

/** Maximum number of axes that a token can have positions on. */
#define VKROPE_MAX_AXES 8

/** Which axis rotates a pair if tokens have a position on each of several axes (M-RoPE, vision,
 * video). For pair j, counted over all windows, let m = j mod the sum of `pairs`: */
typedef enum vkrope_section_order VKROPE_UINT32 {
    VKROPE_SECTIONS_SEQUENTIAL = 0, /**< the section that contains m: Qwen2-VL; vision, where each
                                       axis has its own frequencies */
    VKROPE_SECTIONS_INTERLEAVED =
        1, /**< axis m mod 3 if m < 3 * pairs[m mod 3], else leftover_axis: Qwen3-VL */
    /** No pair has an axis of its own: the angle of each pair is the sum over all axes of position
     * times frequency. Every axis has frequencies for every pair, and `pairs` are 0.
     * VKROPE_ANGLES_COMPUTED only: Mochi, RoPE-ViT with learned frequencies. */
    VKROPE_SECTIONS_SUM = 2,
} vkrope_section_order;

/** Which axis rotates which pairs. */
typedef struct vkrope_sections {
    vkrope_section_order order VKROPE_ZERO;      /**< order of the axes */
    uint32_t axes VKROPE_ZERO;                   /**< 2 to VKROPE_MAX_AXES, interleaved: 3 or 4 */
    uint32_t pairs[VKROPE_MAX_AXES] VKROPE_ZERO; /**< pairs of each section; the sum is above 0,
                                        except in VKROPE_SECTIONS_SUM */
    uint32_t leftover_axis VKROPE_ZERO;          /**< interleaved only */
} vkrope_sections;

/** Direction of rotation. */
typedef enum vkrope_direction VKROPE_UINT32 {
    VKROPE_FORWARD = 0, /**< y0 = x0 c - x1 s, y1 = x0 s + x1 c */
    VKROPE_INVERSE =
        1, /**< s -> -s: the gradient; undoes the rotation if the attention factor is 1 */
} vkrope_direction;

/** How the attention factor, which angle tables contain, is applied. If it is not 1, `omit` and
 * `divide_out` multiply cos and sin by a float, which adds up to 2 u to the error bound of the
 * source (u = 2^-24). A table filled with the wanted factor avoids this error. */
typedef enum vkrope_gain VKROPE_UINT32 {
    VKROPE_GAIN_APPLY = 0, /**< multiply by it: forward and gradient */
    VKROPE_GAIN_OMIT = 1,  /**< leave it out: for shifting the positions of keys that contain it */
    VKROPE_GAIN_DIVIDE_OUT =
        2, /**< divide by it: undoes a rotation, together with VKROPE_INVERSE */
} vkrope_gain;

/** How work is distributed over invocations. Does not change the result bits. */
typedef enum vkrope_mapping VKROPE_UINT32 {
    VKROPE_MAPPING_AUTOMATIC = 0, /**< cpu for VK_PHYSICAL_DEVICE_TYPE_CPU, gpu for other devices */
    VKROPE_MAPPING_GPU = 1, /**< many small invocations; neighbours process neighbouring channels */
    VKROPE_MAPPING_CPU = 2, /**< few large invocations: each processes all heads of a token */
} vkrope_mapping;

/** Order of a tensor's axes in memory, slowest first: batch, sequence, heads, head_dim. thd: packed
 * tokens, heads, head_dim; batch must be 1. */
typedef enum vkrope_layout VKROPE_UINT32 {
    VKROPE_LAYOUT_BSHD = 0,
    VKROPE_LAYOUT_BHSD = 1,
    VKROPE_LAYOUT_SBHD = 2,
    VKROPE_LAYOUT_THD = 3,
} vkrope_layout;

/* ---- tier "frequencies": RoPE parameters to angle tables; no device, no files. Thread-safe.
 * ---- */

/**
 * inv_freq[j] = base^(-2j / rotary_dim), radians per position, for j in [0, rotary_dim / 2).
 *
 * @param base        finite and above 0
 * @param rotary_dim  channels: even, at least 2
 * @param inv_freq    receives rotary_dim / 2 numbers
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a base or rotary_dim outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_default_inv_freq(double base, uint32_t rotary_dim,
                                                                  double* inv_freq,
                                                                  vkrope_error* error);

/**
 * Position interpolation: divides every frequency by `factor`. arXiv:2306.15595; "linear" in
 * Hugging Face transformers' modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     frequencies
 * @param factor    finite and above 0
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a factor outside its range; nothing is changed then
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_linear(double* inv_freq, size_t count,
                                                              double factor, vkrope_error* error);

/** Parameters of Llama 3.1's scaling, named as in its configuration. */
typedef struct vkrope_llama3_scaling {
    double factor VKROPE_ZERO;           /**< finite and above 0 */
    double low_freq_factor VKROPE_ZERO;  /**< above 0, at most high_freq_factor; if both are equal,
                                the blend  becomes a step, as in Llama 4 */
    double high_freq_factor VKROPE_ZERO; /**< finite */
    double original_max_position_embeddings VKROPE_ZERO; /**< positions; finite and above 0 */
} vkrope_llama3_scaling;

/**
 * Divides frequencies with a wavelength above original / low_freq_factor by `factor`, keeps those
 * with a wavelength below original / high_freq_factor, and blends linearly in original / wavelength
 * in between. `apply_scaling` of Meta's llama-models; "llama3" in Hugging Face's
 * modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param scaling   parameters
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a number outside its range; nothing is changed then
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_llama3(double* inv_freq, size_t count,
                                                              const vkrope_llama3_scaling* scaling,
                                                              vkrope_error* error);

/**
 * inv_freq[j] = base^(-j / (rotary_dim / 2 - 1)), down to 1 / base; 1 if there is only one pair.
 *
 * @param base        finite and above 0
 * @param rotary_dim  channels: even, at least 2
 * @param inv_freq    receives rotary_dim / 2 numbers
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a base or rotary_dim outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_inclusive_inv_freq(double base,
                                                                    uint32_t rotary_dim,
                                                                    double* inv_freq,
                                                                    vkrope_error* error);

/** Parameters of vkrope_proportional_inv_freq. */
typedef struct vkrope_proportional_scaling {
    double factor VKROPE_ZERO;                /**< finite and above 0; 0: 1 */
    double partial_rotary_factor VKROPE_ZERO; /**< above 0, at most 1; 0: 1 */
} vkrope_proportional_scaling;

/**
 * Partial rotation with a window as wide as the head: the first floor(partial_rotary_factor *
 * head_dim / 2) frequencies are base^(-2j / head_dim) / factor, the others 0. "proportional" in
 * Hugging Face's modeling_rope_utils.py (Gemma 4).
 *
 * @param base      finite and above 0
 * @param head_dim  even, 2 to 65534; equals rotary_dim
 * @param scaling   parameters; null: all defaults
 * @param inv_freq  receives head_dim / 2 numbers; unchanged on error
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_proportional_inv_freq(
    double base, uint32_t head_dim, const vkrope_proportional_scaling* scaling, double* inv_freq,
    vkrope_error* error);

/* Each of the following scalings changes `count` frequencies at inv_freq (radians per position) in
 * place; on error it changes nothing and returns VKROPE_ERROR_INVALID_ARGUMENT with the parameter,
 * its value and its rule. `error` is optional. */

/**
 * Multiplies every frequency by `seq_scale`, as if every position were multiplied by it:
 * interpolation of TransformerEngine's RotaryPositionEmbedding (seq_scale = 1 /
 * seq_len_interpolation_factor).
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param seq_scale  finite and above 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_positions(double* inv_freq, size_t count,
                                                                 double seq_scale,
                                                                 vkrope_error* error);

/**
 * Divides each frequency by its own divisor: freq_factors of ggml's ggml_rope_ext, the lists of
 * LongRoPE.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param divisors  `divisor_count` numbers, finite and above 0
 * @param divisor_count  must be `count`
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_divisors(double* inv_freq, size_t count,
                                                                const double* divisors,
                                                                size_t divisor_count,
                                                                vkrope_error* error);

/**
 * NTK-aware scaling: multiplies the base by alpha^(d / (d - 2)), d = rotary_dim. This divides the
 * slowest frequency by `alpha` and keeps the fastest. u/bloc97 (2023), described in
 * arXiv:2309.00071, section 3.1; alpha of HunYuan's modeling_hunyuan.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param alpha  finite and above 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_ntk(double* inv_freq, size_t count,
                                                           double alpha, vkrope_error* error);

/**
 * Stops the pairs that do not complete a turn within `length` positions: their frequency becomes 0.
 * The zero frequencies of FoPE (arXiv:2412.17739), get_inv_freq of its reference code. FoPE's
 * Fourier series, a weighted sum of cosines for each channel, is not a rotation.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param length    positions that the model was trained with: finite and above 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_stop_slow_pairs(double* inv_freq, size_t count,
                                                                 double length,
                                                                 vkrope_error* error);

/** Parameters of dynamic NTK scaling, named as in model configurations. */
typedef struct vkrope_dynamic_ntk_scaling {
    double factor VKROPE_ZERO; /**< finite and above 0 */
    double max_position_embeddings
        VKROPE_ZERO; /**< length that the model was trained with; finite and above 0 */
} vkrope_dynamic_ntk_scaling;

/**
 * vkrope_scale_ntk with an alpha that grows with the sequence: factor * L / max - (factor - 1), L =
 * max(seq_len, max), where max is max_position_embeddings. u/emozilla (2023), described in
 * arXiv:2309.00071, section 3.3; "dynamic" in Hugging Face's modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param scaling   parameters
 * @param seq_len  0: unknown; the frequencies stay unchanged
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_scale_dynamic_ntk(double* inv_freq, size_t count, const vkrope_dynamic_ntk_scaling* scaling,
                         uint64_t seq_len, vkrope_error* error);

/** Parameters of YaRN, named as in model configurations. */
typedef struct vkrope_yarn_scaling {
    double factor VKROPE_ZERO;                           /**< finite and above 0 */
    double original_max_position_embeddings VKROPE_ZERO; /**< finite and above 0 */
    double beta_fast VKROPE_ZERO; /**< pairs with at least this many turns in the original length
                         are kept; at least beta_slow; 0: 32 */
    double beta_slow VKROPE_ZERO; /**< pairs with at most this many turns are divided by `factor`;
                         finite and above 0; 0: 1 */
    VkBool32 no_truncate VKROPE_ZERO; /**< the opposite of `truncate`: does not widen the range
                             between the two to whole pairs */
    double attention_factor
        VKROPE_ZERO;           /**< 0: from mscale and mscale_all_dim, or 0.1 ln(factor) + 1 */
    double mscale VKROPE_ZERO; /**< 0: not given */
    double mscale_all_dim VKROPE_ZERO; /**< 0: not given */
} vkrope_yarn_scaling;

/**
 * YaRN: keeps fast pairs, divides slow pairs by `factor`, and blends linearly in the pair index in
 * between. arXiv:2309.00071, section 3.2; "yarn" in Hugging Face's modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param base              base of the frequencies; finite and above 1
 * @param scaling   parameters
 * @param attention_factor  receives the factor for cos and sin. Default: m(mscale) /
 * m(mscale_all_dim) if both are given, else m(1), with m(s) = 0.1 s ln(factor) + 1 (1 for factors
 * up to 1)
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_yarn(double* inv_freq, size_t count,
                                                            double base,
                                                            const vkrope_yarn_scaling* scaling,
                                                            double* attention_factor,
                                                            vkrope_error* error);

/** Parameters of DeepSeek's YaRN, named as in its configurations. */
typedef struct vkrope_deepseek_yarn_scaling {
    double factor VKROPE_ZERO;                           /**< finite and above 0 */
    double original_max_position_embeddings VKROPE_ZERO; /**< finite and above 0 */
    double beta_fast VKROPE_ZERO;                        /**< as in vkrope_yarn_scaling; 0: 32 */
    double beta_slow VKROPE_ZERO;                        /**< as in vkrope_yarn_scaling; 0: 1 */
    double mscale VKROPE_ZERO;         /**< finite, at least 0; DeepSeek's default is 1 */
    double mscale_all_dim VKROPE_ZERO; /**< finite, at least 0 */
} vkrope_deepseek_yarn_scaling;

/**
 * Frequencies as vkrope_scale_yarn with `truncate`; the magnitude, with m as above, is split
 * between the rotation and the softmax. DeepseekV2YarnRotaryEmbedding and DeepseekV2Attention in
 * DeepSeek's modeling_deepseek.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param base              base of the frequencies; finite and above 1
 * @param scaling   parameters
 * @param attention_factor  receives m(mscale) / m(mscale_all_dim)
 * @param softmax_scale     receives m(mscale_all_dim)^2, a factor for the caller's softmax scale
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_deepseek_yarn(
    double* inv_freq, size_t count, double base, const vkrope_deepseek_yarn_scaling* scaling,
    double* attention_factor, double* softmax_scale, vkrope_error* error);

/** Parameters of LongRoPE, named as in model configurations. */
typedef struct vkrope_longrope_scaling {
    const double* short_factor VKROPE_ZERO; /**< [count] divisors, finite and above 0 */
    const double* long_factor VKROPE_ZERO;  /**< [count] divisors, finite and above 0 */
    size_t count VKROPE_ZERO;               /**< must equal the number of frequencies */
    double original_max_position_embeddings VKROPE_ZERO; /**< longest sequence that uses
                                                short_factor; finite and above 1 */
    double factor VKROPE_ZERO; /**< max_position_embeddings / original_max_position_embeddings;
                      finite and above
                      0 */
    double attention_factor
        VKROPE_ZERO; /**< 0: sqrt(1 + ln(factor) / ln(original)), or 1 if factor <= 1 */
    double short_mscale
        VKROPE_ZERO; /**< attention factor with short_factor; 0: as attention_factor */
    double long_mscale
        VKROPE_ZERO; /**< attention factor with long_factor; 0: as attention_factor */
} vkrope_longrope_scaling;

/**
 * LongRoPE: divides each frequency by its own divisor, short_factor for sequences up to the
 * original length, long_factor beyond. arXiv:2402.13753; "longrope" in Hugging Face's
 * modeling_rope_utils.py; short_mscale and long_mscale as in its modeling_phimoe.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param scaling   parameters
 * @param seq_len           0: unknown; uses short_factor
 * @param attention_factor  receives the factor for cos and sin
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_scale_longrope(double* inv_freq, size_t count, const vkrope_longrope_scaling* scaling,
                      uint64_t seq_len, double* attention_factor, vkrope_error* error);

/** Arguments of ggml_rope_ext that affect the angles.
 *
 * A field that is not set (0; of ext_factor and the three after it also negative; "from the
 * model" in llama_context_params of llama.cpp's include/llama.h) takes its default. The defaults
 * are what llama.cpp uses if the model file gives no value (src/llama-hparams.h,
 * src/llama-context.cpp). Exception: if the scaling type is YaRN, llama.cpp replaces an unset
 * ext_factor by 1; here the caller must set it to 1. */
typedef struct vkrope_ggml_scaling {
    double freq_scale VKROPE_ZERO; /**< 1 / factor; finite and above 0; 0: not set */
    double ext_factor
        VKROPE_ZERO; /**< weight of YaRN: 0 (linear scaling) to 1; negative: not set */
    double attn_factor VKROPE_ZERO; /**< finite and above 0; negative: not set */
    double beta_fast VKROPE_ZERO;   /**< at least beta_slow; negative: not set */
    double beta_slow VKROPE_ZERO;   /**< finite and above 0; negative: not set */
    double n_ctx_orig
        VKROPE_ZERO; /**< original length; finite, not negative; 0 blends only pair 0 */
    uint32_t n_dims
        VKROPE_ZERO; /**< rotary_dim for the blended range; 0: twice the number of frequencies */
    const double* freq_factors VKROPE_ZERO; /**< [freq_factor_count] divisors, finite and above 0 */
    size_t freq_factor_count
        VKROPE_ZERO; /**< 0, or at least the number of frequencies; the rest is ignored */
} vkrope_ggml_scaling;

/**
 * ggml's form of linear scaling, YaRN and per-pair factors: rope_yarn in ggml's ggml-cpu/ops.cpp.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param base              freq_base, the base of the frequencies; finite and above 0, above 1 if
 *                          ext_factor is not 0
 * @param scaling   parameters
 * @param attention_factor  receives attn_factor, times 1 + 0.1 ln(1 / freq_scale) if ext_factor is
 *                          not 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_ggml(double* inv_freq, size_t count,
                                                            double base,
                                                            const vkrope_ggml_scaling* scaling,
                                                            double* attention_factor,
                                                            vkrope_error* error);

/** Formula of the factor that multiplies the query of a token after the rotation. p is its
 * position, counted from 0. */
typedef enum vkrope_query_scaling VKROPE_UINT32 {
    VKROPE_QUERY_SCALING_NONE = 0, /**< 1 */
    /** ln(p + 1) / ln(length) if p + 1 > length, else 1; length is the one that the model was
     * trained with. use_logn_attn of Qwen's modeling_qwen.py; logn_scaling of TensorRT-LLM. */
    VKROPE_QUERY_SCALING_LOGN = 1,
    /** 1 + beta ln(1 + floor((p + 1) / length)), in layers without RoPE. attn_scale and floor_scale
     * of Llama4TextAttention in Hugging Face's modeling_llama4.py. */
    VKROPE_QUERY_SCALING_LLAMA4 = 2,
    /** 1 + beta ln(1 + floor(p / length)). llama_4_scaling_beta and
     * original_max_position_embeddings of Ministral3Attention in Hugging Face's
     * modeling_ministral3.py. */
    VKROPE_QUERY_SCALING_MINISTRAL3 = 3,
} vkrope_query_scaling;

/** Scale of the queries by position. */
typedef struct vkrope_query_scale {
    vkrope_query_scaling kind VKROPE_ZERO; /**< formula */
    double length VKROPE_ZERO;             /**< finite and above 0; logn: above 1 */
    double beta VKROPE_ZERO;               /**< llama4, ministral3: finite and at least 0 */
} vkrope_query_scale;

/**
 * Computes the factor of each token, in double and rounded once: vkrope_call::q_scale_tokens.
 *
 * @param scale      formula
 * @param positions  [count], at least 0
 * @param count      number of tokens
 * @param scales     receives [count]; unchanged on error
 * @param error      optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_query_scales(const vkrope_query_scale* scale,
                                                              const int32_t* positions,
                                                              size_t count, float* scales,
                                                              vkrope_error* error);

/**
 * inv_freq in turns per position, modulo one turn, as a 64-bit fixed-point fraction (units of 2^-64
 * turn, truncated).
 *
 * @param inv_freq  radians per position; finite, |inv_freq| < 2^11
 */
VKROPE_API uint64_t vkrope_turn_fraction(double inv_freq);

/** RoPE parameters of a model or of one of its layer types; defined below. */
typedef struct vkrope_rope_params vkrope_rope_params;

/** Maximum number of windows of a row. */
#define VKROPE_MAX_WINDOWS 4

/** Range of channels of a head row; pairs are formed within it. */
typedef struct vkrope_window {
    uint32_t offset
        VKROPE_ZERO; /**< first channel, relative to vkrope_tensor_info::rotary_offset */
    uint32_t rotary_dim VKROPE_ZERO; /**< channels: even */
} vkrope_window;

/** Arguments of ggml_rope_ext and ggml_rope_multi that determine angles and pairs; ggml's ggml.h
 * and ggml_compute_forward_rope in ggml-cpu/ops.cpp. ggml_rope_ext_back is
 * VKROPE_INVERSE.
 *
 * attn_factor is multiplied by 1 + 0.1 ln(1 / freq_scale) if ext_factor is not 0: an attention
 * factor of a config.json already contains that, and would count twice. */
typedef struct vkrope_ggml_rope {
    uint32_t head_dim VKROPE_ZERO; /**< ne[0] of the tensor: 2 to 65534 */
    uint32_t n_dims VKROPE_ZERO; /**< Rotated channels: even, 2 to head_dim. In vision mode head_dim
                        / 2, although all channels rotate. */
    uint32_t mode
        VKROPE_ZERO; /**< GGML_ROPE_TYPE_...: 0 normal (interleaved pairs), 2 neox
            (half_split); with four ids per token and half_split: 8 mrope, 40 imrope
            (interleaved sections), 24 vision (frequencies start again in each section). */
    double n_ctx_orig
        VKROPE_ZERO; /**< original length; finite, not negative; 0 blends only pair 0 */
    double freq_base
        VKROPE_ZERO; /**< finite and above 0; above 1 if ext_factor is not 0; 0: 10000 */
    double freq_scale VKROPE_ZERO; /**< 1 / factor: multiplies the frequencies; 0: 1 */
    double ext_factor
        VKROPE_ZERO; /**< weight of YaRN: 0 (linear scaling) to 1; negative: not set */
    double attn_factor
        VKROPE_ZERO;              /**< of the rotation alone, see above; negative: not set; 0: 1 */
    double beta_fast VKROPE_ZERO; /**< at least beta_slow; negative: not set; 0: 32 */
    double beta_slow VKROPE_ZERO; /**< above 0; negative: not set; 0: 1 */
    const double* freq_factors
        VKROPE_ZERO;                      /**< [freq_factor_count] divisors: rope_freqs of a file */
    size_t freq_factor_count VKROPE_ZERO; /**< 0, or at least the number of pairs */
    uint32_t sections[4] VKROPE_ZERO; /**< Pairs of time, height, width and the fourth axis; mrope,
                             imrope and vision only, else 0. In vision mode those that are reached
                             must be above 0 and cover n_dims pairs. */
} vkrope_ggml_rope;

/**
 * A rotation from ggml's arguments. The ids of mrope and imrope are ggml's [4][tokens]; the
 * rotation has only axes that rotate a pair.
 *
 * @param rope      arguments; freq_factors must not be `inv_freq`
 * @param inv_freq  receives the frequencies, to which the rotation then refers; unspecified on
 *                  error
 * @param count     numbers in `inv_freq`: at least those of the rotation; head_dim / 2 always is
 * @param rotation  receives the rotation; unchanged on error
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for an argument outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rope_params_from_ggml(const vkrope_ggml_rope* rope,
                                                                       double* inv_freq,
                                                                       size_t count,
                                                                       vkrope_rope_params* rotation,
                                                                       vkrope_error* error);

/**
 * One axis of a grid. Element i has the id first + step * i; an id stands at the coordinate
 * origin + unit * id, which the model multiplies by its frequencies.
 */
typedef struct vkrope_grid_axis {
    uint32_t count VKROPE_ZERO; /**< elements: at least 1 */
    int64_t first VKROPE_ZERO;  /**< id of element 0 */
    int64_t step
        VKROPE_ZERO;         /**< ids from one element to the next; of magnitude up to 2^32; 0: 1 */
    double unit VKROPE_ZERO; /**< coordinate from one id to the next: finite and above 0; 0: 1 */
    double origin VKROPE_ZERO; /**< coordinate of id 0: finite */
} vkrope_grid_axis;

/**
 * Frames of a video of `fps` frames per second, counted in frames of base_fps: ids 0, 1, 2, ...,
 * base_fps / fps apart.
 *
 * @param frames    at least 1
 * @param base_fps  finite and above 0
 * @param fps       finite and above 0
 * @param axis      receives the axis; unchanged on error
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_frame_axis(uint32_t frames, double base_fps,
                                                            double fps, vkrope_grid_axis* axis,
                                                            vkrope_error* error);

/**
 * A grid of `patches` that is stretched to the `reference` patches that the model was trained with:
 * patch i is at (first + i) * reference / patches. EVA-02; ref_feat_shape of timm's
 * build_fourier_pos_embed.
 *
 * @param patches    at least 1
 * @param first      0, or 1 in the Perception Encoder
 * @param reference  finite and above 0
 * @param axis       receives the axis; unchanged on error
 * @param error      optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_resized_axis(uint32_t patches, int64_t first,
                                                              double reference,
                                                              vkrope_grid_axis* axis,
                                                              vkrope_error* error);

/**
 * The centres of `patches` equal parts of the interval from `low` to `high`: from -1 to 1 in
 * DINOv3, from 0 to the width in pixels in LTX-2. Ids are odd, or even around 0 for an odd number
 * of patches; with any `low` but 0 and -high there is an origin.
 *
 * @param patches  at least 1
 * @param low      finite, below high
 * @param high     finite
 * @param axis     receives the axis; unchanged on error
 * @param error    optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_interval_axis(uint32_t patches, double low,
                                                               double high, vkrope_grid_axis* axis,
                                                               vkrope_error* error);

/**
 * Folds the axes of a grid into a rotation: multiplies the frequencies of each axis by
 * its unit, and adds origin times frequency to the phases, less whole turns. `base` becomes 0
 * unless all units are 1.
 *
 * @param axes      [axis_count]
 * @param axis_count  axes of the rotation, or 1 without sections
 * @param inv_freq  receives the new frequencies, as many as the rotation's; may be the rotation's
 * @param phase     receives the new phases, [head_groups, rotary_dim / 2]; unused where the
 * rotation has none and no axis has an origin
 * @param rotation  its frequencies, phases and base change to the new ones; all unchanged on error
 * @param error     optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if a frequency reaches 2048 radians
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fold_grid(const vkrope_grid_axis* axes,
                                                           uint32_t axis_count, double* inv_freq,
                                                           double* phase,
                                                           vkrope_rope_params* rotation,
                                                           vkrope_error* error);

/**
 * Elements of a grid, the product of the counts; 0 if it exceeds 2^64 - 1. 0 for null.
 *
 * @param axes   [count]
 * @param count  number of axes
 */
VKROPE_API uint64_t vkrope_grid_tokens(const vkrope_grid_axis* axes, uint32_t count);

/**
 * Writes the ids of a grid for vkrope_positions::ids: [axes, tokens], tokens row by row, the last
 * axis fastest.
 *
 * @param axes    [axis_count]
 * @param axis_count  1 to 8
 * @param ids     receives [axis_count, tokens]; unchanged on error
 * @param tokens  must be vkrope_grid_tokens
 * @param error   optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id leaves int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_grid_ids(const vkrope_grid_axis* axes,
                                                          uint32_t axis_count, int32_t* ids,
                                                          size_t tokens, vkrope_error* error);

/**
 * Writes ids by time, as Qwen2.5-Omni and Qwen2.5-VL count the frames of a video (TM-RoPE): the
 * float32 product index * seconds * ids_per_second, rounded down. get_rope_index of Hugging Face's
 * modeling_qwen2_5_omni.py. Qwen3-Omni does not round: its ids are not whole.
 *
 * @param seconds         from one index to the next: finite, at least 0
 * @param ids_per_second  finite and above 0: position_id_per_seconds, 25 in Qwen2.5-Omni
 * @param ids             receives [count]; unchanged on error
 * @param count           number of indices
 * @param error           optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id leaves int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_timed_ids(float seconds, float ids_per_second,
                                                           int32_t* ids, size_t count,
                                                           vkrope_error* error);

/**
 * Writes the ids of a ragged batch: in each sequence from its offset on. vkrope_record_positions
 * does the same on the device.
 *
 * @param cu_seqlens  [sequences + 1] ascending from 0, the last is the number of tokens
 * @param sequences   number of sequences
 * @param offsets     optional, [sequences]: position of the first token of each sequence; null: 0
 * @param ids         receives [tokens]; unchanged on error
 * @param tokens      must be cu_seqlens[sequences]
 * @param error       optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id leaves int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_ragged_ids(const int64_t* cu_seqlens,
                                                            size_t sequences,
                                                            const int64_t* offsets, int32_t* ids,
                                                            size_t tokens, vkrope_error* error);

/** What attends in dual-chunk attention: the key, or a query against keys of its own chunk, of the
 * chunk before, of chunks further back, and the two that vLLM calls critical. */
typedef enum vkrope_dual_chunk_role VKROPE_UINT32 {
    VKROPE_DUAL_CHUNK_KEY = 0,         /**< key */
    VKROPE_DUAL_CHUNK_QUERY = 1,       /**< keys of the same chunk */
    VKROPE_DUAL_CHUNK_QUERY_SUCC = 2,  /**< keys of the chunk before */
    VKROPE_DUAL_CHUNK_QUERY_INTER = 3, /**< keys of other chunks */
    VKROPE_DUAL_CHUNK_QUERY_SUCC_CRITICAL =
        4, /**< as VKROPE_DUAL_CHUNK_QUERY_SUCC, beyond chunk_size too */
    VKROPE_DUAL_CHUNK_QUERY_INTER_CRITICAL =
        5, /**< as VKROPE_DUAL_CHUNK_QUERY_INTER, counted on from chunk_size */
} vkrope_dual_chunk_role;

/** Chunks of dual-chunk attention (arXiv:2402.17463); the names are those of
 * dual_chunk_attention_config in Qwen2.5-1M's config.json. */
typedef struct vkrope_dual_chunk {
    uint32_t chunk_size VKROPE_ZERO; /**< 1 to 2^30 */
    uint32_t local_size VKROPE_ZERO; /**< below chunk_size */
} vkrope_dual_chunk;

/**
 * Writes the ids with which dual-chunk attention rotates, n = chunk_size - local_size: p mod n for
 * the key and the query; min(p mod n + n, chunk_size) and min(2n - 1, chunk_size) for QUERY_SUCC
 * and QUERY_INTER; p mod n + n and p mod n + chunk_size for the critical ones.
 * DualChunkRotaryEmbedding of vLLM's rotary_embedding/dual_chunk_rope.py. Every role is a call of
 * its own; the frequencies are the model's.
 *
 * @param chunk      sizes
 * @param role       what attends
 * @param positions  [count], at least 0
 * @param ids        receives [count]; may be `positions`; unchanged on error
 * @param count      number of tokens
 * @param error      optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_dual_chunk_ids(const vkrope_dual_chunk* chunk,
                                                                vkrope_dual_chunk_role role,
                                                                const int32_t* positions,
                                                                int32_t* ids, size_t count,
                                                                vkrope_error* error);

/** XPos: scale beside the angle. zeta_j = (2j / rotary_dim + gamma) / (1 + gamma) to the power of
 * (position - centre) / scale_base multiplies the query, and its inverse the key, so that a score
 * decays with the distance. arXiv:2212.10554; XPOS of torchscale's xpos_relative_position.py. */
typedef struct vkrope_xpos_scaling {
    double scale_base VKROPE_ZERO; /**< finite and above 0; 0: 512 */
    double gamma VKROPE_ZERO;      /**< finite and above 0; 0: 0.4 */
    int64_t centre VKROPE_ZERO; /**< position without scale: scores do not depend on it, the range
                       of the factors does; torchscale takes the middle of the sequence */
} vkrope_xpos_scaling;

/**
 * Writes rows of a cos_sin_cache (vkrope_plan_cos_sin_cache) with XPos: [rows, rotary_dim / 2]
 * each, cos and sin of position * inv_freq, exact and rounded once after the product with the
 * attention factor and the scale. Queries and keys need a cache and a call each.
 *
 * @param rotation  one position a token, no phase, one head group
 * @param scaling   optional
 * @param keys      VK_TRUE: the inverse scale, for K
 * @param first     position of the first row, of magnitude up to 2^31
 * @param rows      at most 2^31
 * @param cos       receives [rows, rotary_dim / 2]; unchanged on error
 * @param sin       as cos
 * @param error     optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if a factor leaves the normal range of float
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_xpos_cos_sin(const vkrope_rope_params* rotation,
                                                              const vkrope_xpos_scaling* scaling,
                                                              VkBool32 keys, int64_t first,
                                                              size_t rows, float* cos, float* sin,
                                                              vkrope_error* error);

/** Layout of an angle table. The caller creates the image or buffer;
 * vkrope_fill_angles writes its content. */
typedef struct vkrope_angle_table_layout {
    vkrope_angle_source source VKROPE_ZERO; /**< never automatic */
    VkFormat format
        VKROPE_ZERO; /**< textures: VK_FORMAT_R32G32B32A32_SFLOAT; linear memory is row-major */
    VkExtent2D extent VKROPE_ZERO; /**< textures: size in texels */
    VkFlags usage VKROPE_ZERO;     /**< VkImageUsageFlags of a texture or VkBufferUsageFlags of a
                          buffer, without     transfer bits */
    size_t bytes VKROPE_ZERO;      /**< size of the content */
    uint32_t pairs VKROPE_ZERO;    /**< rotary_dim / 2 */
    uint32_t rows VKROPE_ZERO;     /**< covers positions with |position| < rows */
    uint32_t fold_log2
        VKROPE_ZERO; /**< Textures: row r starts at texel (row_texels * (r >> fold_log2), r & ((1 <<
            fold_log2) - 1)). Direct: row r is position r. Factored: rows 0 to ceil(rows /
            2048) - 1 are the multiples of 2048, with a factor of 1; the rows after them
            are the positions below 2048, with the attention factor. */
    uint32_t row_texels VKROPE_ZERO; /**< textures: texels per row; a texel holds two pairs */
    double attention_factor
        VKROPE_ZERO; /**< factor that the table contains; finite and above 0; 0: 1 */
    /** Sections of the rotation; vkrope_record rejects a kernel created for different ones. A
     * cos_sin_cache has none. */
    vkrope_sections sections VKROPE_ZERO;
    VkBool32 phase VKROPE_ZERO;         /**< each pair has a phase: vkrope_rope_params::phase */
    uint32_t head_groups VKROPE_ZERO;   /**< groups of heads with frequencies of their own; 0: 1 */
    vkrope_element element VKROPE_ZERO; /**< cos_sin_cache: element type of cos and sin */
    uint32_t row_stride VKROPE_ZERO; /**< cos_sin_cache: elements from one row to the next; only the
                            first `pairs` of a row are used, or 2 * pairs with channel_angles */
    /** cos_sin_cache: each channel has cos and sin of its own, in the order of the rotated
     * channels: y0 = x0 c[channel 0] - x1 s[channel 0], y1 = x1 c[channel 1] + x0 s[channel 1]. */
    VkBool32 channel_angles VKROPE_ZERO;
} vkrope_angle_table_layout;

/**
 * Plans a table that covers every position with |position| < max_position. Computed angles cover
 * every int32 position, whatever max_position is. To cover more positions later, plan and fill a
 * new table.
 *
 * With 64 pairs: VKROPE_ANGLES_FACTORED_TEXTURE has 1.03 MiB for 131 072 positions and 2 MiB for
 * 2^22, computed angles 544 bytes, direct tables 64 MiB for 131 072.
 *
 * @param rotation        rotation of the table
 * @param source          kind of table; automatic: see `source` of the layout
 * @param max_position    1 to 2^31; factored tables: to 2^22; computed angles: to 2^31 + 1
 * @param max_image_side  maxImageDimension2D of the device; ignored for buffers
 * @param layout            receives the result
 * @param error           optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for numbers outside their range, including those of the
 *         rotation; VKROPE_ERROR_LIMIT_EXCEEDED for a table that does not fit
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_angles(
    const vkrope_rope_params* rotation, vkrope_angle_source source, uint64_t max_position,
    uint32_t max_image_side, vkrope_angle_table_layout* layout, vkrope_error* error);

/**
 * What VKROPE_ANGLES_AUTOMATIC means, on every device. float32 precision requires a direct table.
 *
 * @param precision     vkrope_rope_params::precision
 * @param max_position  as vkrope_plan_angles
 */
VKROPE_API vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision,
                                                     uint64_t max_position);

/**
 * B of the error bound in vkrope_angle_source; host/guide/accuracy.md derives it. For
 * VKROPE_ANGLE_PRECISION_FLOAT32 the bound is relative to the float32 angle; add 1.5 if the factor
 * is not 1. For a gain other than VKROPE_GAIN_APPLY add 2 if the factor is not 1.
 *
 * @param source            not automatic or cos_sin_cache
 * @param attention_factor  of the rotation
 */
VKROPE_API double vkrope_error_bound(vkrope_angle_source source, double attention_factor);

/**
 * Plans for cos and sin buffers of the caller, [rows, row_stride] each, with any values, indexed by
 * position. Covers positions 0 to rows - 1. Full-width tables, whose second half repeats the first,
 * have a row_stride of rotary_dim.
 *
 * @param pairs       rotary_dim / 2
 * @param rows        1 to 2^31
 * @param row_stride  elements; at least `pairs`; 0: packed; 16-bit rows may start in the middle of
 *                    a word
 * @param element     element type of cos and sin
 * @param channel_angles  full-width tables whose halves may differ (V-JEPA 2, tables of Hugging
 *                    Face transformers as they are): a row has cos and sin of each rotated channel,
 *                    and row_stride is at least 2 * pairs. The gradient transposes the matrix of a
 *                    pair.
 * @param layout        receives the result; `bytes` is the size of cos and of sin
 *                    each, in whole words
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for numbers outside their range;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for a table that does not fit in a storage buffer
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_cos_sin_cache(
    uint32_t pairs, uint32_t rows, uint32_t row_stride, vkrope_element element,
    VkBool32 channel_angles, vkrope_angle_table_layout* layout, vkrope_error* error);

/**
 * Writes the table of `layout`: attention_factor * cos and sin of position * inv_freq, each rounded
 * once from double. For computed angles, writes the fractions of a turn.
 *
 * @param rotation  rotation of the table
 * @param layout      from vkrope_plan_angles for this rotation
 * @param memory    layout->bytes bytes, aligned to 4; may be mapped device memory: it is written
 *                  once, in order, and never read
 * @param bytes     size of `memory`, at least layout->bytes
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for memory that is too small or not aligned, or for another
 *         rotation's layout
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_fill_angles(const vkrope_rope_params* rotation, const vkrope_angle_table_layout* layout,
                   void* memory, size_t bytes, vkrope_error* error);

/** Division of a table into lines: texel lines of a texture, positions of a buffer. Computed
 * angles are one line. */
typedef struct vkrope_angle_lines {
    uint32_t count VKROPE_ZERO; /**< number of lines */
    size_t bytes VKROPE_ZERO;   /**< bytes per line */
} vkrope_angle_lines;

/**
 * Returns how the table of `layout` is divided into lines, for vkrope_fill_angle_lines.
 *
 * @param layout   from vkrope_plan_angles
 * @param lines  receives the result
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_lines(
    const vkrope_angle_table_layout* layout, vkrope_angle_lines* lines, vkrope_error* error);

/**
 * Writes `lines` lines of the table, starting at `first_line`, for staging memory smaller than the
 * table; otherwise as vkrope_fill_angles.
 *
 * @param rotation    rotation of the table
 * @param layout        from vkrope_plan_angles for this rotation
 * @param first_line  first line to write
 * @param lines       number of lines; first_line + lines must be within the table
 * @param memory      receives the lines without gaps; aligned to 4
 * @param bytes       size of `memory`, at least lines * vkrope_angle_lines::bytes
 * @param error       optional
 * @return as vkrope_fill_angles
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fill_angle_lines(
    const vkrope_rope_params* rotation, const vkrope_angle_table_layout* layout,
    uint32_t first_line, uint32_t lines, void* memory, size_t bytes, vkrope_error* error);

/* ---- tier "model": not in vkrope::c_static. Thread-safe. ---- */

/** What was read from the file of a model. Immutable. */
typedef struct vkrope_model vkrope_model;

/** The RoPE parameters that were read. They belong to the model; null for null. */
VKROPE_API const vkrope_rope_params* vkrope_model_get_params(const vkrope_model* model);

/** Destroys a model. Tables and kernels do not refer to it. */
VKROPE_API void vkrope_model_destroy(vkrope_model* model);

/** Selects one RoPE of a model that has several. */
typedef struct vkrope_model_query {
    const char* layer_type VKROPE_ZERO; /**< One of the model's layer types, such as
                               "full_attention" or "sliding_attention"; null: its only one, else
                               full attention with a warning. */
    uint64_t seq_len
        VKROPE_ZERO; /**< sequence length if the scaling needs it, at most 2^31; 0: unknown */
    VkBool32 by_layer VKROPE_ZERO; /**< the layer `layer`, not together with layer_type */
    uint32_t layer VKROPE_ZERO;    /**< with `by_layer`: counted from 0; else it must be 0 */
    const char* tower VKROPE_ZERO; /**< "text" or "vision"; null: "text" */
    /** Replaces the pairing of the model_type, for weights that were permuted; VKROPE_PAIRING_NONE:
     * as the model has it. */
    vkrope_pairing pairing VKROPE_ZERO;
} vkrope_model_query;

/**
 * Reads the RoPE of a Hugging Face config.json.
 *
 * Reads `rope_parameters` (transformers 5; also one per layer type) and `rope_theta` with
 * `rope_scaling` (transformers 4), with the type in `rope_type` or `type`. Types: default, linear,
 * dynamic, ntk (GTE's), yarn, longrope (su), llama3, proportional, and mrope and xdrope, which
 * have positions on several axes. For a multi-modal model, reads the language model (text_config
 * and similar) or the vision tower. If layers differ and the query selects none, reads the
 * full-attention layers, or, if those have no RoPE, the layers that rotate.
 *
 * Also reads the params.json of Mistral's original checkpoints, which has `dim` and no model_type;
 * one with a key that is not known is VKROPE_ERROR_NOT_SUPPORTED, since the rest of it is in code.
 *
 * A key that says a scaling, a choice of layers or norms of Q and K and is not read is a warning,
 * or VKROPE_ERROR_NOT_SUPPORTED if the angles would be others; so is one in an object that nobody
 * reads, unless the object describes another part of the model. A number that is listed for each
 * layer is that of the layers that are asked for. A value that contradicts another is accepted,
 * with a warning, if it is that of another kind of layer.
 *
 * Multi-head latent attention: head_dim is qk_rope_head_dim, the rotated channels. They start at
 * q_rotary_offset = qk_nope_head_dim in a query row and at k_rotary_offset = kv_lora_rank in a row
 * of the latent cache; both rows end with them. YaRN is DeepSeek's, which sets softmax_scale. If
 * neither the class nor `rope_interleave` says the pairing, the query must.
 *
 * The indexer of sparse attention (DeepSeek V3.2, GLM 5) is the layer type "indexer".
 *
 * A layer without RoPE has no_rope, no rotary_dim and no frequencies.
 *
 * vkrope_rope_params::ops says which norms of Q, K and V the model's class has, with the eps of the
 * file or else of the class; whether it clamps them; and how it scales queries by position. Whether
 * those norms are known is an answer of its own, vkrope_model_ops::norms_known: not for diffusion
 * transformers, unknown classes, classes whose versions differ, and files with a key that says
 * norms and that the class does not have. A warning says so.
 *
 * An unsupported scaling type, or a model whose RoPE this library does not know, is
 * VKROPE_ERROR_NOT_SUPPORTED and named. VKROPE_ERROR_INVALID_DATA names a field that is missing,
 * of the wrong kind, out of range or contradicted by another. vkrope_rope_params::warnings lists
 * what was assumed or ignored: at most 100 warnings, and one that counts the rest. A document with
 * more than 16 MiB, 524288 values, 64 levels of nesting or 64 layer types is
 * VKROPE_ERROR_INVALID_DATA; the worst accepted document takes a second or two and 300 MB. Lack of
 * memory is VKROPE_ERROR_OUT_OF_HOST_MEMORY. Exception: if memory runs out while the JSON document
 * is destroyed, the JSON library, whose destructor allocates, ends the program.
 *
 * @param json      the content of the file, UTF-8; need not be null-terminated
 * @param bytes     size of `json`
 * @param query     null: the model's only RoPE. If the model does not have what it selects:
 *                  VKROPE_ERROR_INVALID_ARGUMENT
 * @param model     receives the model; destroy it with vkrope_model_destroy
 * @param error     optional
 * @return VKROPE_ERROR_NOT_SUPPORTED for a rope type that this version does not support;
 *         VKROPE_ERROR_INVALID_DATA for a field that is missing, of the wrong kind or out of range.
 *         Both name it.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_model_from_hf_config(const char* json, size_t bytes, const vkrope_model_query* query,
                            vkrope_model** model, vkrope_error* error);

/**
 * Reads a part of a file: copies the bytes from `offset` on to `to`. Never called for a part beyond
 * the end of the file.
 *
 * @param user    the `user` argument of vkrope_model_from_gguf
 * @param offset  bytes from the beginning of the file
 * @param to      receives the bytes
 * @param bytes   number of bytes
 * @return number of bytes copied; any number other than `bytes` is a failure
 */
typedef size_t (*vkrope_read_at)(void* user, uint64_t offset, void* to, size_t bytes);

/**
 * Reads the RoPE of a GGUF file, version 2 or 3, as llama.cpp computes it. Reads the metadata, the
 * tensor infos, and the data of rope_freqs, rope_factors_long and rope_factors_short; no weights.
 *
 * general.architecture determines the pairing and the layers. The pairing is the one of the file's
 * Q and K weights: converters permute Llama's, so it is interleaved there and half_split in a
 * config.json. An unknown architecture or one without RoPE is VKROPE_ERROR_NOT_SUPPORTED and
 * named; an unknown one is read if the query has a pairing. Big-endian files and version 1 are
 * also VKROPE_ERROR_NOT_SUPPORTED.
 *
 * The first part of a split file has its metadata, and is read with a warning that tensors of the
 * other parts were not seen; without any tensor, and for another part, it is
 * VKROPE_ERROR_NOT_SUPPORTED.
 *
 * Scalings: none, linear, yarn, longrope, per-pair divisors (Llama 3, Gemma 4), alpha (HunYuan).
 * vkrope_rope_params::rope_type is "default", "linear", "yarn", "longrope" or "rope_freqs". M-RoPE
 * has ggml's axes: 3, or 4 if pairs lie beyond their sections. Latent attention, layers without
 * RoPE, warnings and errors are as in vkrope_model_from_hf_config; the only tower is "text".
 * rope.freq_base, rope.dimension_count and the widths of rows may be lists of one number a layer,
 * of which a 0 is a layer without RoPE; a single number beside a list must be that of some layer.
 *
 * vkrope_rope_params::ops says which norms of Q and K the layer has weights for, with the eps of
 * the file; what the architecture normalises without weights and clamps; and how it scales queries
 * by position. A norm that spans neither one head nor all heads is left out, with a warning. The
 * norms of a layer without tensors, of an unknown architecture, and of a file with a key that says
 * norms and no tensors of them are not known: norms_known.
 *
 * Sizes in the file are not trusted; any file takes at most a second and about 20 MiB. A file that
 * exceeds one of these limits is VKROPE_ERROR_INVALID_DATA, and the message names it: 256 MiB of
 * metadata and tensor infos; 16384 keys; 131072 tensors of 4 dimensions; 65535 bytes per name, 1
 * MiB for all keys; 4194304 strings and lists inside lists; lists nested 8 deep. Real files stay
 * far below. Lists of numbers and strings of any length are skipped in one step; those that are
 * used have at most 65536 numbers and 256 bytes.
 *
 * @param file_bytes  size of the whole file; at most 2^62
 * @param read        reads parts of the file; must not throw. Called by this function only
 * @param user        passed to `read`
 * @param query       null: the model's only RoPE. If the model does not have what it selects:
 *                    VKROPE_ERROR_INVALID_ARGUMENT
 * @param model       receives the model; destroy it with vkrope_model_destroy
 * @param error       optional
 * @return VKROPE_ERROR_NOT_SUPPORTED for an architecture that has no RoPE or that this version does
 *         not know, and for version 1, big-endian and split files; VKROPE_ERROR_INVALID_DATA for a
 *         file that is truncated or contradicts itself, and for a key that is missing, of the wrong
 *         type or out of range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_model_from_gguf(uint64_t file_bytes,
                                                                 vkrope_read_at read, void* user,
                                                                 const vkrope_model_query* query,
                                                                 vkrope_model** model,
                                                                 vkrope_error* error);

/**
 * As vkrope_model_from_gguf, for a regular file on disk. Reads the tensor infos of the other parts
 * of a split file, up to 1024, that lie beside it under the names of llama.cpp:
 * "-00002-of-00003.gguf".
 *
 * @param path      path of the file
 * @param query     as above
 * @param model     as above
 * @param error     optional
 * @return as above; VKROPE_ERROR_INVALID_DATA if the file cannot be opened
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_model_from_gguf_file(
    const char* path, const vkrope_model_query* query, vkrope_model** model, vkrope_error* error);

/* ---- tier "kernel": records into the application's command buffer, on its device ---- */

/** Functionality that the application enabled at vkCreateDevice. Support by the device alone is
 * not enough. */
typedef enum vkrope_device_features VKROPE_UINT32 {
    VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR =
        1, /**< VK_KHR_push_descriptor: vkrope_record needs no vkrope_arena */
    VKROPE_DEVICE_FEATURE_DEBUG_UTILS =
        2, /**< VK_EXT_debug_utils of the instance: objects get names, calls get labels */
    /** VK_KHR_shader_float_controls, or Vulkan 1.2: pipelines declare the arithmetic that the
     * error bounds assume. */
    VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS = 4,
    /** The feature shaderFloat16 of VK_KHR_shader_float16_int8 or Vulkan 1.2: with float
     * controls, the device converts f16. */
    VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 = 8,
} vkrope_device_features;

/** What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo. */
typedef struct vkrope_requirements {
    uint32_t api_version
        VKROPE_ZERO; /**< minimum VkApplicationInfo::apiVersion and device version */
    /** Device extensions that this device offers and the kernel can use. */
    const char* optional_extensions[4] VKROPE_ZERO;
    uint32_t optional_extension_count VKROPE_ZERO; /**< number of optional_extensions */
    uint32_t enabled
        VKROPE_ZERO; /**< vkrope_device_ref::enabled if all optional extensions are enabled */
    /** The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be
     * enabled; vkrope_device_ref::enabled may then include VKROPE_DEVICE_FEATURE_SHADER_FLOAT16. */
    VkBool32 offers_shader_float16 VKROPE_ZERO;
    /** Bits that vkrope_device_ref::enabled may include without these extensions if
     * VkApplicationInfo::apiVersion is at least 1.2: float controls are part of Vulkan 1.2 devices,
     * and shaderFloat16, once enabled, is a field of VkPhysicalDeviceVulkan12Features. */
    uint32_t enabled_in_core VKROPE_ZERO;
} vkrope_requirements;

/**
 * Queries what the kernel needs from a physical device. Thread-safe.
 *
 * @param instance                an instance
 * @param physical                a physical device of the instance
 * @param get_instance_proc_addr  all Vulkan functions are looked up with it
 * @param requirements            receives the result
 * @param error                   optional
 * @return VKROPE_ERROR_NOT_SUPPORTED names what the device lacks
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                        PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                        vkrope_requirements* requirements, vkrope_error* error);

/** A borrowed device. Its handles must outlive every kernel and arena created with them. */
typedef struct vkrope_device_ref {
    VkInstance instance
        VKROPE_ZERO; /**< created for vkrope_requirements::api_version or a later version */
    VkPhysicalDevice physical VKROPE_ZERO; /**< a physical device of the instance */
    VkDevice device VKROPE_ZERO;           /**< created from `physical` */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr
        VKROPE_ZERO;              /**< used to look up all Vulkan functions */
    uint32_t enabled VKROPE_ZERO; /**< bits of vkrope_device_features */
    VkPipelineCache pipeline_cache
        VKROPE_ZERO; /**< optional; used during vkrope_kernel_create only */
    const VkAllocationCallbacks* allocator
        VKROPE_ZERO; /**< optional; must outlive what is made with it */
} vkrope_device_ref;

/** How f16 is converted to and from f32. Does not change the result bits, except the sign and
 * payload of a NaN. */
typedef enum vkrope_conversion VKROPE_UINT32 {
    VKROPE_CONVERSION_AUTOMATIC =
        0, /**< integer for VK_PHYSICAL_DEVICE_TYPE_CPU and if native is not available */
    /** By the device, as SPIR-V defines it under RoundingModeRTE 16. Requires
     * VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS and VKROPE_DEVICE_FEATURE_SHADER_FLOAT16, and a
     * device that reports shaderRoundingModeRTEFloat16 and
     * shaderSignedZeroInfNanPreserveFloat16. Subnormal halves are converted by integer
     * operations unless it reports shaderDenormPreserveFloat16. */
    VKROPE_CONVERSION_NATIVE = 1,
    VKROPE_CONVERSION_INTEGER = 2, /**< by integer operations */
} vkrope_conversion;

/** Which norm a row takes. A row is the channels of one head, or of all heads of a token. */
typedef enum vkrope_norm_kind VKROPE_UINT32 {
    VKROPE_NORM_NONE = 0,
    VKROPE_NORM_RMS = 1,   /**< x / sqrt(mean of x^2 + eps) */
    VKROPE_NORM_LAYER = 2, /**< (x - m) / sqrt(mean of (x - m)^2 + eps), m the mean of x */
} vkrope_norm_kind;

/** What a norm takes as one row. */
typedef enum vkrope_norm_span VKROPE_UINT32 {
    VKROPE_NORM_SPAN_HEAD = 0, /**< the head_dim channels of one head (Qwen3, Gemma 3) */
    VKROPE_NORM_SPAN_TOKEN =
        1, /**< all heads of a token (OLMo 2, video models); requires the number of heads */
} vkrope_norm_span;

/** Where a norm stands. */
typedef enum vkrope_norm_place VKROPE_UINT32 {
    VKROPE_NORM_PLACE_BEFORE = 0, /**< before clip and rotation */
    VKROPE_NORM_PLACE_AFTER = 1,  /**< after the rotation (HunYuan, Llama 4) */
} vkrope_norm_place;

/** Shape of a weight, bias or scale in the parameter buffer. */
typedef enum vkrope_parameter_shape VKROPE_UINT32 {
    VKROPE_PARAMETER_NONE = 0,         /**< absent */
    VKROPE_PARAMETER_CHANNEL = 1,      /**< [head_dim], the same for all heads */
    VKROPE_PARAMETER_HEAD_CHANNEL = 2, /**< [heads, head_dim], which [heads * head_dim] equals;
                                          requires the number of heads */
    VKROPE_PARAMETER_TENSOR = 3,       /**< one number: a scale */
    VKROPE_PARAMETER_HEAD = 4, /**< [heads]: a scale for each head; requires the number of heads */
} vkrope_parameter_shape;

/** A norm over the whole row, whatever part of it is rotated. Everything is f32; a normalised
 * channel of an RMS norm is within (k/2 + 7) 2^-24 of exact, relative, with k = ceil(log2
 * head_dim) + (token: ceil(log2 heads)). An infinity becomes NaN, and the rest of its row 0, or
 * NaN with a layer norm; a NaN makes its whole row NaN. */
typedef struct vkrope_norm {
    vkrope_norm_kind kind VKROPE_ZERO;   /**< none: the other fields must have their defaults */
    vkrope_norm_span span VKROPE_ZERO;   /**< what is one row */
    vkrope_norm_place place VKROPE_ZERO; /**< before or after the rotation */
    float eps VKROPE_ZERO; /**< added to the mean square, inside the root: 1e-20 to 1 */
    vkrope_parameter_shape weight VKROPE_ZERO; /**< multiplies what the root has divided */
    uint32_t weight_offset VKROPE_ZERO;        /**< 0: the weight is w; 1: it is 1 + w (Gemma). See
                                      vkrope_fill_parameters */
    vkrope_parameter_shape bias VKROPE_ZERO;   /**< layer only; added after the weight */
    /** Rounds to the element type of the input after the division and again after the weight, as
     * Hugging Face does for many models; else nothing is rounded before the store. */
    VkBool32 round_between VKROPE_ZERO;
} vkrope_norm;

/** Where the scale of an output of e4m3fn, e5m2 or int8 comes from. */
typedef enum vkrope_store_scale VKROPE_UINT32 {
    VKROPE_STORE_SCALE_NONE = 0,  /**< no scale: channels are quantised as they are */
    VKROPE_STORE_SCALE_GIVEN = 1, /**< one scale of the tensor multiplies before the store: see
                                     vkrope_tensor_parameters::store_scale */
    VKROPE_STORE_SCALE_GIVEN_HEAD =
        2, /**< one scale of each head multiplies; requires the number of heads */
    /** A scale made for each row divides it: the larger of vkrope_ops::scale_floor and the row's
     * largest magnitude over the largest finite value of the type (448, 57344, 127), both f32.
     * Stored as f32 to vkrope_call::scales_out; requires the number of heads. */
    VKROPE_STORE_SCALE_MADE = 3,
    /** As VKROPE_STORE_SCALE_MADE, but the smallest power of two from 2^-126 on that is not below
     * that number: of UE8M0 scales, as DeepSeek's indexer stores them, bits 23 to 30 are the byte.
     * An infinity in the row makes an infinite scale. */
    VKROPE_STORE_SCALE_MADE_POWER_OF_TWO = 4,
} vkrope_store_scale;

/** Where the made scales of K or V go if scatter_kv is set; otherwise to [batch, tokens, heads]. */
typedef enum vkrope_scale_layout VKROPE_UINT32 {
    VKROPE_SCALE_LAYOUT_SLOTS_HEADS = 0, /**< [slots, heads] (NHD) */
    VKROPE_SCALE_LAYOUT_PAGES_HEADS = 1, /**< [pages, heads, page_size] (HND) */
} vkrope_scale_layout;

/** What happens to a tensor besides its rotation, in this order: bias, norm before, clip, rotation
 * (never of V), norm after, scale, Hadamard transform, store. Channels that are not rotated take
 * every other step. Norms, Hadamard transforms and quantised outputs exchange channels in shared
 * memory; vkrope_kernel_create returns VKROPE_ERROR_NOT_SUPPORTED for rows that do not fit 16 KiB
 * of it. */
typedef struct vkrope_ops {
    vkrope_parameter_shape bias VKROPE_ZERO; /**< added to the input */
    vkrope_norm norm VKROPE_ZERO;            /**< kind none: none */
    float clip VKROPE_ZERO;                  /**< clamps to -clip to clip; finite; 0: does not */
    float scale VKROPE_ZERO;                 /**< multiplies; finite, not 0; 0: 1 */
    /** Q only: vkrope_call::q_scale multiplies too. Its double product with `scale`, rounded to
     * float, is one factor. */
    VkBool32 scale_call VKROPE_ZERO;
    VkBool32 scale_tokens VKROPE_ZERO; /**< also multiplies by one factor for each token:
                              vkrope_call::scale_tokens */
    /** Multiplies blocks of this many channels by the orthonormal Hadamard matrix in Sylvester's
     * order: a power of two, 2 to 512, that divides head_dim; 0: none. See
     * vkrope_hadamard_of_llama_cpp. */
    uint32_t hadamard VKROPE_ZERO;
    vkrope_store_scale store_scale VKROPE_ZERO; /**< of an output of e4m3fn, e5m2 or int8 */
    float scale_floor VKROPE_ZERO; /**< made scales: the smallest one; finite, not negative; powers
                          of two: at most 2^127 */
    vkrope_scale_layout scale_layout VKROPE_ZERO; /**< made scales, of K and V */
} vkrope_ops;

/** Q, K or V when a kernel is created. head_dim 0: the kernel does not handle this tensor, and the
 * other fields must be 0. */
typedef struct vkrope_tensor_info {
    vkrope_element in VKROPE_ZERO;  /**< f32, f16 or bf16 */
    vkrope_element out VKROPE_ZERO; /**< any type; with blocks, head_dim must be a multiple of 32 */
    uint32_t head_dim VKROPE_ZERO;  /**< channels per head: 2 to 65534; with a norm, at most 4096 */
    uint32_t rotary_offset VKROPE_ZERO; /**< first rotated channel; rotary_offset + rotary_dim <=
                               head_dim. Of V it must be 0. */
    uint32_t heads VKROPE_ZERO; /**< heads in every call that has the tensor; 0: any number. On a
                       GPU, lanes are distributed accordingly. */
    vkrope_ops ops VKROPE_ZERO; /**< norm, bias, clip, scale, Hadamard transform and scales of a
                       quantised output */
} vkrope_tensor_info;

/** Properties that are fixed when a kernel is created; everything else is per call. A field that is
 * given and has no effect on this kernel is an error: the type of an absent tensor, sections
 * without VKROPE_POSITIONS_AXIS_IDS. vkrope_get_kernel_info derives it from a rotation. */
typedef struct vkrope_kernel_info {
    vkrope_pairing pairing
        VKROPE_ZERO;                 /**< pairing of the input; VKROPE_PAIRING_NONE is an error */
    uint32_t rotary_dim VKROPE_ZERO; /**< rotated channels in all windows: even, 2 to head_dim */
    /** By VKROPE_Q, VKROPE_K, VKROPE_V. V is copied together with K and stored as `out`, never
     * rotated. */
    vkrope_tensor_info tensor[VKROPE_TENSORS] VKROPE_ZERO;
    /** vkrope_angle_table_layout::source of the table that each call names. VKROPE_ANGLES_AUTOMATIC
     * is an error here: the choice depends on max_position, which vkrope_plan_angles knows. */
    vkrope_angle_source angles VKROPE_ZERO;
    vkrope_position_source positions VKROPE_ZERO; /**< where the position of a token comes from */
    vkrope_mapping mapping VKROPE_ZERO;           /**< how work is distributed over invocations */
    /** Pairing of the output; a different one requires out-of-place calls; VKROPE_PAIRING_NONE:
     * same as `pairing`. */
    vkrope_pairing pairing_out VKROPE_ZERO;
    VkBool32 scatter_kv
        VKROPE_ZERO; /**< rows of K and V go to the slots of vkrope_call::paged_cache */
    /** Windows of a row, ascending and without overlap; their rotary_dims add up to rotary_dim: 2-D
     * vision RoPE. Pairs of the angle table are numbered window after window. All zero: one window.
     */
    vkrope_window windows[VKROPE_MAX_WINDOWS] VKROPE_ZERO;
    vkrope_sections sections
        VKROPE_ZERO; /**< required for VKROPE_POSITIONS_AXIS_IDS, else absent */
    VkBool32 phase
        VKROPE_ZERO; /**< vkrope_angle_table_layout::phase of the layout that each call names */
    /** vkrope_angle_table_layout::head_groups of the layout: 1 to 65535, and above 1 only with
     * computed angles; 0: 1. Heads of Q and of K are divided into that number of groups of
     * consecutive heads, each with frequencies of its own; V has none. */
    uint32_t head_groups VKROPE_ZERO;
    vkrope_element table
        VKROPE_ZERO; /**< VKROPE_ANGLES_COS_SIN_CACHE: element type of cos and sin */
    VkBool32 channel_angles
        VKROPE_ZERO; /**< cos_sin_cache: vkrope_angle_table_layout::channel_angles; one window */
    vkrope_conversion conversion VKROPE_ZERO; /**< how f16 is converted */
    /** Tokens from vkrope_call::first_set_tokens on take another set of all weights, biases and
     * given scales, of the same shapes: text and image tokens of a block with two streams. */
    VkBool32 two_parameter_sets VKROPE_ZERO;
} vkrope_kernel_info;

/** Place of a weight, bias or scale in a parameter buffer. */
typedef struct vkrope_parameter_item {
    vkrope_parameter_shape shape VKROPE_ZERO; /**< none: absent */
    uint32_t offset VKROPE_ZERO; /**< floats from the start of the buffer; a multiple of 4 */
    uint32_t count VKROPE_ZERO;  /**< floats */
    uint32_t added VKROPE_ZERO;  /**< vkrope_fill_parameters adds it: vkrope_norm::weight_offset */
} vkrope_parameter_item;

/** Parameters of one tensor. */
typedef struct vkrope_tensor_parameters {
    vkrope_parameter_item bias VKROPE_ZERO;        /**< vkrope_ops::bias */
    vkrope_parameter_item weight VKROPE_ZERO;      /**< vkrope_norm::weight */
    vkrope_parameter_item norm_bias VKROPE_ZERO;   /**< vkrope_norm::bias */
    vkrope_parameter_item store_scale VKROPE_ZERO; /**< VKROPE_STORE_SCALE_GIVEN,
                                          VKROPE_STORE_SCALE_GIVEN_HEAD: finite and not 0 */
} vkrope_tensor_parameters;

/** Layout of the parameter buffer of a layer: f32 weights, biases and scales of Q, K and V. The
 * caller creates the buffer; vkrope_fill_parameters writes its content. */
typedef struct vkrope_parameter_layout {
    vkrope_tensor_parameters
        tensor[VKROPE_TENSORS] VKROPE_ZERO; /**< by VKROPE_Q, VKROPE_K, VKROPE_V */
    size_t bytes
        VKROPE_ZERO; /**< size of a set, a multiple of 16; 0: the kernel reads no parameters */
} vkrope_parameter_layout;

/**
 * Plans the parameter buffer of a kernel: the weights, biases and scales that its
 * vkrope_tensor_info::ops name, in the order of the tensors, each from a multiple of 16 bytes on.
 * Items that are absent have no shape. Thread-safe.
 *
 * @param info   of the kernel
 * @param layout   receives the result
 * @param error  optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a shape that breaks its rules;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for more floats than a storage buffer can have
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_parameters(const vkrope_kernel_info* info,
                                                                 vkrope_parameter_layout* layout,
                                                                 vkrope_error* error);

/** A weight, bias or scale as the model stores it: `count` elements, row by row. */
typedef struct vkrope_parameter_source {
    const void* data VKROPE_ZERO;       /**< null: absent */
    vkrope_element element VKROPE_ZERO; /**< element type of the source */
    size_t count VKROPE_ZERO;           /**< elements: vkrope_parameter_item::count */
} vkrope_parameter_source;

/** Sources of one tensor. */
typedef struct vkrope_tensor_parameter_sources {
    vkrope_parameter_source bias VKROPE_ZERO;        /**< vkrope_ops::bias */
    vkrope_parameter_source weight VKROPE_ZERO;      /**< vkrope_norm::weight */
    vkrope_parameter_source norm_bias VKROPE_ZERO;   /**< vkrope_norm::bias */
    vkrope_parameter_source store_scale VKROPE_ZERO; /**< vkrope_ops::store_scale */
} vkrope_tensor_parameter_sources;

/** Sources for vkrope_fill_parameters. */
typedef struct vkrope_parameter_sources {
    vkrope_tensor_parameter_sources
        tensor[VKROPE_TENSORS] VKROPE_ZERO; /**< by VKROPE_Q, VKROPE_K, VKROPE_V */
} vkrope_parameter_sources;

/**
 * Writes the parameter buffer of `layout`, or one of its two sets: the sources as f32, plus
 * vkrope_parameter_item::added, rounded once. Every item of the layout must have a source of its
 * size, and every other item none. A store_scale multiplies before the store and must be finite and
 * not 0: engines that divide by a scale, as vLLM by its k_scale, pass the reciprocal. Thread-safe.
 *
 * @param layout     from vkrope_plan_parameters
 * @param sources  weights, biases and scales
 * @param memory   layout->bytes bytes, aligned to 4; may be mapped device memory: it is written
 *                 once, in order, and never read
 * @param bytes    size of `memory`, at least layout->bytes
 * @param error    optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a source that is missing, of another size, or of an
 *         item that the layout does not have, and for memory that is too small or not aligned
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fill_parameters(
    const vkrope_parameter_layout* layout, const vkrope_parameter_sources* sources, void* memory,
    size_t bytes, vkrope_error* error);

/** Blocks of a Hadamard transform for vkrope_ops::hadamard. */
typedef struct vkrope_hadamard_blocks {
    uint32_t q_and_k; /**< channels; 0: none */
    uint32_t v;       /**< channels; 0: none */
} vkrope_hadamard_blocks;

/**
 * The blocks with which llama.cpp transforms Q, K and V before it stores a quantised cache, as of
 * its release b9867 (src/llama-kv-cache.cpp; ggml-org/llama.cpp#21038): for Q and K the largest
 * power of two that divides head_dim, for V 64; none if head_dim is not a multiple of 64. At most
 * 512 channels. Thread-safe.
 *
 * @param k_head_dim   head_dim of Q and K
 * @param k_quantised  whether the cache of K has a quantised type; Q and K are transformed for it
 * @param v_head_dim   head_dim of V
 * @param v_quantised  whether the cache of V has a quantised type
 */
VKROPE_API vkrope_hadamard_blocks vkrope_hadamard_of_llama_cpp(uint32_t k_head_dim,
                                                               VkBool32 k_quantised,
                                                               uint32_t v_head_dim,
                                                               VkBool32 v_quantised);

/**
 * Axis that rotates pair `pair` of the angle table; 0 without sections. Also 0 for sections that
 * break their rules.
 */
VKROPE_API uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair);

/**
 * Axes whose products of position and frequency are added in the angle of one pair. 1 without
 * sections, and for sections that break their rules.
 */
VKROPE_API uint32_t vkrope_summed_axes(const vkrope_sections* sections);

/**
 * Channels of a query or key row: head_dim; for latent attention, whose window starts beyond
 * head_dim, the channels up to the end of the window, as in a row of the latent cache. 0 for a null
 * rotation.
 *
 * @param rotation       a rotation
 * @param rotary_offset  its q_rotary_offset or k_rotary_offset
 */
VKROPE_API uint32_t vkrope_row_channels(const vkrope_rope_params* rotation, uint32_t rotary_offset);

/** Whether a type can only be stored. */
VKROPE_API VkBool32 vkrope_is_quantised(vkrope_element element);

/** Channels of a block: 32 for ggml's types; 1 for the others, whose elements stand alone. */
VKROPE_API uint32_t vkrope_block_channels(vkrope_element element);

/** Bytes of one element, or of one block. */
VKROPE_API uint32_t vkrope_element_bytes(vkrope_element element);

/**
 * Derives the vkrope_kernel_info for vkrope_kernel_create from a rotation: pairing, channels,
 * offsets, angle source and sections, and the model's other steps, vkrope_rope_params::ops, with
 * its head counts if it has any. V has the head_dim of K. Where the model has steps,
 * vkrope_call::parameters needs its weights, see vkrope_plan_parameters, and
 * vkrope_call::scale_tokens the scales of vkrope_query_scales. Thread-safe.
 *
 * Change what differs in your engine: `scatter_kv`, `heads` of a part of the heads, or `positions`
 * for ids in a buffer. If your engine makes the model's norms and scales itself, leave them out:
 * clear vkrope_tensor_info::ops. With sections, positions must stay
 * VKROPE_POSITIONS_AXIS_IDS; for text let all axes read one row, with VKROPE_BROADCAST for
 * axis_stride.
 *
 * @param rotation  must rotate: a layer without RoPE needs no kernel
 * @param layout      from vkrope_plan_angles for this rotation, or from vkrope_plan_cos_sin_cache
 * @param q, k, v   element types of the tensors, input and output; null: the kernel does not handle
 *                  the tensor
 * @param info      receives the result. Steps of an absent tensor are left out. Positions are
 *                  VKROPE_POSITIONS_AXIS_IDS if the rotation has sections, else implicit
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a layer without RoPE, and for another rotation's layout
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_kernel_info(const vkrope_rope_params* rotation, const vkrope_angle_table_layout* layout,
                       const vkrope_element* q, const vkrope_element* k, const vkrope_element* v,
                       vkrope_kernel_info* info, vkrope_error* error);

/** What a model does to Q, K and V around the rotation, as far as its file says: norms, clip, and
 * the scale of the queries by position. A parameter shape that is not none says that the model has
 * such a weight or bias. Biases of the projections are not included. */
typedef struct vkrope_model_ops {
    vkrope_ops tensor[VKROPE_TENSORS] VKROPE_ZERO; /**< for vkrope_tensor_info::ops, by VKROPE_Q,
                                                      VKROPE_K, VKROPE_V */
    /** Whether the norms are known: a norm of kind none then says that the model has none there.
     * VK_FALSE: nobody said which there are. */
    VkBool32 norms_known VKROPE_ZERO;
    vkrope_query_scale query_scale
        VKROPE_ZERO;              /**< if it has a kind, tensor[VKROPE_Q].scale_tokens is true */
    uint32_t q_heads VKROPE_ZERO; /**< query heads of a layer; 0: unknown */
    uint32_t k_heads VKROPE_ZERO; /**< key heads of a layer, and value heads; 0: unknown */
} vkrope_model_ops;

/** RoPE parameters of a model or of one of its layer types: a view, whose arrays and strings belong
 * to whoever made them. Functions that take it read them during the call only. */
struct vkrope_rope_params {
    vkrope_pairing pairing VKROPE_ZERO; /**< which channels form pairs */
    uint32_t head_dim
        VKROPE_ZERO; /**< channels per head; for latent attention (MLA): only the rotated ones */
    uint32_t rotary_dim VKROPE_ZERO;      /**< rotated channels: even, 2 to head_dim */
    uint32_t q_rotary_offset VKROPE_ZERO; /**< first rotated channel of a query row */
    uint32_t k_rotary_offset VKROPE_ZERO; /**< first rotated channel of a key row */
    VkBool32 no_rope VKROPE_ZERO;         /**< a layer without RoPE: needs no frequencies */
    /** Radians per position, from any formula: [rotary_dim / 2]; with VKROPE_SECTIONS_SUM [axes,
     * rotary_dim / 2]; with head_groups above 1 [head_groups, ...] of these. */
    const double* inv_freq VKROPE_ZERO;
    size_t inv_freq_count VKROPE_ZERO; /**< numbers in inv_freq */
    double attention_factor
        VKROPE_ZERO; /**< multiplies cos and sin once, in the angle table; 2^-64 to 2^64; 0:
            1 */
    double softmax_scale
        VKROPE_ZERO; /**< factor for the caller's softmax scale; never applied here; 0: 1 */
    uint64_t max_position VKROPE_ZERO; /**< positions that the model was made for; 0: unknown */
    const char* rope_type
        VKROPE_ZERO; /**< the name that the model gives its scaling; null: "default" */
    const char* const* warnings
        VKROPE_ZERO; /**< [warning_count] what was ignored or assumed while reading the model */
    size_t warning_count VKROPE_ZERO;     /**< strings in warnings */
    vkrope_sections sections VKROPE_ZERO; /**< axes 0: one position per token */
    /** Longest sequence that these frequencies are valid for, if the scaling depends on the length.
     * A longer sequence needs new frequencies and a new table; existing ones stay valid. 0: no
     * limit; valid from the length that they were computed for. */
    uint64_t longest_seq_len VKROPE_ZERO;
    vkrope_angle_precision precision
        VKROPE_ZERO;         /**< how angles are computed; float32 requires a direct table */
    double base VKROPE_ZERO; /**< the unscaled frequencies are base^(-2j / rotary_dim); 0: unknown,
                    or another formula */
    /** [head_groups, rotary_dim / 2] radians that are added to the angle of each pair: angle =
     * position * inv_freq + phase. Finite, of magnitude below 2048; null: none. Every source adds
     * them as multiples of 2^-64 turn, so that error bounds do not change. */
    const double* phase VKROPE_ZERO;
    size_t phase_count VKROPE_ZERO; /**< numbers in phase */
    /** Groups of consecutive heads with frequencies of their own (LTX-2, Mochi, RoPE-ViT): 1 to
     * 65535. 1: all heads share them. Above 1 requires VKROPE_ANGLES_COMPUTED, and heads of Q and K
     * that are multiples of it; 0: 1. */
    uint32_t head_groups VKROPE_ZERO;
    /** Windows of a row, as vkrope_kernel_info::windows has them: pairs are formed within each
     * (Gemma 4's vision tower). Their offsets count from the rotary offset, their rotary_dims add
     * up to rotary_dim, and inv_freq and phase number the pairs window after window. All zero: one
     * window. */
    vkrope_window windows[VKROPE_MAX_WINDOWS] VKROPE_ZERO;
    /** What else the layer does to Q, K and V; never applied by rotations. */
    vkrope_model_ops ops VKROPE_ZERO;
};

/** The pipelines of one kind of rotation. Immutable: any number of threads may record with it,
 * each into its own command buffer. */
typedef struct vkrope_kernel vkrope_kernel;

/**
 * Compiles every pipeline that vkrope_record may choose, at most nine. Thread-safe unless the
 * pipeline cache is externally synchronised.
 *
 * @param device  the borrowed device
 * @param info    properties of the kernel
 * @param kernel  receives the kernel; destroy it with vkrope_kernel_destroy
 * @param error   optional
 * @return VKROPE_ERROR_NOT_SUPPORTED, VKROPE_ERROR_LIMIT_EXCEEDED, or an error of Vulkan. Nothing
 *         is left behind.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_kernel_create(const vkrope_device_ref* device,
                                                               const vkrope_kernel_info* info,
                                                               vkrope_kernel** kernel,
                                                               vkrope_error* error);

/** Destroys a kernel. No command buffer that uses it may be pending. */
VKROPE_API void vkrope_kernel_destroy(vkrope_kernel* kernel);

/** Descriptor sets for devices without push descriptors. Belongs to one thread at a time: create
 * one per thread and frame. */
typedef struct vkrope_arena vkrope_arena;

/**
 * Creates descriptor sets for `calls` calls of vkrope_record on a device without push descriptors;
 * create one arena per thread and frame. A call takes one set per dispatch, see
 * vkrope_get_dispatches. The arena works with every kernel and position kernel of the same device.
 * If the device binds fewer than 18 storage buffers per stage
 * (maxPerStageDescriptorStorageBuffers), kernels with made scales, below 15 those with any
 * vkrope_ops, and below 11 all kernels, are certain to work only with an arena of an equal
 * vkrope_kernel_info; vkrope_record rejects an arena that does not fit.
 *
 * @param kernel  determines the device; need not outlive the arena
 * @param calls   1 to 65536
 * @param arena   receives the arena; destroy it with vkrope_arena_destroy
 * @param error   optional
 * @return errors of Vulkan
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_arena_create(const vkrope_kernel* kernel,
                                                              uint32_t calls, vkrope_arena** arena,
                                                              vkrope_error* error);

/** Makes all sets available again. Command buffers recorded with the arena must not be pending
 * and must not be submitted afterwards. Externally synchronised. Null is ignored. */
VKROPE_API void vkrope_arena_reset(vkrope_arena* arena);

/** Destroys the arena, with the rules of vkrope_arena_reset. */
VKROPE_API void vkrope_arena_destroy(vkrope_arena* arena);

/** A stride whose steps all read the same row: vkrope_tensor::head_stride of an input,
 * vkrope_positions::batch_stride and axis_stride. A stride of 0 is never that: it means packed. */
#define VKROPE_BROADCAST INT64_MIN

/** Location of a tensor's rows. Strides are in elements, whatever their size; of ggml's blocks they
 * are multiples of 32. 0: packed as [batch, tokens, heads, head_dim]. */
typedef struct vkrope_tensor {
    VkDescriptorBufferInfo where VKROPE_ZERO; /**< buffer, offset and range of the tensor in bytes;
                                                 VK_WHOLE_SIZE is not allowed */
    uint32_t heads VKROPE_ZERO;               /**< 0: the tensor is absent from the call */
    int64_t token_stride VKROPE_ZERO;         /**< from one token to the next */
    int64_t head_stride VKROPE_ZERO;          /**< from one head to the next */
    int64_t batch_stride VKROPE_ZERO;         /**< from one sequence to the next */
    uint32_t heads_per_group
        VKROPE_ZERO; /**< Second head axis, as in QKV of [tokens, groups, q_per_group + 2,
            head_dim]: `heads` is the total, in groups of heads_per_group heads
            that are group_stride elements apart. 0: one group. */
    int64_t group_stride
        VKROPE_ZERO; /**< from one group to the next; 0: packed, heads_per_group * head_stride */
    VkDeviceSize buffer_size
        VKROPE_ZERO; /**< size of the whole buffer in bytes; 0: unknown. Needed only if 16-bit rows
            end in the middle of a word that `range` does not cover: the shader accesses
            whole words, so the buffer must contain this one. */
} vkrope_tensor;

/**
 * Paged cache: destination rows of out[VKROPE_K] and out[VKROPE_V], one per token. The number of
 * pages follows from where.range (of the smaller cache if a call has both):
 *
 *     [slots, heads, head_dim]              page_size 1
 *     [pages, page_size, heads, head_dim]   packed, the default
 *     [pages, heads, page_size, head_dim]   row_stride head_dim,
 *                                           head_stride page_size * head_dim,
 *                                           page_stride heads * page_size * head_dim
 *     [pages, heads, page_size, 2 * head_dim]   K and V side by side: out[VKROPE_K] and
 * out[VKROPE_V] in one buffer, out[VKROPE_V].where head_dim elements further; the strides of the
 * line above times 2
 *
 * Rows without a token keep their bits. If two tokens have the same slot, its content is undefined.
 */
typedef struct vkrope_paged_cache {
    VkDescriptorBufferInfo slot_mapping
        VKROPE_ZERO; /**< int32 or int64 [batch, tokens]: page * page_size + row. -1 skips the
            token. Any other value outside the cache skips it and increments
            vkrope_call::out_of_range. Offset and range must be multiples of 4 */
    VkBool32 int64 VKROPE_ZERO; /**< slot_mapping is int64 */
    /** Rows per page, 1 to 2^31; 0: 1. With 1, a page_stride (if 0: row_stride) other than packed
     * is an error, because page_size may have been forgotten. For single rows with gaps, set
     * row_stride and page_stride to the same value. */
    uint32_t page_size VKROPE_ZERO;
    int64_t page_stride
        VKROPE_ZERO; /**< elements, for both caches; 0: packed. If rows of K and V differ in
            length and neither cache is packed, V needs its own call. token_stride
            and batch_stride of out[VKROPE_K] and out[VKROPE_V] must be 0. */
    int64_t row_stride VKROPE_ZERO;   /**< elements, for both caches; 0: packed */
    int64_t batch_stride VKROPE_ZERO; /**< slots from one sequence to the next; 0: packed */
} vkrope_paged_cache;

/** Positions of the tokens, see vkrope_position_source. If the angle source does not cover a
 * position on any axis, or an int64 id does not fit in int32, the rows of the token stay
 * unrotated and vkrope_call::out_of_range is incremented. */
typedef struct vkrope_positions {
    int32_t first
        VKROPE_ZERO; /**< implicit: position of token 0; the last position must fit in int32 */
    VkDescriptorBufferInfo ids VKROPE_ZERO; /**< ids: int32 or int64 [axes, batch, tokens]; offset
                                   and range must be multiples of 4 */
    VkBool32 int64 VKROPE_ZERO;             /**< ids are int64 */
    /** Ids from one sequence to the next; 0: packed, tokens * token_stride; VKROPE_BROADCAST: all
     * share one row. Implicit: positions from token 0 of one sequence to token 0 of the next;
     * VKROPE_BROADCAST: every sequence starts at `first`; 0 is an error if batch is above 1. */
    int64_t batch_stride VKROPE_ZERO;
    int64_t axis_stride VKROPE_ZERO;  /**< ids from one axis to the next; 0: packed, after the rows
                             of all  sequences; VKROPE_BROADCAST: all axes share one row */
    int64_t token_stride VKROPE_ZERO; /**< ids from one token to the next; 0: packed, 1 */
} vkrope_positions;

/** Angle table of a call. */
typedef struct vkrope_angles {
    const vkrope_angle_table_layout* layout VKROPE_ZERO; /**< read during the call only; content
                                      from vkrope_fill_angles, except a cos_sin_cache */
    VkImageView view VKROPE_ZERO; /**< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL when
                         the commands execute */
    VkDescriptorBufferInfo buffer
        VKROPE_ZERO; /**< direct_buffer: (cos, sin) pairs; cos_sin_cache: cos. Offset
            must be a multiple of 4. computed: a uniform buffer; offset
            must be a multiple of minUniformBufferOffsetAlignment */
    VkDescriptorBufferInfo sin
        VKROPE_ZERO; /**< cos_sin_cache: sin; offset must be a multiple of 4 */
} vkrope_angles;

/** One rotation of Q, K or both, optionally with a copy of V. Input and output of a tensor must
 * be the same bytes (in place) or disjoint. A field that is given and that the kernel does not use
 * is an error that names it: ids of a kernel of implicit positions, parameters of a kernel without
 * weights, rows of a tensor without heads. */
typedef struct vkrope_call {
    uint32_t batch VKROPE_ZERO;  /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO; /**< tokens per sequence; 0 is valid and records nothing */
    /** By VKROPE_Q, VKROPE_K, VKROPE_V; heads 0: absent. V is copied, and converted if the kernel
     * says so; in place, nothing is copied. A V with the heads, head_dim and strides (in elements)
     * of K shares K's dispatch; any other V has its own. */
    vkrope_tensor in[VKROPE_TENSORS] VKROPE_ZERO;
    vkrope_tensor out[VKROPE_TENSORS] VKROPE_ZERO; /**< may equal `in`: in place */
    vkrope_positions positions VKROPE_ZERO;        /**< where the tokens stand */
    vkrope_angles angles VKROPE_ZERO;              /**< angle table */
    vkrope_direction direction VKROPE_ZERO;        /**< forward or inverse */
    vkrope_gain gain VKROPE_ZERO;                  /**< how the attention factor is applied */
    vkrope_paged_cache paged_cache VKROPE_ZERO;    /**< with scatter_kv: destination rows */
    /** Optional uint32 counter: incremented for each token whose position the table does not cover
     * (its rows stay unrotated) or whose slot is outside the cache (its K and V are not stored).
     * Never cleared here. An error if neither can be: computed angles of implicit positions,
     * without scatter_kv. */
    VkDescriptorBufferInfo out_of_range VKROPE_ZERO;
    /** Weights, biases and scales of the kernel's vkrope_tensor_info::ops, as
     * vkrope_plan_parameters places them. Offset must be a multiple of 16; range at least
     * vkrope_parameter_layout::bytes, or twice that with vkrope_kernel_info::two_parameter_sets,
     * whose second set follows the first. */
    VkDescriptorBufferInfo parameters VKROPE_ZERO;
    /** With vkrope_kernel_info::two_parameter_sets: tokens of each sequence that take the first
     * set, 1 to tokens - 1; otherwise it must be 0. */
    uint32_t first_set_tokens VKROPE_ZERO;
    float q_scale VKROPE_ZERO; /**< with vkrope_ops::scale_call: multiplies Q; finite, not 0;
                      otherwise must be 1; 0: 1 */
    /** With vkrope_ops::scale_tokens of the tensor: f32 [batch, tokens], packed. Offset and range
     * must be multiples of 4. */
    VkDescriptorBufferInfo scale_tokens[VKROPE_TENSORS] VKROPE_ZERO;
    /** With made scales of the tensor: receives f32 [batch, tokens, heads], packed, or with slots
     * one scale for each row of the cache, see vkrope_scale_layout. The offset must be a multiple
     * of 4; the range may not overlap another buffer of the call. */
    VkDescriptorBufferInfo scales_out[VKROPE_TENSORS] VKROPE_ZERO;
} vkrope_call;

/**
 * Number of dispatches that vkrope_record makes for a call, and of sets that it takes from an
 * arena. 0 if there is nothing to do: no tokens, or only a V in place and no out_of_range. More
 * than one if
 *
 * - the tokens exceed the workgroups of a dispatch,
 * - the device binds too few storage buffers for Q, K and V together,
 * - a tensor or cache exceeds the range that the device binds at once,
 * - V's layout differs from K's,
 * - heads in groups are combined with a batch or slots.
 *
 * Thread-safe.
 *
 * @param kernel      a kernel
 * @param call        as for vkrope_record
 * @param dispatches  receives the number
 * @param error       optional
 * @return every error of vkrope_record except arena errors
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel,
                                                                const vkrope_call* call,
                                                                uint64_t* dispatches,
                                                                vkrope_error* error);

/** Stages and accesses for barriers around the commands of vkrope_record. */
typedef struct vkrope_boundary {
    VkPipelineStageFlags stage VKROPE_ZERO; /**< first and last stage */
    VkAccessFlags input_access
        VKROPE_ZERO; /**< vkrope_call::in, ids and an angle table in a buffer */
    VkAccessFlags texture_access VKROPE_ZERO;  /**< an angle table in a texture */
    VkAccessFlags output_access VKROPE_ZERO;   /**< vkrope_call::out, scales_out and out_of_range */
    VkAccessFlags in_place_access VKROPE_ZERO; /**< a tensor in place */
} vkrope_boundary;

/**
 * Returns the stages and accesses for barriers around vkrope_record: the same for every call.
 * Thread-safe.
 *
 * @param boundary  receives the result
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_boundary(vkrope_boundary* boundary,
                                                              vkrope_error* error);

/**
 * Records one rotation into `commands`. It does not submit, wait, allocate or compile.
 *
 * vkrope_get_boundary gives the stages and accesses. Buffers need
 * VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, an angle table vkrope_angle_table_layout::usage. The caller
 * orders the rotation against earlier and later commands: barriers are inserted only between
 * dispatches of this call whose bound ranges overlap and of which one writes. A call owns the whole
 * 4-byte words of its tensors. A word shared with neighbouring data is read and written atomically,
 * and barriers of the caller must cover all of it.
 *
 * A dispatch takes 4 Vulkan calls with push descriptors (push, bind pipeline, push constants,
 * dispatch) or 5 with an arena (update and bind a set instead of push), and the whole call 2 more
 * with VKROPE_DEVICE_FEATURE_DEBUG_UTILS. Disturbs the compute pipeline, descriptor set 0 and the
 * push constants of the compute bind point. On error nothing has been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 *                  synchronised
 * @param kernel    any number of threads may record with one kernel at a time
 * @param call      the rotation
 * @param arena     null with push descriptors; otherwise an arena for this kernel, externally
 *                  synchronised, with at least vkrope_get_dispatches sets left
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_NOT_SUPPORTED for what this version does not support;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for what the device cannot bind or address, and for an arena
 *         without enough sets left
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_record(VkCommandBuffer commands,
                                                        const vkrope_kernel* kernel,
                                                        const vkrope_call* call,
                                                        vkrope_arena* arena, vkrope_error* error);

/* ---- upload of an angle table ---- */

/**
 * Returns the VkImageCreateInfo for the texture of a layout, which is copied into once, then
 * sampled by compute shaders of one queue family. Thread-safe.
 *
 * @param layout   from vkrope_plan_angles
 * @param info   receives the argument for vkCreateImage
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_image_info(
    const vkrope_angle_table_layout* layout, VkImageCreateInfo* info, vkrope_error* error);

/**
 * Returns the VkImageViewCreateInfo for vkrope_angles::view. Thread-safe.
 *
 * @param layout   from vkrope_plan_angles
 * @param image  created with vkrope_get_angle_image_info
 * @param info   receives the argument for vkCreateImageView
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_angle_view_info(const vkrope_angle_table_layout* layout, VkImage image,
                           VkImageViewCreateInfo* info, vkrope_error* error);

/** Source and destination of a table upload. */
typedef struct vkrope_angle_upload {
    VkBuffer staging VKROPE_ZERO; /**< usage VK_BUFFER_USAGE_TRANSFER_SRC_BIT; holds the output of
                         vkrope_fill_angles */
    VkDeviceSize staging_offset
        VKROPE_ZERO;             /**< bytes; a multiple of 16 for textures, of 4 for buffers */
    VkImage image VKROPE_ZERO;   /**< textures: created with vkrope_get_angle_image_info */
    VkBuffer buffer VKROPE_ZERO; /**< buffers: usage vkrope_angle_table_layout::usage and
                                    VK_BUFFER_USAGE_TRANSFER_DST_BIT */
    VkDeviceSize buffer_offset VKROPE_ZERO; /**< bytes; a multiple of 4 */
    uint32_t first_line VKROPE_ZERO; /**< Part of the table, see vkrope_angle_lines: staging holds
                            `lines` lines from `first_line` on. The first part must be uploaded
                            first and the last part last. 0 lines: all from first_line on. */
    uint32_t lines VKROPE_ZERO;      /**< lines that staging holds, as first_line says */
} vkrope_angle_upload;

/**
 * Records the upload of a table that vkrope_fill_angles wrote: image transitions, the copy, and a
 * barrier after which later commands of vkrope_record on the same queue may read it. Leaves the
 * image in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL. Use it once per model, not per call: it looks
 * up Vulkan functions. On error nothing has been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 *                  synchronised
 * @param device    the borrowed device
 * @param layout      not a cos_sin_cache: its content belongs to the caller
 * @param upload    source and destination
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_record_angle_upload(VkCommandBuffer commands, const vkrope_device_ref* device,
                           const vkrope_angle_table_layout* layout,
                           const vkrope_angle_upload* upload, vkrope_error* error);

/* ---- conversion of positions to int32 ids ---- */

/** Computes int32 ids, once per step for all layers. Immutable: any number of threads may record
 * with it. */
typedef struct vkrope_position_kernel vkrope_position_kernel;

/**
 * Compiles the pipeline of vkrope_record_positions. Thread-safe like vkrope_kernel_create.
 *
 * @param device  the borrowed device
 * @param kernel  receives the kernel; destroy it with vkrope_position_kernel_destroy
 * @param error   optional
 * @return errors of Vulkan. Nothing is left behind.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_position_kernel_create(
    const vkrope_device_ref* device, vkrope_position_kernel** kernel, vkrope_error* error);

/** Destroys it. No command buffer that uses it may be pending. */
VKROPE_API void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel);

/**
 * Like vkrope_arena_create; vkrope_record_positions takes one set per call.
 *
 * @param kernel  determines the device; need not outlive the arena
 * @param calls   1 to 65536
 * @param arena   receives the arena; destroy it with vkrope_arena_destroy
 * @param error   optional
 * @return errors of Vulkan
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_position_arena_create(const vkrope_position_kernel* kernel, uint32_t calls,
                             vkrope_arena** arena, vkrope_error* error);

/**
 * Computes int32 ids, once per step for all layers. Three forms:
 *
 * - One row per sequence, no `cu_seqlens`: `out` is [batch, tokens]. The position of token t of
 *   sequence b is offsets[b] + first + t, or ids[b, t] (int64), or ids[b, t] 2^fraction_bits
 *   (f32: seconds, patch centres, interpolated grids).
 * - Ragged, `cu_seqlens` is [sequences + 1]: `out` is [tokens]. The position of token t of packed
 *   sequence i, cu_seqlens[i] <= t < cu_seqlens[i + 1], is offsets[i] + first + t - cu_seqlens[i].
 *   A token of no sequence has position 0.
 * - A shard, cp_size > 1: each sequence is cut into 2 cp_size chunks of equal length. This rank
 *   holds chunk cp_rank, followed by chunk 2 cp_size - 1 - cp_rank (zig-zag), as fused_rope of
 * TransformerEngine. `tokens` counts the tokens of this rank; cu_seqlens counts those of all ranks,
 * padded to multiples of 2 cp_size.
 *
 * An f32 id times 2^fraction_bits must be a whole number; the rotation then has frequencies times
 * 2^-fraction_bits: vkrope_scale_positions.
 *
 * A position that does not fit in int32, or is not a whole number, becomes -2^31 and increments
 * out_of_range. No table covers -2^31, but computed angles do.
 */
typedef struct vkrope_position_call {
    uint32_t batch VKROPE_ZERO;  /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO; /**< tokens per sequence; 0 records nothing */
    int32_t first VKROPE_ZERO;   /**< added to every position */
    VkDescriptorBufferInfo ids
        VKROPE_ZERO; /**< optional: int64 or f32 [batch, tokens], instead of offsets and first */
    VkDescriptorBufferInfo offsets VKROPE_ZERO; /**< optional: int32 or int64, one per sequence */
    VkDescriptorBufferInfo cu_seqlens VKROPE_ZERO; /**< Optional: int32 or int64, ascending from 0.
                                          No value causes accesses outside the buffers. */
    uint32_t sequences VKROPE_ZERO;                /**< sequences in cu_seqlens */
    VkBool32 offsets_int64 VKROPE_ZERO;            /**< offsets are int64 */
    VkBool32 cu_seqlens_int64 VKROPE_ZERO;         /**< cu_seqlens are int64 */
    uint32_t cp_size VKROPE_ZERO; /**< number of shards; above 1, tokens (or each sequence) is a
                         multiple of 2; 0: 1 */
    uint32_t cp_rank VKROPE_ZERO; /**< index of this shard */
    VkBool32 ids_f32 VKROPE_ZERO; /**< ids are f32 */
    uint32_t fraction_bits VKROPE_ZERO;              /**< of f32 ids, 0 to 63 */
    VkDescriptorBufferInfo out VKROPE_ZERO;          /**< int32 [batch, tokens] */
    VkDescriptorBufferInfo out_of_range VKROPE_ZERO; /**< optional uint32 counter: incremented for
                                            each position that does not fit in int32 */
} vkrope_position_call;

/**
 * Records one dispatch that writes `out`. vkrope_get_boundary applies: `out` and `out_of_range` are
 * written, the rest is read. Disturbs what vkrope_record disturbs and allocates nothing. On error
 * nothing has been recorded.
 *
 * @param commands  as for vkrope_record
 * @param kernel    any number of threads may record with one kernel at a time
 * @param call      the conversion
 * @param arena     as for vkrope_record; takes one set per call
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_LIMIT_EXCEEDED if the device cannot bind or dispatch that much, or if the
 *         arena has no set left
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_record_positions(VkCommandBuffer commands, const vkrope_position_kernel* kernel,
                        const vkrope_position_call* call, vkrope_arena* arena, vkrope_error* error);

/* ---- tier "runtime": vkrope's own device; not in vkrope::c_static ----
 *
 * A device and the objects made with it belong to one thread at a time; destroy those objects
 * before the device. Functions that take either may return errors of Vulkan:
 * VKROPE_ERROR_OUT_OF_DEVICE_MEMORY, VKROPE_ERROR_DEVICE_LOST, VKROPE_ERROR_VULKAN. Functions
 * that wait for the device may also return VKROPE_ERROR_TIMEOUT. */

/**
 * Receives a message from the loader, a layer or a driver, or of this library about its pipeline
 * cache, during calls of this library, vkrope_device_destroy among them, on the calling thread. It
 * must return.
 *
 * @param user_data  vkrope_device_options::user_data
 * @param is_error   true for an error, false for a warning
 * @param id         identifier of the message
 * @param text       the message
 */
typedef void (*vkrope_message_callback)(void* user_data, VkBool32 is_error, const char* id,
                                        const char* text);

/** Which device to open, and how. */
typedef struct vkrope_device_options {
    /** The best device if empty; digits: an index into the list of devices; 32 hex digits: a UUID;
     * else part of a name, in any case. */
    const char* select VKROPE_ZERO;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr
        VKROPE_ZERO;                 /**< null: the system's Vulkan loader, found at run time */
    VkBool32 validation VKROPE_ZERO; /**< Enables VK_LAYER_KHRONOS_validation with synchronisation
                            validation and best practices. Returns VKROPE_ERROR_NOT_SUPPORTED if the
                            layer is not installed. */
    /** Uses descriptor sets even if push descriptors are available. */
    VkBool32 no_push_descriptors VKROPE_ZERO;
    vkrope_message_callback on_message
        VKROPE_ZERO;                 /**< optional; with user_data it must outlive the device */
    void* user_data VKROPE_ZERO;     /**< passed to on_message */
    uint64_t timeout_ns VKROPE_ZERO; /**< longest wait for one submission; 0: 30 s */
    /** Folder, in UTF-8, that keeps compiled pipelines between processes, in one file for each
     * device and driver; null: nothing is kept. It must exist, and only users whom you trust may
     * write to it: a checksum finds damage, not malice. If a file is damaged, or cannot be read or
     * written, pipelines are compiled as without it, and `on_message` gets a warning with the id
     * "vkrope-pipeline-cache". */
    const char* pipeline_cache_folder VKROPE_ZERO;
    /** Largest size of all these files together, in bytes; 0: 64 MiB. Writing one removes the
     * oldest ones; a file that is larger alone is neither written nor read. */
    uint64_t pipeline_cache_bytes VKROPE_ZERO;
} vkrope_device_options;

/** Properties of a physical device. Strings and limits are valid as long as the list or device
 * that they come from. */
typedef struct vkrope_device_info {
    const char* name VKROPE_ZERO;          /**< name reported by the driver */
    const char* driver VKROPE_ZERO;        /**< name and version of the driver */
    const char* uuid VKROPE_ZERO;          /**< 32 hex digits */
    const char* reason VKROPE_ZERO;        /**< what the device lacks; empty if it is suitable */
    VkPhysicalDeviceType type VKROPE_ZERO; /**< discrete, integrated, ... */
    uint32_t api_version VKROPE_ZERO;      /**< Vulkan version of the device */
    VkBool32 suitable VKROPE_ZERO;         /**< false: `reason` says what the device lacks */
    uint64_t memory_bytes VKROPE_ZERO;     /**< largest device-local heap */
    const VkPhysicalDeviceLimits* limits VKROPE_ZERO; /**< all limits */
} vkrope_device_info;

/** The Vulkan devices of the machine, best first. Immutable and thread-safe. */
typedef struct vkrope_device_list vkrope_device_list;

/**
 * Lists every Vulkan device, best first: discrete, integrated, virtual, other, and software devices
 * last. Thread-safe.
 *
 * @param options  null: the defaults
 * @param list     receives the list; destroy it with vkrope_device_list_destroy
 * @param error    optional
 * @return VKROPE_ERROR_NO_DEVICE without a Vulkan loader
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_list_create(
    const vkrope_device_options* options, vkrope_device_list** list, vkrope_error* error);

/** The devices of the list, best first, which belong to it; `count` receives their number. Null and
 * 0 for null. Thread-safe. */
VKROPE_API const vkrope_device_info* vkrope_device_list_get(const vkrope_device_list* list,
                                                            uint32_t* count);

/**
 * Finds the one device that `select` names, as vkrope_device_open does. Thread-safe.
 *
 * @param devices  `count` devices, such as vkrope_device_list_get gives
 * @param count    number of devices
 * @param select   as vkrope_device_options::select
 * @param index    receives the device's index
 * @param error    optional; lists the devices to choose from
 * @return VKROPE_ERROR_NO_DEVICE if no suitable device matches; VKROPE_ERROR_INVALID_ARGUMENT if
 *         several match, and for an index past the end
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_select_device(const vkrope_device_info* devices,
                                                               uint32_t count, const char* select,
                                                               uint32_t* index,
                                                               vkrope_error* error);

/** Destroys a list and the strings of its infos. */
VKROPE_API void vkrope_device_list_destroy(vkrope_device_list* list);

/** A device with one compute queue. */
typedef struct vkrope_device vkrope_device;

/**
 * Opens a device. Thread-safe.
 *
 * @param options  null: the defaults, which open the best device
 * @param device   receives the device; destroy it with vkrope_device_destroy
 * @param error    optional
 * @return VKROPE_ERROR_NO_DEVICE if no suitable device matches; VKROPE_ERROR_INVALID_ARGUMENT if
 *         `select` matches several
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_open(const vkrope_device_options* options,
                                                             vkrope_device** device,
                                                             vkrope_error* error);

/** Properties of the device, which owns them; null for null. */
VKROPE_API const vkrope_device_info* vkrope_device_get_info(const vkrope_device* device);

/** The device's handles, for vkrope_kernel_create and the caller's own Vulkan calls. The device
 * owns them; null for null. */
VKROPE_API const vkrope_device_ref* vkrope_device_get_ref(const vkrope_device* device);

/** The device's queue; `family`, optional, receives its queue family index. Submit to it only on
 * the thread that the device belongs to, and not while a function of this library does. Null for
 * null. */
VKROPE_API VkQueue vkrope_device_get_queue(const vkrope_device* device, uint32_t* family);

/**
 * Records commands for vkrope_device_submit.
 *
 * @param user_data  as given to vkrope_device_submit
 * @param commands   recording
 * @param error      never null; for passing to functions of this library
 * @return VKROPE_SUCCESS; any other value: nothing is submitted, and vkrope_device_submit returns
 *         it. If it throws a C++ exception, nothing is submitted, and vkrope_device_submit returns
 *         VKROPE_ERROR_INVALID_ARGUMENT
 */
typedef vkrope_result (*vkrope_record_callback)(void* user_data, VkCommandBuffer commands,
                                                vkrope_error* error);

/**
 * Records one command buffer, submits it and waits for it. Memory effects of earlier submissions
 * are visible to the commands. The callback may only record: anything that submits on this device
 * returns VKROPE_ERROR_INVALID_ARGUMENT during it.
 *
 * @param device       a device
 * @param record       called once, before this function returns
 * @param user_data    passed to `record`
 * @param nanoseconds  optional; receives the device time of the commands, or -1 if unknown
 * @param error        optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_submit(vkrope_device* device,
                                                               vkrope_record_callback record,
                                                               void* user_data, double* nanoseconds,
                                                               vkrope_error* error);

/**
 * Writes the pipelines compiled so far to vkrope_device_options::pipeline_cache_folder;
 * vkrope_device_destroy does it too. No effect without a folder, if nothing was compiled since, or
 * if the driver keeps nothing. The file is replaced as a whole, so that any number of processes may
 * write it; the last one wins. On an error the device works on, and the old file stays.
 *
 * @param device  a device
 * @param error   optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT if the file could not be written;
 *         VKROPE_ERROR_LIMIT_EXCEEDED if it would be larger than pipeline_cache_bytes
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_save_pipeline_cache(vkrope_device* device,
                                                                            vkrope_error* error);

/** Destroys a device. Destroy the objects made with it first. */
VKROPE_API void vkrope_device_destroy(vkrope_device* device);

/** Device memory for a tensor, ids or a table: a storage and uniform buffer that can be copied
 * from and to. */
typedef struct vkrope_buffer vkrope_buffer;

/**
 * Creates a buffer.
 *
 * @param device  a device
 * @param bytes   above 0; rounded up to a multiple of 4
 * @param buffer  receives the buffer; destroy it with vkrope_buffer_destroy
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_buffer_create(vkrope_device* device,
                                                               uint64_t bytes,
                                                               vkrope_buffer** buffer,
                                                               vkrope_error* error);

/** The whole buffer, for vkrope_tensor::where and similar fields; {VK_NULL_HANDLE, 0, 0} for
 * null. */
VKROPE_API VkDescriptorBufferInfo vkrope_buffer_whole(const vkrope_buffer* buffer);

/**
 * Copies host memory into the buffer, and waits.
 *
 * @param buffer  a buffer
 * @param source  `bytes` bytes
 * @param bytes   number of bytes; offset + bytes must be within the buffer
 * @param offset  bytes into the buffer; offset and bytes need no alignment
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_buffer_upload(vkrope_buffer* buffer,
                                                               const void* source, size_t bytes,
                                                               uint64_t offset,
                                                               vkrope_error* error);

/**
 * Copies the buffer into host memory after all earlier submissions, and waits.
 *
 * @param buffer  a buffer
 * @param target  receives `bytes` bytes
 * @param bytes   number of bytes; offset + bytes must be within the buffer
 * @param offset  bytes into the buffer; offset and bytes need no alignment
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_buffer_download(vkrope_buffer* buffer,
                                                                 void* target, size_t bytes,
                                                                 uint64_t offset,
                                                                 vkrope_error* error);

/** Destroys a buffer. */
VKROPE_API void vkrope_buffer_destroy(vkrope_buffer* buffer);

/** An angle table on the device. */
typedef struct vkrope_angle_table vkrope_angle_table;

/**
 * Plans, fills and uploads an angle table.
 *
 * @param device        a device
 * @param rotation      rotation of the table; not referred to afterwards
 * @param source        kind of table
 * @param max_position  as vkrope_plan_angles: covers positions with |position| < max_position
 * @param table         receives the table; destroy it with vkrope_angle_table_destroy
 * @param error         optional
 * @return as vkrope_plan_angles
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_angle_table_create(
    vkrope_device* device, const vkrope_rope_params* rotation, vkrope_angle_source source,
    uint64_t max_position, vkrope_angle_table** table, vkrope_error* error);

/** The table for vkrope_call::angles, which belongs to it; null for null. */
VKROPE_API const vkrope_angles* vkrope_angle_table_get(const vkrope_angle_table* table);

/**
 * Grows the table to `max_position`, at least doubling it if possible, so that growing step by step
 * is cheap; no effect if the table is large enough. Existing angles keep their bits. Command
 * buffers that use the old table must have completed, and what vkrope_angle_table_get gave is no
 * longer valid. Unchanged on error.
 *
 * @param table         a table
 * @param rotation      the rotation that it was created with
 * @param max_position  as vkrope_plan_angles
 * @param error         optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_angle_table_reach(vkrope_angle_table* table, const vkrope_rope_params* rotation,
                         uint64_t max_position, vkrope_error* error);

/** Destroys a table. */
VKROPE_API void vkrope_angle_table_destroy(vkrope_angle_table* table);

/** Tensors of a vkrope_host_rotation. Q or K may be absent (0 heads); V is optional. */
typedef struct vkrope_host_shape {
    uint32_t batch VKROPE_ZERO;                    /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO;                   /**< tokens per sequence */
    uint32_t heads[VKROPE_TENSORS] VKROPE_ZERO;    /**< of Q, K and V; 0: absent */
    uint32_t head_dim[VKROPE_TENSORS] VKROPE_ZERO; /**< 0: Q and K from the rotation, see
                                                      vkrope_row_channels; V as K */
    vkrope_element element VKROPE_ZERO;            /**< all tensors, input and output */
    vkrope_layout layout VKROPE_ZERO;              /**< all tensors */
    const int32_t* positions
        VKROPE_ZERO; /**< [tokens] for all sequences, or [batch, tokens]; null: implicit */
    size_t position_count VKROPE_ZERO; /**< numbers in positions */
    /** Positions are [axes, batch, tokens], for the rotation's sections. 0: one position per token,
     * used on all axes. */
    uint32_t axes VKROPE_ZERO;
    int32_t first_position VKROPE_ZERO;     /**< implicit: position of token 0 of every sequence */
    vkrope_angle_source angles VKROPE_ZERO; /**< kind of table */
    vkrope_mapping mapping VKROPE_ZERO;     /**< how work is distributed over invocations */
    vkrope_conversion conversion VKROPE_ZERO; /**< how f16 is converted */
    VkBool32 in_place VKROPE_ZERO; /**< false: separate input and output on the device, so that a
                                      run can be repeated */
} vkrope_host_shape;

/** Rotates tensors in host memory; owns the table and buffers for one rotation and one shape. */
typedef struct vkrope_host_rotation vkrope_host_rotation;

/**
 * Fills the table, makes the buffers, and compiles pipelines that the device does not have yet.
 *
 * @param device         a device
 * @param rotation       the rotation; not referred to afterwards
 * @param shape          the tensors
 * @param host_rotation  receives the object; destroy it with vkrope_host_rotation_destroy
 * @param error          optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for tensors or a table that are too large;
 *         VKROPE_ERROR_NOT_SUPPORTED for what this version or the device does not support
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_host_rotation_create(
    vkrope_device* device, const vkrope_rope_params* rotation, const vkrope_host_shape* shape,
    vkrope_host_rotation** host_rotation, vkrope_error* error);

/** Bytes of a tensor in host memory; 0 if it is absent or the pointer is null. */
VKROPE_API size_t vkrope_host_rotation_bytes(const vkrope_host_rotation* host_rotation,
                                             vkrope_tensor_index tensor);

/**
 * Copies Q, K and V to the device.
 *
 * @param host_rotation  a host rotation
 * @param q              vkrope_host_rotation_bytes of VKROPE_Q bytes; null if Q is absent
 * @param k              as many as of VKROPE_K; null if K is absent
 * @param v              as many as of VKROPE_V; null if V is absent
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_upload(vkrope_host_rotation* host_rotation, const void* q, const void* k,
                            const void* v, vkrope_error* error);

/** What may change from one run of a vkrope_host_rotation to the next. Positions stay in effect for
 * later runs. */
typedef struct vkrope_host_run {
    vkrope_direction direction VKROPE_ZERO; /**< forward or inverse */
    VkBool32 moves VKROPE_ZERO; /**< implicit positions: use first_position; else it must be 0 */
    int32_t first_position VKROPE_ZERO; /**< with `moves`: position of token 0 of every sequence */
    const int32_t* positions
        VKROPE_ZERO; /**< same count and order as vkrope_host_shape::positions; null: no change */
    size_t position_count VKROPE_ZERO; /**< numbers in positions */
} vkrope_host_run;

/**
 * Rotates the uploaded Q and K, and copies V; in place, rotates the result of the last run. Waits.
 * The table grows to cover new positions, as in decoding. The angle source, and therefore the
 * result bits, do not change.
 *
 * @param host_rotation  a host rotation
 * @param run            null: forward, at the positions of the run before or of the shape
 * @param nanoseconds    optional; receives the device time of the run, or -1 if unknown
 * @param error          optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for a position that no table of this angle source covers
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_run(vkrope_host_rotation* host_rotation, const vkrope_host_run* run,
                         double* nanoseconds, vkrope_error* error);

/**
 * Copies the result of a run from the device.
 *
 * @param host_rotation  a host rotation
 * @param q              receives as many bytes as upload takes; null if Q is absent
 * @param k              receives as many as of VKROPE_K; null if K is absent
 * @param v              receives as many as of VKROPE_V; null if V is absent
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_host_rotation_download(
    vkrope_host_rotation* host_rotation, void* q, void* k, void* v, vkrope_error* error);

/** Destroys a host rotation. */
VKROPE_API void vkrope_host_rotation_destroy(vkrope_host_rotation* host_rotation);

#ifdef __cplusplus
}
#endif

#endif /* VKROPE_H */
