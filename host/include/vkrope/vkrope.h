/* SPDX-License-Identifier: MIT */
/**
 * @file vkrope.h
 * @brief Rotary position embedding on Vulkan, for C11 and every language that can call C.
 *
 * Declares and documents every struct, enumeration and function of the library, for C++ too. A
 * generator of bindings needs to read only this file and version.h. This file is therefore longer
 * than other files. Its sections, in the order in which an engine meets them:
 *
 * | section  | what it has                                                               |
 * |----------|---------------------------------------------------------------------------|
 * | status   | results and errors                                                        |
 * | types    | pairing, element, angle source and what else the other sections share     |
 * | kernel   | device, properties of Q, K and V, ops, arena                              |
 * | call     | tensors, paged cache, positions, vkrope_record                            |
 * | rotation | RoPE parameters, default frequencies, angle table, vkrope_get_kernel_info |
 * | upload   | of an angle table                                                         |
 * | ops      | weights, biases and scales in a buffer                                    |
 * | step     | ids, slots and factors made on the device; ragged batches, shards         |
 * | model    | config.json and GGUF files                                                |
 * | runtime  | vkrope's own device, buffers, rotation of host memory                     |
 * | scalings | linear, Llama 3, YaRN, LongRoPE, ..., ggml, XPos                          |
 * | grids    | images, video, chunks                                                     |
 *
 * Rules:
 *
 * - **Structs.** 0 is the default of every field: `vkrope_call call = {.tokens = 1};`. Where no
 *   default would be safe, such as for a pairing, 0 is an error. Structs hold others by value;
 *   arrays of three are indexed by VKROPE_Q, VKROPE_K and VKROPE_V. A program must be compiled with
 *   the header of the library that it runs with: see #vkrope_version.
 * - **Errors.** A function that can fail returns a #vkrope_result and takes a `vkrope_error*` last,
 *   which may be null. On failure it writes null to the handle that it would have created; other
 *   results are unspecified. Every function that takes a struct or a required pointer returns
 *   #VKROPE_ERROR_INVALID_ARGUMENT if the pointer is null, and may return
 *   #VKROPE_ERROR_OUT_OF_HOST_MEMORY; the functions below document only other errors. No C++
 *   exception leaves the library.
 * - **Ranges.** The range of a VkDescriptorBufferInfo is the own bytes of what it holds, never
 *   VK_WHOLE_SIZE. It may exceed what a call accesses. Exception: a range of exactly twice the
 *   bytes of 32-bit integers is an error where a flag, which it names, says whether they have 64
 *   bits, and for query_lens, seq_lens and a packed block_table. Either the integers have 64 bits,
 *   or the buffer is larger than its numbers and the range must be theirs.
 * - **Threads.** There is no global state. Unless stated otherwise, an object is immutable once
 *   created and may be used by any number of threads; no thread may use it while or after it is
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
 * Declares a function of the library. With VKROPE_STATIC, which the static targets define,
 * functions are linked into the program and not exported from it. */
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
 * Underlying type of an enumeration. It allows every 32-bit number as a value, so that an invalid
 * number is reported as an error and is not undefined behaviour. C before C23 uses int, which has
 * the same size. */
/** @def VKROPE_INT32
 * Like VKROPE_UINT32, for an enumeration with negative values. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define VKROPE_UINT32 : uint32_t
#define VKROPE_INT32 : int32_t
#else
#define VKROPE_UINT32
#define VKROPE_INT32
#endif

/** @def VKROPE_ZERO
 * Initialises a field with its default in C++. In C, initialise a variable with `= {0}`. */
#ifdef __cplusplus
#define VKROPE_ZERO = {}
extern "C" {
#else
#define VKROPE_ZERO
#endif

/** Returns the version of the loaded library, encoded by #VKROPE_MAKE_VERSION. Before 1.0 a program
 * needs the minor version that it was compiled with. Thread-safe. */
VKROPE_API uint32_t vkrope_version(void);

/* ---- status ---- */

/** Result of a call: 0, or an error code. */
typedef enum vkrope_result VKROPE_INT32 {
    VKROPE_SUCCESS = 0,
    /** A field has an invalid value; nothing was created, recorded or changed. */
    VKROPE_ERROR_INVALID_ARGUMENT = -1,
    VKROPE_ERROR_NOT_SUPPORTED = -2, /**< valid, but not supported by this version or this device */
    /** A number exceeds a limit of the device or the format; `what` gives both numbers. */
    VKROPE_ERROR_LIMIT_EXCEEDED = -3,
    VKROPE_ERROR_INVALID_DATA = -4, /**< the model file cannot be read or contradicts itself */
    VKROPE_ERROR_NO_DEVICE = -5,    /**< no Vulkan loader, or no suitable device */
    /** A host allocation of the library, Vulkan or a callback failed. */
    VKROPE_ERROR_OUT_OF_HOST_MEMORY = -6,
    VKROPE_ERROR_OUT_OF_DEVICE_MEMORY = -7, /**< Vulkan could not allocate device memory */
    /** Every later call on this device fails the same way; destroying objects is safe. */
    VKROPE_ERROR_DEVICE_LOST = -8,
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

/** Returns a short English text for a code, "unknown result" for any other number. The string is
 * static and never null. Thread-safe. */
VKROPE_API const char* vkrope_status_string(vkrope_result result);

/* ---- types ---- */

/** Largest head_dim of a tensor, and largest rotary_dim. */
#define VKROPE_MAX_HEAD_DIM 65534
/** Largest max_position of a table; positions are int32. Computed angles also cover -2^31. */
#define VKROPE_MAX_POSITIONS (UINT64_C(1) << 31)
/** Largest max_position of a factored table: a position has two 11-bit digits. */
#define VKROPE_MAX_FACTORED_POSITIONS (UINT64_C(1) << 22)
/** Largest number of calls of an arena. */
#define VKROPE_MAX_CALLS 65536

/** Index of a tensor in arrays of three: vkrope_kernel_info::tensor, vkrope_call::in and
 * others. */
typedef enum vkrope_tensor_index VKROPE_UINT32 {
    VKROPE_Q = 0,       /**< queries */
    VKROPE_K = 1,       /**< keys */
    VKROPE_V = 2,       /**< values */
    VKROPE_TENSORS = 3, /**< number of tensors */
} vkrope_tensor_index;

/** Pairing: the two channels of a head row that form pair j, in a window of R channels that starts
 * at channel O. */
typedef enum vkrope_pairing VKROPE_UINT32 {
    VKROPE_PAIRING_NONE = 0, /**< not set: an error where a pairing is needed */
    VKROPE_HALF_SPLIT = 1,   /**< (O + j, O + j + R/2): GPT-NeoX, Hugging Face Llama */
    VKROPE_INTERLEAVED = 2,  /**< (O + 2j, O + 2j + 1): RoFormer, GPT-J */
} vkrope_pairing;

/** Storage format of a tensor element, little-endian. The quantised types, from VKROPE_E4M3FN on,
 * are for vkrope_tensor_info::out, and for `in` of K and V in kernels that move keys. Stored bytes
 * equal the named definition on every device. What is read is exact in f32, or rounded once: the
 * number of the code, times the scale of the row or group if it has one, or d times the code, plus
 * m. */
typedef enum vkrope_element VKROPE_UINT32 {
    VKROPE_F32 = 0,  /**< IEEE 754 binary32 */
    VKROPE_F16 = 1,  /**< IEEE 754 binary16 */
    VKROPE_BF16 = 2, /**< bfloat16: the upper half of a binary32 */
    /** 8-bit float (OFP8, Open Compute Project) with 4 exponent bits. Rounds to nearest even, and
     * clamps magnitudes, including infinities, to 448; a NaN becomes 0x7f. */
    VKROPE_E4M3FN = 3,
    /** 8-bit float (OFP8) with 5 exponent bits, like VKROPE_E4M3FN; clamps magnitudes to 57344. */
    VKROPE_E5M2 = 4,
    VKROPE_INT8 = 5, /**< two's complement, -127 to 127; ties away from zero; a NaN becomes 0 */
    /** Blocks of 32 channels, quantised like ggml's functions quantize_row_*_ref. A NaN does not
     * affect the scale of its block; it is stored as the code for 0 (q4_1 and q5_1: the code of the
     * smallest channel). If the scale or its reciprocal overflows, all channels get that code. */
    VKROPE_Q8_0 = 6,
    VKROPE_Q4_0 = 7,  /**< as VKROPE_Q8_0 */
    VKROPE_Q4_1 = 8,  /**< as VKROPE_Q8_0 */
    VKROPE_Q5_0 = 9,  /**< as VKROPE_Q8_0 */
    VKROPE_Q5_1 = 10, /**< as VKROPE_Q8_0 */
    /** Blocks of 32 channels like VKROPE_Q8_0, whose codes stand for 16 numbers, as of ggml's
     * quantize_row_iq4_nl_ref with f32 sums in the order of channels. A block whose magnitudes are
     * all below 1e-15, NaNs aside, is 18 zero bytes. In others a NaN counts as 0 and has code 8. An
     * infinity gives an infinite d, and code 8 for all channels. Sums that both overflow give d =
     * NaN, 0x7e00. */
    VKROPE_IQ4_NL = 11,
    /** Two's complement, -7 to 7, two channels in a byte, the first in the lower four bits;
     * otherwise like VKROPE_INT8. head_dim must be even. */
    VKROPE_INT4 = 12,
} vkrope_element;

/** Source of cos and sin in the shader. For a given source the output bits are the same on every
 * device. f32 output is within B u a (|x0| + |x1|) + 2^-148 of the exact value, with u = 2^-24 and
 * a = attention_factor, 2^-64 to 2^64; 2^-123 max(a, 1) more if the device flushes subnormals. f16
 * and bf16 output is such a value rounded to nearest. */
typedef enum vkrope_angle_source VKROPE_UINT32 {
    /** vkrope_plan_angles chooses: direct_texture for VKROPE_ANGLE_PRECISION_FLOAT32, else
     * factored_texture for a max_position up to 2^22, else computed. */
    VKROPE_ANGLES_AUTOMATIC = 0,
    /** B = 6: RGBA32F texture with rows for the two 11-bit digits of |position| < 2^22. */
    VKROPE_ANGLES_FACTORED_TEXTURE = 1,
    VKROPE_ANGLES_COMPUTED = 2, /**< B = 4.5: no table, 8 bytes per pair; every int32 position */
    /** B = 3 (2.5 if a = 1): RGBA32F texture, one row per position, two (cos, sin) pairs per
     * texel. */
    VKROPE_ANGLES_DIRECT_TEXTURE = 3,
    /** B as for direct_texture: storage buffer of float (cos, sin) pairs, one row per position. */
    VKROPE_ANGLES_DIRECT_BUFFER = 4,
    /** Cos and sin from two storage buffers of the caller, with any values (ONNX); see
     * vkrope_plan_cos_sin_cache. */
    VKROPE_ANGLES_COS_SIN_CACHE = 5,
} vkrope_angle_source;

/** Precision with which the angle of a pair is computed. */
typedef enum vkrope_angle_precision VKROPE_UINT32 {
    VKROPE_ANGLE_PRECISION_EXACT = 0, /**< position times the double inv_freq, not rounded */
    /** float(position) * float(inv_freq) rounded to float; its cos and sin rounded to float,
     * multiplied by float(attention_factor) and rounded to float. This is what Hugging Face
     * transformers computes from its float32 inv_freq. The relative error of the angle is up to
     * 2^-23 (2^-24 if inv_freq are floats; 2^-24 more from position 2^24 on): 7.8e-3 rad for the
     * fastest pair at position 131071. */
    VKROPE_ANGLE_PRECISION_FLOAT32 = 1,
} vkrope_angle_precision;

/** Source of the position of a token. */
typedef enum vkrope_position_source VKROPE_UINT32 {
    VKROPE_POSITIONS_IMPLICIT = 0, /**< first position + index of the token in its sequence */
    VKROPE_POSITIONS_IDS = 1,      /**< one int32 or int64 per token, in a buffer */
    VKROPE_POSITIONS_AXIS_IDS = 2, /**< one id per token and axis (M-RoPE, vision, video) */
} vkrope_position_source;

/** Maximum number of axes that a token can have positions on. */
#define VKROPE_MAX_AXES 8

/** Rule that selects the axis that rotates a pair, if tokens have positions on several axes
 * (M-RoPE, vision, video). For pair j, counted over all windows, and m = j mod the sum of `pairs`,
 * this axis is: */
typedef enum vkrope_section_order VKROPE_UINT32 {
    /** The axis whose section contains m: Qwen2-VL; vision, where each axis has its own
     * frequencies. */
    VKROPE_SECTIONS_SEQUENTIAL = 0,
    /** Axis m mod 3 if m < 3 * pairs[m mod 3], else leftover_axis: Qwen3-VL. */
    VKROPE_SECTIONS_INTERLEAVED = 1,
    /** All axes: the angle of each pair is the sum over the axes of position times frequency. Every
     * axis has a frequency for every pair, and `pairs` are 0. Requires VKROPE_ANGLES_COMPUTED.
     * Mochi; RoPE-ViT with learned frequencies. */
    VKROPE_SECTIONS_SUM = 2,
} vkrope_section_order;

/** Assignment of pairs to the axes that rotate them. */
typedef struct vkrope_sections {
    vkrope_section_order order VKROPE_ZERO; /**< rule that selects the axis of a pair */
    uint32_t axes VKROPE_ZERO;              /**< 2 to VKROPE_MAX_AXES, interleaved: 3 or 4 */
    /** Number of pairs in each section. At least one is above 0; with VKROPE_SECTIONS_SUM all are
     * 0. */
    uint32_t pairs[VKROPE_MAX_AXES] VKROPE_ZERO;
    uint32_t leftover_axis VKROPE_ZERO; /**< interleaved: axis of the remaining pairs */
} vkrope_sections;

/** Direction of rotation. */
typedef enum vkrope_direction VKROPE_UINT32 {
    VKROPE_FORWARD = 0, /**< y0 = x0 c - x1 s, y1 = x0 s + x1 c */
    /** s -> -s: the gradient; undoes the rotation if the attention factor is 1. */
    VKROPE_INVERSE = 1,
} vkrope_direction;

/** Treatment of the attention factor, which angle tables contain. If the factor is not 1, `omit`
 * and `divide_out` multiply cos and sin by a float, which adds up to 2 u to the error bound of the
 * source (u = 2^-24). A table filled with the wanted factor avoids this error. */
typedef enum vkrope_gain VKROPE_UINT32 {
    VKROPE_GAIN_APPLY = 0, /**< multiply by the factor: forward and gradient */
    VKROPE_GAIN_OMIT = 1,  /**< omit the factor: for shifting positions of keys that contain it */
    /** Divide by the factor; together with VKROPE_INVERSE, this undoes a rotation. */
    VKROPE_GAIN_DIVIDE_OUT = 2,
} vkrope_gain;

/** Distribution of work over shader invocations. It does not change the result bits. */
typedef enum vkrope_mapping VKROPE_UINT32 {
    VKROPE_MAPPING_AUTOMATIC = 0, /**< cpu for VK_PHYSICAL_DEVICE_TYPE_CPU, gpu for other devices */
    VKROPE_MAPPING_GPU = 1, /**< many small invocations; neighbours process neighbouring channels */
    VKROPE_MAPPING_CPU = 2, /**< few large invocations: each processes all heads of a token */
} vkrope_mapping;

/** Distribution of the lanes of a GPU, as vkrope-bench --tune measures it for one device. It does
 * not change the result bits. 0: the library chooses. If a field is set, all calls of the kernel
 * have this distribution; otherwise calls with few tokens have another one than those with many.
 * Each field requires VKROPE_MAPPING_GPU, or VKROPE_MAPPING_AUTOMATIC on a GPU. */
typedef struct vkrope_tuning {
    /** Most heads of Q, and of K and V, that a lane processes one after the other: 1 to 16. With a
     * norm over a token it must be 0; where the sums of a row do not fit in shared memory, a
     * lane has all heads. */
    uint32_t lane_heads VKROPE_ZERO;
    /** Most lanes of a workgroup: a power of two, 32 to 1024, that the device supports. */
    uint32_t group_lanes VKROPE_ZERO;
    /** Most tokens that a workgroup processes side by side, as far as its lanes suffice: a power of
     * two, up to 1024. */
    uint32_t group_tokens VKROPE_ZERO;
} vkrope_tuning;

/** Order of a tensor's axes in memory, slowest first: batch, sequence, heads, head_dim. thd: packed
 * tokens, heads, head_dim; batch must be 1. */
typedef enum vkrope_layout VKROPE_UINT32 {
    VKROPE_LAYOUT_BSHD = 0,
    VKROPE_LAYOUT_BHSD = 1,
    VKROPE_LAYOUT_SBHD = 2,
    VKROPE_LAYOUT_THD = 3,
} vkrope_layout;

/** Maximum number of windows of a row. */
#define VKROPE_MAX_WINDOWS 4

/** Range of channels of a head row; pairs are formed within it. */
typedef struct vkrope_window {
    /** First channel, relative to vkrope_tensor_info::rotary_offset. */
    uint32_t offset VKROPE_ZERO;
    uint32_t rotary_dim VKROPE_ZERO; /**< channels: even */
} vkrope_window;

/* ---- kernel: pipelines on the application's device ---- */

/** Functionality that the application enabled at vkCreateDevice. Support by the device alone is not
 * enough. */
typedef enum vkrope_device_features VKROPE_UINT32 {
    /** VK_KHR_push_descriptor: vkrope_record needs no vkrope_arena. */
    VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR = 1,
    /** VK_EXT_debug_utils of the instance: objects get names, calls get labels. */
    VKROPE_DEVICE_FEATURE_DEBUG_UTILS = 2,
    /** VK_KHR_shader_float_controls, or Vulkan 1.2: pipelines declare the arithmetic that the error
     * bounds assume. */
    VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS = 4,
    /** The feature shaderFloat16 of VK_KHR_shader_float16_int8 or Vulkan 1.2. If float controls
     * are enabled, too, the device's own instructions convert f16. */
    VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 = 8,
} vkrope_device_features;

/** Requirements to merge into VkInstanceCreateInfo and VkDeviceCreateInfo. */
typedef struct vkrope_requirements {
    /** Minimum VkApplicationInfo::apiVersion and device version. */
    uint32_t api_version VKROPE_ZERO;
    /** Device extensions that this device offers and the kernel can use. */
    const char* optional_extensions[4] VKROPE_ZERO;
    uint32_t optional_extension_count VKROPE_ZERO; /**< number of optional_extensions */
    /** vkrope_device_ref::enabled if all optional extensions are enabled. */
    uint32_t enabled VKROPE_ZERO;
    /** The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be
     * enabled; vkrope_device_ref::enabled may then include
     * VKROPE_DEVICE_FEATURE_SHADER_FLOAT16. */
    VkBool32 offers_shader_float16 VKROPE_ZERO;
    /** Bits that vkrope_device_ref::enabled may include without these extensions if
     * VkApplicationInfo::apiVersion is at least 1.2: float controls are part of Vulkan 1.2 devices,
     * and shaderFloat16, once enabled, is a field of VkPhysicalDeviceVulkan12Features. */
    uint32_t enabled_in_core VKROPE_ZERO;
} vkrope_requirements;

/**
 * Queries the requirements of the kernel for a physical device. Thread-safe.
 *
 * @param instance                an instance
 * @param physical                a physical device of the instance
 * @param get_instance_proc_addr  used to look up all Vulkan functions
 * @param requirements            receives the result
 * @param error                   optional
 * @return VKROPE_ERROR_NOT_SUPPORTED if the device lacks a requirement, which the message names
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                        PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                        vkrope_requirements* requirements, vkrope_error* error);

/** A borrowed device. Its handles must outlive every kernel and arena created with them. */
typedef struct vkrope_device_ref {
    /** Created for vkrope_requirements::api_version or a later version. */
    VkInstance instance VKROPE_ZERO;
    VkPhysicalDevice physical VKROPE_ZERO; /**< a physical device of the instance */
    VkDevice device VKROPE_ZERO;           /**< created from `physical` */
    /** Used to look up all Vulkan functions. */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr VKROPE_ZERO;
    uint32_t enabled VKROPE_ZERO; /**< bits of vkrope_device_features */
    /** Optional; used during vkrope_kernel_create only. */
    VkPipelineCache pipeline_cache VKROPE_ZERO;
    /** Optional; must outlive every object created with it. */
    const VkAllocationCallbacks* allocator VKROPE_ZERO;
} vkrope_device_ref;

/** Conversion of f16 to and from f32. It does not change the result bits, except the sign and
 * payload of a NaN. */
typedef enum vkrope_conversion VKROPE_UINT32 {
    /** Integer for VK_PHYSICAL_DEVICE_TYPE_CPU and if native is not available. */
    VKROPE_CONVERSION_AUTOMATIC = 0,
    /** By the device, as SPIR-V defines it under RoundingModeRTE 16. Requires
     * VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS and VKROPE_DEVICE_FEATURE_SHADER_FLOAT16, and a device
     * that reports shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16.
     * Subnormal halves are converted by integer operations unless the device reports
     * shaderDenormPreserveFloat16. */
    VKROPE_CONVERSION_NATIVE = 1,
    VKROPE_CONVERSION_INTEGER = 2, /**< by integer operations */
} vkrope_conversion;

/** Kind of norm. A row is the channels of one head, or of all heads of a token. */
typedef enum vkrope_norm_kind VKROPE_UINT32 {
    VKROPE_NORM_NONE = 0,
    VKROPE_NORM_RMS = 1,   /**< x / sqrt(mean of x^2 + eps) */
    VKROPE_NORM_LAYER = 2, /**< (x - m) / sqrt(mean of (x - m)^2 + eps), m the mean of x */
} vkrope_norm_kind;

/** Channels that a norm treats as one row. */
typedef enum vkrope_norm_span VKROPE_UINT32 {
    VKROPE_NORM_SPAN_HEAD = 0, /**< the head_dim channels of one head (Qwen3, Gemma 3) */
    /** All heads of a token (OLMo 2, video models); requires the number of heads. */
    VKROPE_NORM_SPAN_TOKEN = 1,
} vkrope_norm_span;

/** Place of a norm relative to the rotation. */
typedef enum vkrope_norm_place VKROPE_UINT32 {
    VKROPE_NORM_PLACE_BEFORE = 0, /**< before clip and rotation */
    VKROPE_NORM_PLACE_AFTER = 1,  /**< after the rotation (HunYuan, Llama 4) */
} vkrope_norm_place;

/** Shape of a weight, bias or scale in the parameter buffer. */
typedef enum vkrope_parameter_shape VKROPE_UINT32 {
    VKROPE_PARAMETER_NONE = 0, /**< absent */
    /** [head_dim], the same for all heads; of a norm over a part of a row: vkrope_norm::channels */
    VKROPE_PARAMETER_CHANNEL = 1,
    /** The same for each head, stored like [heads * head_dim]; requires the number of heads. */
    VKROPE_PARAMETER_HEAD_CHANNEL = 2,
    VKROPE_PARAMETER_TENSOR = 3, /**< one number: a scale */
    VKROPE_PARAMETER_HEAD = 4, /**< [heads]: a scale for each head; requires the number of heads */
} vkrope_parameter_shape;

/** A norm over a row or a part of it, whichever channels are rotated, computed in f32. The relative
 * error of a normalised channel of an RMS norm is at most (k/2 + 7) 2^-24, with k = ceil(log2 of
 * the number of its channels) + (token: ceil(log2 heads)). An infinity becomes NaN, and the other
 * channels that the norm takes 0, or NaN with a layer norm. A NaN turns all of these into NaN. */
typedef struct vkrope_norm {
    vkrope_norm_kind kind VKROPE_ZERO;   /**< none: the other fields must have their defaults */
    vkrope_norm_span span VKROPE_ZERO;   /**< channels of one row */
    vkrope_norm_place place VKROPE_ZERO; /**< before or after the rotation */
    float eps VKROPE_ZERO; /**< added to the mean square, inside the root: 1e-20 to 1 */
    vkrope_parameter_shape weight VKROPE_ZERO; /**< multiplies the quotient */
    /** 0: the weight is w; 1: it is 1 + w (Gemma). See vkrope_fill_parameters. */
    uint32_t weight_offset VKROPE_ZERO;
    vkrope_parameter_shape bias VKROPE_ZERO; /**< layer only; added after the weight */
    /** Rounds to the element type of the input after the division and again after the weight, as
     * Hugging Face does for many models; else nothing is rounded before the store. With an input of
     * f32 it has no effect. */
    VkBool32 round_between VKROPE_ZERO;
    /** First channel of the part of a head row that the norm takes, and the number of its channels:
     * 0 and 0 for the whole row. The other channels keep their values, and do not affect the norm.
     * The latent row of MLA, [512 with a norm | 64 rotated], has 0 and 512. Weight and bias have
     * `channels` channels per head, too. */
    uint32_t first_channel VKROPE_ZERO;
    /** 0: all channels, and first_channel must be 0; else first_channel + channels <= head_dim. */
    uint32_t channels VKROPE_ZERO;
    /** The weight is read where the engine has it, from vkrope_call::norm_weight, instead of from
     * vkrope_call::parameters. The result has the same bits. Not with two_parameter_sets. The
     * device must bind one more storage buffer for each such tensor. */
    VkBool32 weight_bound VKROPE_ZERO;
    /** With weight_bound: element type of that buffer, f32, f16 or bf16. */
    vkrope_element weight_type VKROPE_ZERO;
} vkrope_norm;

/** Source of the scale of an e4m3fn, e5m2, int8 or int4 output. */
typedef enum vkrope_store_scale VKROPE_UINT32 {
    VKROPE_STORE_SCALE_NONE = 0, /**< no scale: channels are quantised as they are */
    /** One scale of the tensor multiplies before the store: see
     * vkrope_tensor_parameters::store_scale. */
    VKROPE_STORE_SCALE_GIVEN = 1,
    /** One scale of each head multiplies; requires the number of heads. */
    VKROPE_STORE_SCALE_GIVEN_HEAD = 2,
    /** Each row, or group of vkrope_ops::store_scale_group channels, is divided by a scale that
     * the kernel computes from it: the larger of vkrope_ops::scale_floor and its largest magnitude
     * over the largest finite value of the type (448, 57344, 127, 7), both f32. Stored to
     * vkrope_call::scales_out; requires the number of heads. */
    VKROPE_STORE_SCALE_MADE = 3,
    /** As VKROPE_STORE_SCALE_MADE, but the scale is rounded up to a power of two, at least 2^-126.
     * Its bits 23 to 30 are the byte of a UE8M0 scale, as DeepSeek's indexer stores it. An infinity
     * in the row results in an infinite scale. */
    VKROPE_STORE_SCALE_MADE_POWER_OF_TWO = 4,
} vkrope_store_scale;

/** Layout of the scales of a cache's rows, made or read: of K or V with scatter_kv or gather_kv.
 * Without slots it is [batch, tokens, heads]. With vkrope_ops::store_scale_group, each of these is
 * followed by its groups: [slots, heads, head_dim / group]. */
typedef enum vkrope_scale_layout VKROPE_UINT32 {
    VKROPE_SCALE_LAYOUT_SLOTS_HEADS = 0, /**< [slots, heads] (NHD) */
    VKROPE_SCALE_LAYOUT_PAGES_HEADS = 1, /**< [pages, heads, page_size] (HND) */
} vkrope_scale_layout;

/** Storage format of made scales, and of scales that are read. */
typedef enum vkrope_scale_type VKROPE_UINT32 {
    VKROPE_SCALE_TYPE_F32 = 0,
    /** One byte, the exponent of a power of two plus 127 (Open Compute Project, MX formats); needs
     * VKROPE_STORE_SCALE_MADE_POWER_OF_TWO if scales are made. An infinite scale becomes 255, which
     * is read as NaN. 0 is read as 2^-127, which a device may flush to 0. */
    VKROPE_SCALE_TYPE_UE8M0 = 1,
} vkrope_scale_type;

/** Ops of a tensor other than its rotation. They are applied in this order: the input's Hadamard
 * transform is undone, bias, norm before, clip, rotation (never of V), norm after, scale, Hadamard
 * transform, store. All of them except the rotation also apply to channels that are not rotated.
 * Ops compute in f32: a sum or product beyond its range is an infinity, also inside an op, such as
 * the sums of a layer norm or of a Hadamard transform before the division. Norms, Hadamard
 * transforms and quantised outputs exchange channels in shared memory; vkrope_kernel_create returns
 * VKROPE_ERROR_NOT_SUPPORTED for rows that do not fit in 16 KiB. */
typedef struct vkrope_ops {
    vkrope_parameter_shape bias VKROPE_ZERO; /**< added to the input */
    vkrope_norm norm VKROPE_ZERO;            /**< kind none: no norm */
    float clip VKROPE_ZERO;                  /**< clamps to [-clip, clip]; finite; 0: no clamping */
    float scale VKROPE_ZERO;                 /**< multiplies every channel; finite; 0: 1 */
    /** Q only: the factor is the product of `scale` and vkrope_call::q_scale in double, rounded
     * once to float. */
    VkBool32 scale_call VKROPE_ZERO;
    /** Also multiplies by a factor for each token: vkrope_call::scale_tokens. */
    VkBool32 scale_tokens VKROPE_ZERO;
    /** Multiplies blocks of this many channels by the orthonormal Hadamard matrix in Sylvester's
     * order: a power of two, 2 to 512, that divides head_dim; 0: none. See
     * vkrope_hadamard_of_llama_cpp. */
    uint32_t hadamard VKROPE_ZERO;
    /** Scale of an e4m3fn, e5m2, int8 or int4 output. */
    vkrope_store_scale store_scale VKROPE_ZERO;
    /** Minimum of made scales: finite, not negative; for powers of two at most 2^127. */
    float scale_floor VKROPE_ZERO;
    /** Layout of made scales and of scales_in, of K and V. */
    vkrope_scale_layout scale_layout VKROPE_ZERO;
    /** K and V: blocks of a Hadamard transform that the input has, and that is undone first: as
     * `hadamard`, which has to be set, too, if the output shall have it; 0: none. Not with a norm
     * over a token, nor with another pairing_out. */
    uint32_t hadamard_of_input VKROPE_ZERO;
    /** Channels of each made scale and each of scales_in: 32, 64 or 128, which divides head_dim;
     * 0: the row. */
    uint32_t store_scale_group VKROPE_ZERO;
    vkrope_scale_type scale_type VKROPE_ZERO; /**< format of made scales and of scales_in */
    /** K and V: the rows of an e4m3fn, e5m2, int8 or int4 input have scales, which multiply:
     * vkrope_call::scales_in. Requires the number of heads. */
    VkBool32 scales_in VKROPE_ZERO;
} vkrope_ops;

/** What the second destination of K or V receives: the rows for prefill attention beside a cache,
 * or the keys as they were before the rotation. */
typedef enum vkrope_second_of VKROPE_UINT32 {
    VKROPE_SECOND_NONE = 0, /**< there is one destination */
    /** The row after all ops, before it is rounded or quantised for the first destination. Channels
     * that nothing changes keep their bits if the element type is that of the input. */
    VKROPE_SECOND_RESULT = 1,
    VKROPE_SECOND_INPUT = 2, /**< the row as it was read, before all ops */
} vkrope_second_of;

/** Properties of Q, K or V that are fixed when a kernel is created. head_dim 0: the kernel does not
 * handle this tensor, and the other fields must be 0. */
typedef struct vkrope_tensor_info {
    /** f32, f16 or bf16; of K and V in a kernel without Q also a quantised type. */
    vkrope_element in VKROPE_ZERO;
    vkrope_element out VKROPE_ZERO; /**< any type; with blocks, head_dim must be a multiple of 32 */
    uint32_t head_dim VKROPE_ZERO;  /**< channels per head: 2 to 65534; with a norm, at most 4096 */
    /** First rotated channel; rotary_offset + rotary_dim <= head_dim. For V it must be 0. */
    uint32_t rotary_offset VKROPE_ZERO;
    /** Heads in every call that has the tensor; 0: any number. On a GPU, a known number improves
     * the distribution of lanes. */
    uint32_t heads VKROPE_ZERO;
    /** Norm, bias, clip, scale, Hadamard transform and scales of a quantised output. */
    vkrope_ops ops VKROPE_ZERO;
    /** K and V only: content of vkrope_call::second; requires the number of heads, at most 65535.
     */
    vkrope_second_of second_of VKROPE_ZERO;
    /** Element type of the second destination: f32, f16 or bf16. */
    vkrope_element second VKROPE_ZERO;
} vkrope_tensor_info;

/** Properties that are fixed when a kernel is created; everything else is per call. Setting a field
 * that has no effect on this kernel is an error, for example the type of an absent tensor, or
 * sections without VKROPE_POSITIONS_AXIS_IDS. vkrope_get_kernel_info fills this struct from a
 * rotation. */
typedef struct vkrope_kernel_info {
    /** Pairing of the input; VKROPE_PAIRING_NONE is an error unless nothing rotates. */
    vkrope_pairing pairing VKROPE_ZERO;
    /** Rotated channels in all windows: even, 2 to head_dim. 0: nothing rotates, as in a layer
     * without RoPE. The kernel then applies the other ops, converts, quantises and stores.
     * `pairing`, `angles`, `positions` and every other field of a rotation, here and in
     * vkrope_call, must have their defaults. */
    uint32_t rotary_dim VKROPE_ZERO;
    /** Indexed by VKROPE_Q, VKROPE_K, VKROPE_V. V is never rotated: it is copied together with K,
     * and stored as `out`. */
    vkrope_tensor_info tensor[VKROPE_TENSORS] VKROPE_ZERO;
    /** vkrope_angle_table_layout::source of the table that each call names. VKROPE_ANGLES_AUTOMATIC
     * is an error here unless nothing rotates: the choice depends on max_position, an argument of
     * vkrope_plan_angles. */
    vkrope_angle_source angles VKROPE_ZERO;
    vkrope_position_source positions VKROPE_ZERO; /**< source of the position of a token */
    vkrope_mapping mapping VKROPE_ZERO;           /**< distribution of work over invocations */
    vkrope_tuning tuning VKROPE_ZERO;             /**< the same, in detail, for one device */
    /** Pairing of the output; a different one requires out-of-place calls; VKROPE_PAIRING_NONE:
     * same as `pairing`. */
    vkrope_pairing pairing_out VKROPE_ZERO;
    /** Rows of K and V go to the slots of vkrope_call::paged_cache. */
    VkBool32 scatter_kv VKROPE_ZERO;
    /** Rows of K and V come from the slots of vkrope_call::paged_cache, so that keys in a cache
     * move; requires K. Such a kernel, like every kernel that reads a quantised type or undoes a
     * Hadamard transform, has no Q and no second destinations. In these kernels, a row of a cache
     * that nothing changes keeps its bytes: its type, transform, kind of scales and pairing stay,
     * it has no other op, and it does not rotate: as V, with rotary_dim 0, at a position out of
     * range, or, without phases and cos_sin_cache, at position 0 with a factor of 1 or
     * VKROPE_GAIN_OMIT. Without source_mapping, such a row in place is not accessed. */
    VkBool32 gather_kv VKROPE_ZERO;
    /** Windows of a row, ascending and without overlap; their rotary_dims add up to rotary_dim: 2-D
     * vision RoPE. Pairs of the angle table are numbered window after window. All zero: one
     * window. */
    vkrope_window windows[VKROPE_MAX_WINDOWS] VKROPE_ZERO;
    /** Required for VKROPE_POSITIONS_AXIS_IDS, else absent. */
    vkrope_sections sections VKROPE_ZERO;
    /** vkrope_angle_table_layout::phase of the layout that each call names. */
    VkBool32 phase VKROPE_ZERO;
    /** vkrope_angle_table_layout::head_groups of the layout: 1 to 65535, and above 1 only with
     * computed angles; 0: 1. Heads of Q and of K are divided into that number of groups of
     * consecutive heads, each with its own frequencies; V has no groups. */
    uint32_t head_groups VKROPE_ZERO;
    /** VKROPE_ANGLES_COS_SIN_CACHE: element type of cos and sin. */
    vkrope_element table VKROPE_ZERO;
    /** cos_sin_cache: vkrope_angle_table_layout::channel_angles; one window. */
    VkBool32 channel_angles VKROPE_ZERO;
    vkrope_conversion conversion VKROPE_ZERO; /**< of f16; a kernel without f16 accepts any */
    /** Tokens from vkrope_call::first_set_tokens on use a second set of all weights, biases and
     * given scales, with the same shapes, for text and image tokens of a block with two streams. */
    VkBool32 two_parameter_sets VKROPE_ZERO;
    /** Calls have vkrope_call::token_count: the device must bind one more storage buffer. Not with
     * two_parameter_sets. */
    VkBool32 token_count VKROPE_ZERO;
} vkrope_kernel_info;

/** The pipelines of one kind of rotation. Immutable: any number of threads may record with it, each
 * into its own command buffer. */
typedef struct vkrope_kernel vkrope_kernel;

/**
 * Compiles every pipeline that vkrope_record may choose, at most 20. Thread-safe unless the
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

/** Destroys a kernel. No command buffer that uses it may be pending or be submitted afterwards. */
VKROPE_API void vkrope_kernel_destroy(vkrope_kernel* kernel);

/**
 * Returns whether one kernel serves both: all fields are equal, where a field that is 0 has its
 * default and every VkBool32 that is not 0 is true. An engine that makes the info of each layer
 * finds with it the kernel of an earlier layer. False for a null pointer. Thread-safe.
 */
VKROPE_API VkBool32 vkrope_kernel_info_equal(const vkrope_kernel_info* a,
                                             const vkrope_kernel_info* b);

/** Returns a hash of an info, the same for equal ones, for maps from infos to kernels. It may
 * differ between versions. 0 for a null pointer. Thread-safe. */
VKROPE_API uint64_t vkrope_kernel_info_hash(const vkrope_kernel_info* info);

/** Descriptor sets for devices without push descriptors. Belongs to one thread at a time: create
 * one per thread and frame. */
typedef struct vkrope_arena vkrope_arena;

/**
 * Creates descriptor sets for `calls` calls of vkrope_record on a device without push descriptors;
 * create one arena per thread and frame. A call takes one set per dispatch, see
 * vkrope_get_dispatches. The arena works with every kernel and position kernel of the same device.
 * If the device binds fewer than 24 storage buffers per stage
 * (maxPerStageDescriptorStorageBuffers), a kernel with vkrope_norm::weight_bound may need an arena
 * created with an equal vkrope_kernel_info, below 21 one with second destinations, and below 19 one
 * with made scales. Below 16, this applies to every kernel with vkrope_ops, and below 12 to every
 * kernel. vkrope_record rejects an arena that does not fit.
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

/** Makes all sets available again. Command buffers recorded with the arena must not be pending and
 * must not be submitted afterwards. Externally synchronised. Null is ignored. */
VKROPE_API void vkrope_arena_reset(vkrope_arena* arena);

/** Destroys the arena, under the same conditions as vkrope_arena_reset. */
VKROPE_API void vkrope_arena_destroy(vkrope_arena* arena);

/* ---- call: recorded into the application's command buffer ---- */

/** Stride of an axis whose steps all read the same row: vkrope_tensor::head_stride of an input,
 * vkrope_positions::batch_stride and axis_stride. A stride of 0 does not broadcast: it means
 * packed. */
#define VKROPE_BROADCAST INT64_MIN

/** Location of a tensor's rows. Strides are in elements, not bytes; they are multiples of
 * vkrope_block_channels. A stride of 0 means packed as [batch, tokens, heads, head_dim]. */
typedef struct vkrope_tensor {
    /** Buffer, offset and range of the tensor in bytes; VK_WHOLE_SIZE is not allowed. */
    VkDescriptorBufferInfo where VKROPE_ZERO;
    uint32_t heads VKROPE_ZERO;       /**< 0: the tensor is absent from the call */
    int64_t token_stride VKROPE_ZERO; /**< from one token to the next */
    int64_t head_stride VKROPE_ZERO;  /**< from one head to the next */
    int64_t batch_stride VKROPE_ZERO; /**< from one sequence to the next */
    /** Second head axis, as in QKV of [tokens, groups, q_per_group + 2, head_dim]: `heads` is the
     * total, in groups of heads_per_group heads that are group_stride elements apart. 0: one
     * group. */
    uint32_t heads_per_group VKROPE_ZERO;
    /** From one group to the next; 0: packed, heads_per_group * head_stride. */
    int64_t group_stride VKROPE_ZERO;
    /** Size of the whole buffer in bytes; 0: unknown. Needed only if 16-bit rows end in the middle
     * of a word that `range` does not cover: the shader accesses whole words, so the buffer must
     * contain this word. */
    VkDeviceSize buffer_size VKROPE_ZERO;
} vkrope_tensor;

/**
 * Paged cache: destination rows of out[VKROPE_K] and out[VKROPE_V], one per token, with scatter_kv,
 * and source rows of in[VKROPE_K] and in[VKROPE_V] with gather_kv. The number of pages follows from
 * where.range (of the smallest destination, or source, of a call; with slots of V's own, K and V
 * each have theirs):
 *
 *     [slots, heads, head_dim]              page_size 1
 *     [pages, page_size, heads, head_dim]   packed, the default
 *     [pages, heads, page_size, head_dim]   row_stride head_dim,
 *                                           head_stride page_size * head_dim,
 *                                           page_stride heads * page_size * head_dim
 *     [pages, heads, page_size, 2 * head_dim]
 *                                           K and V side by side: out[VKROPE_K] and
 *                                           out[VKROPE_V] in one buffer, out[VKROPE_V].where
 *                                           head_dim elements further; the strides of the
 *                                           layout above, times 2
 *
 * Rows without a token keep their bits. If two tokens have the same slot, its content is undefined.
 * So is a row whose source is another token's destination: such moves have to be calls of their
 * own, with a barrier between them.
 */
typedef struct vkrope_paged_cache {
    /** int32 or int64 [batch, tokens]: page * page_size + row. -1 skips the token. Any other value
     * outside the cache skips it and increments vkrope_call::out_of_range. Offset and range must be
     * multiples of 4. */
    VkDescriptorBufferInfo slot_mapping VKROPE_ZERO;
    /** With gather_kv: slots that are read, of the same type and strides as slot_mapping. Not set,
     * with scatter_kv: slot_mapping, so that rows stay where they are. */
    VkDescriptorBufferInfo source_mapping VKROPE_ZERO;
    /** Optional: slots of V where they are not those of K, for caches whose pages differ. V then
     * has its own dispatch, and its own number of pages. A slot outside V's cache is counted, too,
     * if the token's position is covered. Requires slot_mapping, and K and V in the call. */
    VkDescriptorBufferInfo v_slot_mapping VKROPE_ZERO;
    /** Optional: as v_slot_mapping, of source_mapping, which it requires. */
    VkDescriptorBufferInfo v_source_mapping VKROPE_ZERO;
    VkBool32 int64 VKROPE_ZERO; /**< all four mappings are int64 */
    /** Rows per page, 1 to 2^31; 0: 1. With 1, a page_stride (if 0: row_stride) other than packed
     * is an error, because page_size may have been forgotten. For single rows with gaps, set
     * row_stride and page_stride to the same value. */
    uint32_t page_size VKROPE_ZERO;
    /** Elements from one page to the next, in all caches; 0: packed. K and V may be parts of one
     * row: of MLA's [512 | 64] V is the first part, K the second, and both strides of one-row pages
     * are 576. Of two caches that are not packed, with rows of different lengths, V needs its own
     * call. token_stride and batch_stride of tensors in a cache must be 0. */
    int64_t page_stride VKROPE_ZERO;
    int64_t row_stride VKROPE_ZERO;   /**< elements between rows, in all caches; 0: packed */
    int64_t batch_stride VKROPE_ZERO; /**< slots from one sequence to the next; 0: packed */
} vkrope_paged_cache;

/** Positions of the tokens, see vkrope_position_source. If the angle source does not cover a
 * position on any axis, or an int64 id does not fit in int32, the rows of the token stay unrotated
 * and vkrope_call::out_of_range is incremented. */
typedef struct vkrope_positions {
    /** Implicit: position of token 0. The last position must fit in int32. A call that rotates a
     * position that the table does not cover is an error, unless it has vkrope_call::out_of_range.
     */
    int32_t first VKROPE_ZERO;
    /** ids: int32 or int64 [axes, batch, tokens]; offset and range must be multiples of 4. */
    VkDescriptorBufferInfo ids VKROPE_ZERO;
    VkBool32 int64 VKROPE_ZERO; /**< ids are int64 */
    /** Ids from one sequence to the next; 0: packed, tokens * token_stride; VKROPE_BROADCAST: all
     * sequences share one row. Implicit: positions from token 0 of one sequence to token 0 of the
     * next; VKROPE_BROADCAST: every sequence starts at `first`; 0 is an error if batch > 1. */
    int64_t batch_stride VKROPE_ZERO;
    /** Ids from one axis to the next; 0: packed, after the rows of all sequences; VKROPE_BROADCAST:
     * all axes share one row. */
    int64_t axis_stride VKROPE_ZERO;
    int64_t token_stride VKROPE_ZERO; /**< ids from one token to the next; 0: packed, 1 */
} vkrope_positions;

/** Angle table of a call. */
typedef struct vkrope_angles {
    /** Read during the call only; content from vkrope_fill_angles, except a cos_sin_cache. */
    const struct vkrope_angle_table_layout* layout VKROPE_ZERO;
    /** Textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL when the commands execute. */
    VkImageView view VKROPE_ZERO;
    /** direct_buffer: (cos, sin) pairs; cos_sin_cache: cos. Offset must be a multiple of 4.
     * computed: a uniform buffer; offset must be a multiple of minUniformBufferOffsetAlignment. */
    VkDescriptorBufferInfo buffer VKROPE_ZERO;
    /** cos_sin_cache: sin; offset must be a multiple of 4. */
    VkDescriptorBufferInfo sin VKROPE_ZERO;
} vkrope_angles;

/** One rotation of Q, K or both, optionally with a copy of V, or the same ops without a rotation.
 * Input and output of a tensor must be the same bytes (in place) or disjoint. Source and
 * destination of moved keys may be the same cache. Setting a field that
 * the kernel does not use is an error that names it: ids for a kernel with implicit positions,
 * parameters for a kernel without weights, rows for a tensor without heads. */
typedef struct vkrope_call {
    uint32_t batch VKROPE_ZERO;  /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO; /**< tokens per sequence; 0 is valid and records nothing */
    /** Indexed by VKROPE_Q, VKROPE_K, VKROPE_V; heads 0: absent. V is copied, and converted if
     * vkrope_tensor_info::in and out differ; in place, nothing is copied. A V with the heads,
     * head_dim and strides of K, blocks of as many channels, and K's slots shares K's dispatch; any
     * other V has its own. */
    vkrope_tensor in[VKROPE_TENSORS] VKROPE_ZERO;
    vkrope_tensor out[VKROPE_TENSORS] VKROPE_ZERO; /**< may equal `in`: in place */
    vkrope_positions positions VKROPE_ZERO;        /**< positions of the tokens */
    vkrope_angles angles VKROPE_ZERO;              /**< angle table */
    vkrope_direction direction VKROPE_ZERO;        /**< forward or inverse */
    vkrope_gain gain VKROPE_ZERO;                  /**< treatment of the attention factor */
    vkrope_paged_cache paged_cache VKROPE_ZERO;    /**< with scatter_kv or gather_kv */
    /** With vkrope_kernel_info::token_count: uint32, the tokens of each sequence when the commands
     * execute, 0 to `tokens`, which is then at most 2^31: one recording serves steps of any size.
     * Nothing of the tokens after them is read, written or counted as out of range. A larger number
     * counts as `tokens`, and increments out_of_range once. The offset must be a multiple of 16 and
     * of the device's minStorageBufferOffsetAlignment; one of 256 always is. */
    VkDescriptorBufferInfo token_count VKROPE_ZERO;
    /** Optional uint32 counter: incremented for each token whose position the table does not cover
     * (its rows stay unrotated) or whose slot is outside the cache (its K and V are not stored),
     * and once more for a slot of V's own (vkrope_paged_cache::v_slot_mapping).
     * A call that records nothing counts nothing. The library never clears it. Setting this field
     * is an error if nothing can be counted: with computed angles, which cover every implicit
     * position and every int32 id, no token_count, and no slots, because the kernel has neither
     * scatter_kv nor gather_kv, or the call neither K nor V. */
    VkDescriptorBufferInfo out_of_range VKROPE_ZERO;
    /** Weights, biases and scales of the kernel's vkrope_tensor_info::ops, as
     * vkrope_plan_parameters places them. Offset must be a multiple of 16; range at least
     * vkrope_parameter_layout::bytes, or twice that with vkrope_kernel_info::two_parameter_sets,
     * whose second set follows the first. */
    VkDescriptorBufferInfo parameters VKROPE_ZERO;
    /** With vkrope_kernel_info::two_parameter_sets: tokens of each sequence that use the first set,
     * 1 to tokens - 1; otherwise it must be 0. */
    uint32_t first_set_tokens VKROPE_ZERO;
    /** With vkrope_ops::scale_call: multiplies Q; finite, not 0; otherwise must be 1; 0: 1. */
    float q_scale VKROPE_ZERO;
    /** With vkrope_ops::scale_tokens of the tensor: f32 [batch, tokens], packed. Offset and range
     * must be multiples of 4. */
    VkDescriptorBufferInfo scale_tokens[VKROPE_TENSORS] VKROPE_ZERO;
    /** With made scales of the tensor: receives f32 [batch, tokens, heads], packed, or with
     * scatter_kv one scale for each row of the cache, see vkrope_scale_layout; or bytes, see
     * vkrope_ops::scale_type. The offset must be a multiple of 4, and the range whole words; it may
     * not overlap another buffer of the call, except that the cache of scales_in may be the same.
     */
    VkDescriptorBufferInfo scales_out[VKROPE_TENSORS] VKROPE_ZERO;
    /** With vkrope_ops::scales_in of the tensor: scales of the rows that are read, in the same
     * layout and format as scales_out, by source slot with gather_kv. If the rows are in place or
     * move within a cache, and the output has made scales, it must be scales_out. */
    VkDescriptorBufferInfo scales_in[VKROPE_TENSORS] VKROPE_ZERO;
    /** With vkrope_tensor_info::second_of of the tensor: receives the rows of all tokens, those
     * without a slot too, as [batch, tokens, heads, head_dim], packed. The offset must be a
     * multiple of 256, the range at least the bytes of the rows, in whole words of 4 bytes; the
     * rows may not overlap another buffer of the call. */
    VkDescriptorBufferInfo second[VKROPE_TENSORS] VKROPE_ZERO;
    /** With vkrope_norm::weight_bound of the tensor: its weight, of type vkrope_norm::weight_type,
     * [channels that the norm takes], or [heads, channels] with VKROPE_PARAMETER_HEAD_CHANNEL,
     * packed. The offset must be a multiple of 16 and of the device's
     * minStorageBufferOffsetAlignment, the range at least the bytes of the weight, in whole words
     * of 4 bytes. */
    VkDescriptorBufferInfo norm_weight[VKROPE_TENSORS] VKROPE_ZERO;
} vkrope_call;

/**
 * Computes the number of dispatches that vkrope_record records for a call, which is also the number
 * of sets that it takes from an arena. It is 0 if there is nothing to do: no tokens, or only
 * tensors in place that neither a rotation nor an op changes and that have no second destination.
 * It is above 1 if
 *
 * - the tokens exceed the workgroups of a dispatch,
 * - the device binds too few storage buffers for Q, K and V together,
 * - a tensor or cache exceeds the range that the device binds at once,
 * - V's layout differs from K's: heads, strides, or the channels of a block, as of a K in q8_0
 *   beside a V in f16; or V has slots of its own (vkrope_paged_cache::v_slot_mapping),
 * - K or V has a second destination, and the device binds too few storage buffers for it, too,
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
    /** vkrope_call::in, ids and an angle table in a buffer. */
    VkAccessFlags input_access VKROPE_ZERO;
    VkAccessFlags texture_access VKROPE_ZERO; /**< an angle table in a texture */
    /** vkrope_call::out, second, scales_out and out_of_range, which atomics also read. */
    VkAccessFlags output_access VKROPE_ZERO;
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
 * vkrope_get_boundary returns the stages and accesses for barriers. Buffers need
 * VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, an angle table vkrope_angle_table_layout::usage. The caller
 * orders the rotation against earlier and later commands, because the library inserts a barrier
 * only between two dispatches of this call whose bound ranges overlap and of which one writes. A
 * call owns the whole 4-byte words of its tensors. A word shared with neighbouring data is read and
 * written atomically, and barriers of the caller must cover all of it.
 *
 * A dispatch takes 4 Vulkan calls with push descriptors (push, bind pipeline, push constants,
 * dispatch) or 5 with an arena (update and bind a set instead of push), and the whole call 2 more
 * with VKROPE_DEVICE_FEATURE_DEBUG_UTILS. Binds a compute pipeline and descriptor set 0 and pushes
 * constants, so the caller binds its compute pipeline and all its compute sets again, and pushes
 * its constants again. On error nothing has been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 *                  synchronised
 * @param kernel    any number of threads may record with one kernel at a time
 * @param call      the rotation
 * @param arena     null with push descriptors; otherwise an arena for this kernel, externally
 *                  synchronised, with at least vkrope_get_dispatches sets left
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_NOT_SUPPORTED for an operation that this version does not support;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for buffers that the device cannot bind or address, and for
 *         an arena without enough sets left
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_record(VkCommandBuffer commands,
                                                        const vkrope_kernel* kernel,
                                                        const vkrope_call* call,
                                                        vkrope_arena* arena, vkrope_error* error);

/* ---- rotation: RoPE parameters and their angle table; needs no device. Thread-safe. ---- */

/** Formula of the factor that multiplies the query of a token after the rotation. p is the token's
 * position, counted from 0. */
typedef enum vkrope_query_scaling VKROPE_UINT32 {
    VKROPE_QUERY_SCALING_NONE = 0, /**< 1 */
    /** ln(p + 1) / ln(length) if p + 1 > length, else 1; length is the training length.
     * use_logn_attn of Qwen's modeling_qwen.py; logn_scaling of TensorRT-LLM. */
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
    double beta VKROPE_ZERO;               /**< llama4, ministral3: finite and at least 0; else 0 */
} vkrope_query_scale;

/** Ops that a model applies to Q, K and V around the rotation, as far as its file describes them:
 * norms, clip, and the scale of the queries by position. A parameter shape other than none means
 * that the model has such a weight or bias. Biases of the projections are not included. */
typedef struct vkrope_model_ops {
    /** For vkrope_tensor_info::ops, indexed by VKROPE_Q, VKROPE_K, VKROPE_V. */
    vkrope_ops tensor[VKROPE_TENSORS] VKROPE_ZERO;
    /** VK_TRUE: the norms are known, and a norm of kind none means that the model has none there.
     * VK_FALSE: the model may have other norms. */
    VkBool32 norms_known VKROPE_ZERO;
    /** Scale of the queries; if it has a kind, tensor[VKROPE_Q].scale_tokens is true. */
    vkrope_query_scale query_scale VKROPE_ZERO;
    uint32_t q_heads VKROPE_ZERO; /**< query heads of a layer; 0: unknown */
    /** Key heads of a layer, and value heads; of latent attention 1: its row; 0: unknown. */
    uint32_t k_heads VKROPE_ZERO;
} vkrope_model_ops;

/** RoPE parameters of a model or of one of its layer types: a view, whose arrays and strings belong
 * to its creator. Functions that take it read them during the call only. */
typedef struct vkrope_rope_params {
    vkrope_pairing pairing VKROPE_ZERO; /**< channels that form a pair */
    /** Channels per head; for latent attention (MLA): only the rotated ones. */
    uint32_t head_dim VKROPE_ZERO;
    uint32_t rotary_dim VKROPE_ZERO;      /**< rotated channels: even, 2 to head_dim */
    uint32_t q_rotary_offset VKROPE_ZERO; /**< first rotated channel of a query row */
    uint32_t k_rotary_offset VKROPE_ZERO; /**< first rotated channel of a key row */
    /** A layer without RoPE: only head_dim, `ops` and, for latent attention, the offsets are read.
     * There the offsets are those of the head_dim channels that follow the others of a row. */
    VkBool32 no_rope VKROPE_ZERO;
    /** Radians per position, from any formula: [rotary_dim / 2]; with VKROPE_SECTIONS_SUM [axes,
     * rotary_dim / 2]; with head_groups above 1 [head_groups, ...] of these. Without phases they
     * cannot all be 0, because nothing would rotate. */
    const double* inv_freq VKROPE_ZERO;
    size_t inv_freq_count VKROPE_ZERO; /**< numbers in inv_freq */
    /** Multiplies cos and sin once, in the angle table; 2^-64 to 2^64; 0: 1. */
    double attention_factor VKROPE_ZERO;
    /** Factor for the caller's softmax scale; never applied here; 0: 1. */
    double softmax_scale VKROPE_ZERO;
    uint64_t max_position VKROPE_ZERO; /**< positions that the model was trained for; 0: unknown */
    /** Name of the scaling in the model's file; null: "default". */
    const char* rope_type VKROPE_ZERO;
    /** [warning_count] values that were ignored or assumed while reading the model. */
    const char* const* warnings VKROPE_ZERO;
    size_t warning_count VKROPE_ZERO;     /**< strings in warnings */
    vkrope_sections sections VKROPE_ZERO; /**< all zero: one position per token */
    /** Longest sequence that these frequencies are valid for, if the scaling depends on the length.
     * A longer sequence needs new frequencies and a new table; the old ones stay valid for
     * shorter sequences. 0: there is no upper limit, and the frequencies are valid for sequences
     * of at least the length that they were computed for. */
    uint64_t longest_seq_len VKROPE_ZERO;
    /** Precision of the angles; float32 requires a direct table. */
    vkrope_angle_precision precision VKROPE_ZERO;
    /** The unscaled frequencies are base^(-2j / rotary_dim); 0: unknown, or another formula. */
    double base VKROPE_ZERO;
    /** [head_groups, rotary_dim / 2] radians that are added to the angle of each pair: angle =
     * position * inv_freq + phase. Finite, of magnitude below 2048; null: none. Every source adds
     * them as multiples of 2^-64 turn, so that error bounds do not change. */
    const double* phase VKROPE_ZERO;
    size_t phase_count VKROPE_ZERO; /**< numbers in phase */
    /** Number of groups of consecutive heads, each with its own frequencies (LTX-2, Mochi,
     * RoPE-ViT), 1 to 65535. 1: all heads share them. A number above 1 requires
     * VKROPE_ANGLES_COMPUTED, and heads of Q and K that are multiples of the number; 0: 1. */
    uint32_t head_groups VKROPE_ZERO;
    /** Windows of a row, as in vkrope_kernel_info::windows: pairs are formed within each (Gemma 4's
     * vision tower). Their offsets count from the rotary offset, their rotary_dims add up to
     * rotary_dim, and inv_freq and phase number the pairs window after window. All zero: one
     * window. */
    vkrope_window windows[VKROPE_MAX_WINDOWS] VKROPE_ZERO;
    /** Other ops of the layer on Q, K and V; a rotation alone does not apply them. */
    vkrope_model_ops ops VKROPE_ZERO;
} vkrope_rope_params;

/**
 * Computes inv_freq[j] = base^(-2j / rotary_dim), radians per position, for j below rotary_dim / 2.
 *
 * @param base        finite and above 0
 * @param rotary_dim  channels: even, 2 to VKROPE_MAX_HEAD_DIM
 * @param inv_freq    receives rotary_dim / 2 numbers
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a base or rotary_dim outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_default_inv_freq(double base, uint32_t rotary_dim,
                                                                  double* inv_freq,
                                                                  vkrope_error* error);

/** Layout of an angle table. The caller creates the image or buffer; vkrope_fill_angles writes its
 * content. Every function that takes a layout refuses one that neither vkrope_plan_angles nor
 * vkrope_plan_cos_sin_cache can have made, and names the field. */
typedef struct vkrope_angle_table_layout {
    vkrope_angle_source source VKROPE_ZERO; /**< never automatic */
    /** Textures: VK_FORMAT_R32G32B32A32_SFLOAT; linear memory is row-major. */
    VkFormat format VKROPE_ZERO;
    VkExtent2D extent VKROPE_ZERO; /**< textures: size in texels */
    /** VkImageUsageFlags of a texture or VkBufferUsageFlags of a buffer, without transfer bits. */
    VkFlags usage VKROPE_ZERO;
    size_t bytes VKROPE_ZERO;   /**< size of the content */
    uint32_t pairs VKROPE_ZERO; /**< rotary_dim / 2 */
    uint32_t rows VKROPE_ZERO;  /**< covers positions with |position| < rows */
    /** Textures: row r starts at texel (row_texels * (r >> fold_log2), r & ((1 << fold_log2) - 1)).
     * Direct: row r is position r. Factored: rows 0 to ceil(rows / 2048) - 1 are the multiples of
     * 2048, with a factor of 1; the rows after them are the positions below 2048, with the
     * attention factor. */
    uint32_t fold_log2 VKROPE_ZERO;
    uint32_t row_texels VKROPE_ZERO; /**< textures: texels per row; a texel holds two pairs */
    /** Factor that the table contains; finite and above 0; 0: 1. */
    double attention_factor VKROPE_ZERO;
    /** Sections of the rotation; vkrope_record rejects a kernel created for other sections. A
     * cos_sin_cache has none. */
    vkrope_sections sections VKROPE_ZERO;
    VkBool32 phase VKROPE_ZERO;         /**< each pair has a phase: vkrope_rope_params::phase */
    uint32_t head_groups VKROPE_ZERO;   /**< groups of heads, each with its own frequencies; 0: 1 */
    vkrope_element element VKROPE_ZERO; /**< cos_sin_cache: element type of cos and sin */
    /** cos_sin_cache: elements from one row to the next; only the first `pairs` of a row are used,
     * or 2 * pairs with channel_angles. */
    uint32_t row_stride VKROPE_ZERO;
    /** cos_sin_cache: each channel has its own cos and sin, in the order of the rotated channels:
     * y0 = x0 c[channel 0] - x1 s[channel 0], y1 = x1 c[channel 1] + x0 s[channel 1]. */
    VkBool32 channel_angles VKROPE_ZERO;
} vkrope_angle_table_layout;

/**
 * Plans a table that covers every position with |position| < max_position. Computed angles cover
 * every int32 position, whatever max_position is. To cover more positions later, plan and fill a
 * new table.
 *
 * With 64 pairs: VKROPE_ANGLES_FACTORED_TEXTURE takes 1.03 MiB for 131 072 positions and 2 MiB for
 * 2^22, computed angles take 544 bytes, and direct tables 64 MiB for 131 072.
 *
 * @param rotation        rotation of the table
 * @param source          kind of table; automatic: layout->source is the choice
 * @param max_position    1 to 2^31; factored tables: to 2^22; computed angles: to 2^31 + 1
 * @param max_image_side  maxImageDimension2D of the device; ignored for buffers
 * @param layout          receives the result
 * @param error           optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for numbers outside their range, including those of the
 *         rotation; VKROPE_ERROR_LIMIT_EXCEEDED for a table that does not fit
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_angles(
    const vkrope_rope_params* rotation, vkrope_angle_source source, uint64_t max_position,
    uint32_t max_image_side, vkrope_angle_table_layout* layout, vkrope_error* error);

/**
 * Returns the source that VKROPE_ANGLES_AUTOMATIC selects, the same on every device. float32
 * precision requires a direct table.
 *
 * @param precision     vkrope_rope_params::precision
 * @param max_position  as vkrope_plan_angles
 */
VKROPE_API vkrope_angle_source vkrope_default_angles(vkrope_angle_precision precision,
                                                     uint64_t max_position);

/**
 * Returns B of the error bound in vkrope_angle_source; host/guide/accuracy.md derives it. For
 * VKROPE_ANGLE_PRECISION_FLOAT32 the bound is relative to the float32 angle; add 1.5 if the factor
 * is not 1. For a gain other than VKROPE_GAIN_APPLY add 2 if the factor is not 1.
 *
 * @param source            not automatic or cos_sin_cache
 * @param attention_factor  attention factor of the rotation
 */
VKROPE_API double vkrope_error_bound(vkrope_angle_source source, double attention_factor);

/**
 * Plans the layout of the caller's cos and sin buffers, [rows, row_stride] each, with any values,
 * indexed by position. Covers positions 0 to rows - 1. Full-width tables, whose second half repeats
 * the first, have a row_stride of rotary_dim.
 *
 * @param pairs           rotary_dim / 2
 * @param rows            1 to 2^31
 * @param row_stride      elements; at least `pairs`; 0: packed; 16-bit rows may start in the middle
 *                        of a word
 * @param element         element type of cos and sin
 * @param channel_angles  full-width tables whose halves may differ (V-JEPA 2, tables of Hugging
 *                        Face transformers as they are): a row has cos and sin of each rotated
 *                        channel, and row_stride is at least 2 * pairs. The gradient transposes the
 *                        matrix of a pair.
 * @param layout          receives the result; `bytes` is the size of cos and of sin each, in whole
 *                        words
 * @param error           optional
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
 * @param layout    from vkrope_plan_angles for this rotation
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

/** Division of a table into lines: texel lines of a texture, positions of a buffer. Computed angles
 * are one line. */
typedef struct vkrope_angle_lines {
    uint32_t count VKROPE_ZERO; /**< number of lines */
    size_t bytes VKROPE_ZERO;   /**< bytes per line */
} vkrope_angle_lines;

/**
 * Returns how the table of `layout` is divided into lines, for vkrope_fill_angle_lines.
 *
 * @param layout  from vkrope_plan_angles
 * @param lines   receives the result
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_lines(
    const vkrope_angle_table_layout* layout, vkrope_angle_lines* lines, vkrope_error* error);

/**
 * Writes `lines` lines of the table, starting at `first_line`, for staging memory smaller than the
 * table. Otherwise does the same as vkrope_fill_angles.
 *
 * @param rotation    rotation of the table
 * @param layout      from vkrope_plan_angles for this rotation
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

/**
 * Derives the vkrope_kernel_info for vkrope_kernel_create from a rotation: pairing, channels,
 * offsets, angle source and sections, and the model's other ops, vkrope_rope_params::ops, with
 * their head counts. Q and K have rows of vkrope_row_channels, V those of K. A norm over a part
 * that a row does not have is left out: the norm of a latent row, where k_rotary_offset says that K
 * is its rotated channels alone or an assembled key. If there are ops, vkrope_call::parameters
 * needs the model's weights, see vkrope_plan_parameters, and vkrope_call::scale_tokens the scales
 * of vkrope_query_scales. Thread-safe.
 *
 * Change the fields that differ in your engine: `scatter_kv`, `heads` if it processes only some of
 * the heads, or `positions` for ids in a buffer. If your engine computes the model's norms and
 * scales itself, clear vkrope_tensor_info::ops. With sections, positions must stay
 * VKROPE_POSITIONS_AXIS_IDS; for text, all axes can read one row: set axis_stride to
 * VKROPE_BROADCAST.
 *
 * A layer without RoPE (vkrope_rope_params::no_rope) gets a kernel that does not rotate, with a
 * rotary_dim of 0, for its other ops, its cache and its element types: every field of a rotation
 * has its default.
 *
 * @param rotation  rotation, or a layer without RoPE
 * @param layout    from vkrope_plan_angles for this rotation, or from vkrope_plan_cos_sin_cache;
 *                  null for a layer without RoPE
 * @param q, k, v   element types of the tensors, input and output; null: the kernel does not handle
 *                  the tensor
 * @param info      receives the result. Ops of an absent tensor are left out. Positions are
 *                  VKROPE_POSITIONS_AXIS_IDS if the rotation has sections, else implicit
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for another rotation's layout, and for the layout of a
 *         layer without RoPE
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_kernel_info(const vkrope_rope_params* rotation, const vkrope_angle_table_layout* layout,
                       const vkrope_element* q, const vkrope_element* k, const vkrope_element* v,
                       vkrope_kernel_info* info, vkrope_error* error);

/**
 * Returns the axis that rotates pair `pair` of the angle table; 0 without sections and for invalid
 * sections.
 */
VKROPE_API uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair);

/**
 * Returns the number of axes whose products of position and frequency are summed in the angle of
 * one pair; 1 without sections and for invalid sections.
 */
VKROPE_API uint32_t vkrope_summed_axes(const vkrope_sections* sections);

/**
 * Returns the number of channels of a query or key row: head_dim; for latent attention, whose
 * window starts beyond head_dim, the channels up to the end of the window, as in a row of the
 * latent cache. Without RoPE the window is all of head_dim. 0 for a null rotation.
 *
 * @param rotation       a rotation, or a layer without RoPE
 * @param rotary_offset  its q_rotary_offset or k_rotary_offset
 */
VKROPE_API uint32_t vkrope_row_channels(const vkrope_rope_params* rotation, uint32_t rotary_offset);

/**
 * Returns inv_freq in turns per position, modulo one turn, as a 64-bit fixed-point fraction (units
 * of 2^-64 turn, truncated).
 *
 * @param inv_freq  radians per position; finite, |inv_freq| < 2^11
 */
VKROPE_API uint64_t vkrope_turn_fraction(double inv_freq);

/* ---- upload of an angle table ---- */

/**
 * Returns the VkImageCreateInfo for the texture of a layout, which is copied into, then
 * sampled by compute shaders of one queue family. Thread-safe.
 *
 * @param layout  from vkrope_plan_angles, of a texture
 * @param info    receives the argument for vkCreateImage
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_image_info(
    const vkrope_angle_table_layout* layout, VkImageCreateInfo* info, vkrope_error* error);

/**
 * Returns the VkImageViewCreateInfo for vkrope_angles::view. Thread-safe.
 *
 * @param layout  from vkrope_plan_angles
 * @param image   created with vkrope_get_angle_image_info
 * @param info    receives the argument for vkCreateImageView
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_angle_view_info(const vkrope_angle_table_layout* layout, VkImage image,
                           VkImageViewCreateInfo* info, vkrope_error* error);

/** Source and destination of a table upload. */
typedef struct vkrope_angle_upload {
    /** Usage VK_BUFFER_USAGE_TRANSFER_SRC_BIT; contains the output of vkrope_fill_angles. The
     * offset is a multiple of 16 for textures, of 4 for buffers; the range holds the lines. */
    VkDescriptorBufferInfo staging VKROPE_ZERO;
    VkImage image VKROPE_ZERO; /**< textures: created with vkrope_get_angle_image_info */
    /** Buffers: vkrope_angles::buffer, for the whole table. Usage vkrope_angle_table_layout::usage
     * and VK_BUFFER_USAGE_TRANSFER_DST_BIT. */
    VkDescriptorBufferInfo buffer VKROPE_ZERO;
    /** Part of the table, see vkrope_angle_lines: staging contains `lines` lines from `first_line`
     * on. The first part must be uploaded first and the last part last. 0 lines: all from
     * first_line on. */
    uint32_t first_line VKROPE_ZERO;
    uint32_t lines VKROPE_ZERO; /**< lines in staging, see first_line */
} vkrope_angle_upload;

/**
 * Records the upload of a table that vkrope_fill_angles wrote: image transitions, the copy, and a
 * barrier after which later commands of vkrope_record on the same queue may read the table. Waits
 * for no earlier reader of the image or buffer. Leaves the image in
 * VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL. Use it once per model, not per call, because it looks
 * up Vulkan functions. On error nothing has been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 *                  synchronised
 * @param device    the borrowed device
 * @param layout    not a cos_sin_cache: its content belongs to the caller
 * @param upload    source and destination
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_record_angle_upload(VkCommandBuffer commands, const vkrope_device_ref* device,
                           const vkrope_angle_table_layout* layout,
                           const vkrope_angle_upload* upload, vkrope_error* error);

/* ---- ops: weights, biases and scales in a buffer; needs no device. Thread-safe. ---- */

/** Place of a weight, bias or scale in a parameter buffer. */
typedef struct vkrope_parameter_item {
    vkrope_parameter_shape shape VKROPE_ZERO; /**< none: absent */
    uint32_t offset VKROPE_ZERO; /**< floats from the start of the buffer; a multiple of 4 */
    uint32_t count VKROPE_ZERO;  /**< floats */
    /** Number that vkrope_fill_parameters adds: vkrope_norm::weight_offset. */
    uint32_t added VKROPE_ZERO;
} vkrope_parameter_item;

/** Parameters of one tensor. */
typedef struct vkrope_tensor_parameters {
    vkrope_parameter_item bias VKROPE_ZERO;      /**< vkrope_ops::bias */
    vkrope_parameter_item weight VKROPE_ZERO;    /**< vkrope_norm::weight */
    vkrope_parameter_item norm_bias VKROPE_ZERO; /**< vkrope_norm::bias */
    /** VKROPE_STORE_SCALE_GIVEN, VKROPE_STORE_SCALE_GIVEN_HEAD: finite and not 0. */
    vkrope_parameter_item store_scale VKROPE_ZERO;
} vkrope_tensor_parameters;

/** Layout of the parameter buffer of a layer: f32 weights, biases and scales of Q, K and V. The
 * caller creates the buffer; vkrope_fill_parameters writes its content. */
typedef struct vkrope_parameter_layout {
    /** Indexed by VKROPE_Q, VKROPE_K, VKROPE_V. */
    vkrope_tensor_parameters tensor[VKROPE_TENSORS] VKROPE_ZERO;
    /** Size of a set, a multiple of 16; 0: the kernel reads no parameters. */
    size_t bytes VKROPE_ZERO;
} vkrope_parameter_layout;

/**
 * Plans the parameter buffer of a kernel: the weights, biases and scales that its
 * vkrope_tensor_info::ops name, in the order of the tensors, each at a multiple of 16 bytes. Absent
 * items have the shape none. Thread-safe.
 *
 * @param info    properties of the kernel
 * @param layout  receives the result
 * @param error   optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a shape that breaks its rules;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for more floats than a storage buffer can have
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_parameters(const vkrope_kernel_info* info,
                                                                 vkrope_parameter_layout* layout,
                                                                 vkrope_error* error);

/** A weight, bias or scale as the model stores it: `count` elements, row by row. */
typedef struct vkrope_parameter_source {
    const void* data VKROPE_ZERO;       /**< null: absent, and the other fields must be 0 */
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
    /** Indexed by VKROPE_Q, VKROPE_K, VKROPE_V. */
    vkrope_tensor_parameter_sources tensor[VKROPE_TENSORS] VKROPE_ZERO;
} vkrope_parameter_sources;

/**
 * Writes the parameter buffer of `layout`, or one of its two sets: the sources as f32, plus
 * vkrope_parameter_item::added, rounded once. Every item of the layout must have a source of the
 * same size, and all other items must have none. A store_scale multiplies before the store and must
 * be finite and not 0: engines that divide by a scale, as vLLM by its k_scale, pass the reciprocal.
 * Thread-safe.
 *
 * @param layout   from vkrope_plan_parameters; any other is refused
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

/**
 * Computes the factor of each token in double, rounded once to float, for
 * vkrope_call::scale_tokens.
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

/** Table of the factors of vkrope_query_scales, for vkrope_position_call::query_scales. Position p
 * has row (p + shift) / positions_per_row, rounded down. */
typedef struct vkrope_query_scale_layout {
    vkrope_query_scale scale VKROPE_ZERO;   /**< formula */
    uint32_t rows VKROPE_ZERO;              /**< f32 factors */
    uint32_t positions_per_row VKROPE_ZERO; /**< positions that share a factor */
    uint32_t shift VKROPE_ZERO;             /**< added to a position */
    size_t bytes VKROPE_ZERO;               /**< size of the table, 4 per row */
} vkrope_query_scale_layout;

/**
 * Plans the table of the factors of positions 0 to max_position - 1, and of the others of the last
 * row. Where the formula has steps of whole positions, as Llama 4's and Ministral 3's, a row is a
 * step: for 1 048 576 positions and a length of 8192, Llama 4 has 129 rows and Ministral 3 has 128.
 * Otherwise each position has a row. Thread-safe.
 *
 * @param scale         formula; its kind may not be none
 * @param max_position  1 to 2^31
 * @param layout        receives the layout
 * @param error         optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_plan_query_scales(const vkrope_query_scale* scale, uint64_t max_position,
                         vkrope_query_scale_layout* layout, vkrope_error* error);

/**
 * Writes the table of `layout`: the factors that vkrope_query_scales returns, in the same bits.
 * Thread-safe.
 *
 * @param layout  from vkrope_plan_query_scales; any other is refused
 * @param memory  layout->bytes bytes, aligned to 4; may be mapped device memory: it is written
 *                once, in order, and never read
 * @param bytes   size of `memory`, at least layout->bytes
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fill_query_scales(
    const vkrope_query_scale_layout* layout, void* memory, size_t bytes, vkrope_error* error);

/** Block sizes of Hadamard transforms, for vkrope_ops::hadamard. */
typedef struct vkrope_hadamard_blocks {
    uint32_t q_and_k; /**< channels; 0: none */
    uint32_t v;       /**< channels; 0: none */
} vkrope_hadamard_blocks;

/**
 * Returns the block sizes with which llama.cpp transforms Q, K and V before it stores a quantised
 * cache, as of its release b9867 (src/llama-kv-cache.cpp; ggml-org/llama.cpp#21038): for Q and K
 * the largest power of two that divides head_dim, for V 64; none if head_dim is not a multiple of
 * 64. At most 512 channels. None for the rows of latent attention (MLA): build_attn of
 * llm_graph_input_attn_k in src/llama-graph.cpp transforms nothing. Such rows are known by their
 * channels: V has 256 or more, and K only the 32 or 64 that rotate, or as many more than V; or K
 * has 576. Thread-safe.
 *
 * @param k_head_dim   head_dim of Q and K
 * @param k_quantised  VK_TRUE if the cache of K has a quantised type; then Q and K are transformed
 * @param v_head_dim   head_dim of V; 0: without V
 * @param v_quantised  VK_TRUE if the cache of V has a quantised type
 */
VKROPE_API vkrope_hadamard_blocks vkrope_hadamard_of_llama_cpp(uint32_t k_head_dim,
                                                               VkBool32 k_quantised,
                                                               uint32_t v_head_dim,
                                                               VkBool32 v_quantised);

/** Returns whether a type is quantised; only kernels that move keys read such a type. */
VKROPE_API VkBool32 vkrope_is_quantised(vkrope_element element);

/** Returns the number of channels of a block: 32 for ggml's types, 2 for VKROPE_INT4, 1 for all
 * others. */
VKROPE_API uint32_t vkrope_block_channels(vkrope_element element);

/** Returns the size in bytes of one element, or of one block. */
VKROPE_API uint32_t vkrope_element_bytes(vkrope_element element);

/* ---- step: ids, slots, factors and the number of tokens, once per step for all layers ---- */

/** Computes what the calls of all layers read from buffers. Immutable: any number of threads may
 * record with it. */
typedef struct vkrope_position_kernel vkrope_position_kernel;

/**
 * Compiles the pipelines of vkrope_record_positions. Thread-safe like vkrope_kernel_create.
 *
 * @param device  the borrowed device
 * @param kernel  receives the kernel; destroy it with vkrope_position_kernel_destroy
 * @param error   optional
 * @return errors of Vulkan. Nothing is left behind.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_position_kernel_create(
    const vkrope_device_ref* device, vkrope_position_kernel** kernel, vkrope_error* error);

/** Destroys a position kernel, under the same condition as vkrope_kernel_destroy. */
VKROPE_API void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel);

/**
 * Creates an arena like vkrope_arena_create; vkrope_record_positions takes one set for each of
 * vkrope_position_call::out, slot_mapping, scale_tokens and token_count that the call has.
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
 * Computes, once per step for all layers, int32 ids (`out`), and from block tables, lengths and a
 * table of factors what vkrope_call has of the same name: slot_mapping, scale_tokens, token_count.
 * Each of the four is optional, but one must be given. Three forms:
 *
 * - One row per sequence, no `cu_seqlens` or `query_lens`: outputs are [batch, tokens]. The
 *   position of token t of sequence b is offsets[b] + first + t, or ids[b, t] (int64), or ids[b, t]
 *   2^fraction_bits (f32: seconds, patch centres, interpolated grids).
 * - Ragged, `cu_seqlens` is [sequences + 1]: outputs are [tokens]. The position of token t of
 *   packed sequence i, cu_seqlens[i] <= t < cu_seqlens[i + 1], is offsets[i] + first + t -
 *   cu_seqlens[i]. A token of no sequence, before the first sum or not before the last, has no
 *   position. Nor has a token from the first sum on that is negative, or that the next one is
 *   below. `query_lens` [sequences] stands for the sums of its numbers, from 0. A sum that does not
 *   fit in uint32 counts as 2^32 - 1.
 * - A shard, cp_size > 1: each sequence is cut into 2 cp_size chunks of equal length. This rank has
 *   chunk cp_rank, followed by chunk 2 cp_size - 1 - cp_rank (zig-zag), as fused_rope of
 *   TransformerEngine. `tokens` counts the tokens of this rank; cu_seqlens counts those of all
 *   ranks, padded to multiples of 2 cp_size.
 *
 * An f32 id times 2^fraction_bits must be a whole number; the rotation then has frequencies times
 * 2^-fraction_bits: vkrope_scale_positions.
 *
 * The place of a token is its index in its sequence, counted over all steps; its slot follows from
 * it. Without `seq_lens` it is the position. With `seq_lens`, which count the tokens of this step
 * too, it is seq_lens[i] - query_lens[i] + t (query_lens[i]: the tokens of sequence i in this step,
 * from whichever form), and the position is place + offsets[i] + first: positions may then differ
 * from places, as after a context shift or an image, and slots do not change. In the first form a
 * sequence whose seq_lens is 0 is idle.
 *
 * The slot of place p is block_table[i, p / page_size] * page_size + p % page_size. It is -1, so
 * that nothing is stored, if that page is -1 (absent). If p is below 0 or beyond the row of the
 * table, or the page is not one of cache_pages, it is -1 and increments out_of_range.
 *
 * A token without a position, or whose position does not fit in int32 or is not a whole number, or
 * whose place is below 0 because seq_lens is below query_lens, gets the id -2^31, the slot -1 and
 * the factor 1, and increments out_of_range, once. No table covers -2^31, so vkrope_record leaves
 * the token unrotated. Computed angles cover every int32, and rotate it as position -2^31: with
 * them, this counter alone tells of such a token. A position that the table of factors does not
 * cover has the factor 1, and increments out_of_range.
 *
 * `token_count` receives the last of the sums, divided by cp_size, at most `tokens`. The sums end
 * before one that is negative, below the one before it, or with cp_size no multiple of 2 cp_size.
 * If they do, or if that number is larger than `tokens`, out_of_range is incremented, once. In a
 * call with token_count, tokens from that number on have the id 0, the slot -1 and the factor 1,
 * and are not counted. So have those of an idle sequence in every call.
 *
 * No value in a buffer causes accesses outside the buffers.
 */
typedef struct vkrope_position_call {
    uint32_t batch VKROPE_ZERO;  /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO; /**< tokens per sequence; 0 records nothing */
    int32_t first VKROPE_ZERO;   /**< added to every position */
    /** Optional: int64 or f32 [batch, tokens], instead of offsets and first. */
    VkDescriptorBufferInfo ids VKROPE_ZERO;
    VkDescriptorBufferInfo offsets VKROPE_ZERO; /**< optional: int32 or int64, one per sequence */
    /** Optional: int32 or int64, ascending from 0 to the number of tokens. */
    VkDescriptorBufferInfo cu_seqlens VKROPE_ZERO;
    /** Optional, instead of cu_seqlens: int32, tokens of each sequence in this step; 0: none. */
    VkDescriptorBufferInfo query_lens VKROPE_ZERO;
    /** Optional: int32, one per sequence: its tokens after this step. Not with ids or cp_size. */
    VkDescriptorBufferInfo seq_lens VKROPE_ZERO;
    /** Sequences in cu_seqlens or query_lens, at most 32768: each token searches them. */
    uint32_t sequences VKROPE_ZERO;
    VkBool32 offsets_int64 VKROPE_ZERO;    /**< offsets are int64 */
    VkBool32 cu_seqlens_int64 VKROPE_ZERO; /**< cu_seqlens are int64 */
    /** Number of shards; if above 1, tokens (or each sequence) is a multiple of 2; 0: 1. */
    uint32_t cp_size VKROPE_ZERO;
    uint32_t cp_rank VKROPE_ZERO;           /**< index of this shard */
    VkBool32 ids_f32 VKROPE_ZERO;           /**< ids are f32 */
    uint32_t fraction_bits VKROPE_ZERO;     /**< of f32 ids, 0 to 63 */
    VkDescriptorBufferInfo out VKROPE_ZERO; /**< optional: receives int32 ids [batch, tokens] */
    /** Optional: int32, a row of `pages` for each sequence: the page of the cache for each of its
     * pages; -1: absent. Not with f32 ids or cp_size. */
    VkDescriptorBufferInfo block_table VKROPE_ZERO;
    uint32_t pages VKROPE_ZERO;              /**< pages of a row of block_table, at least 1 */
    uint32_t block_table_stride VKROPE_ZERO; /**< from one row to the next; 0: packed, pages */
    uint32_t page_size VKROPE_ZERO;          /**< tokens per page, 1 to 2^31; 0: 1 */
    /** Pages of the cache: block_table has numbers below it. 1 to 2^31 / page_size. */
    uint32_t cache_pages VKROPE_ZERO;
    /** With block_table, and only then: receives int32 slots [batch, tokens]. */
    VkDescriptorBufferInfo slot_mapping VKROPE_ZERO;
    /** Table of factors from vkrope_fill_query_scales, and its layout, read during the call. */
    VkDescriptorBufferInfo query_scales VKROPE_ZERO;
    const vkrope_query_scale_layout* query_scale_layout VKROPE_ZERO;
    /** With query_scales, and only then: receives f32 factors [batch, tokens]. Not with f32 ids. */
    VkDescriptorBufferInfo scale_tokens VKROPE_ZERO;
    /** With cu_seqlens or query_lens: receives the number of tokens of this step, uint32. Alone it
     * excludes first, offsets, seq_lens and cp_rank, which it does not follow from. */
    VkDescriptorBufferInfo token_count VKROPE_ZERO;
    /** Optional uint32 counter of what is out of range, as described above. Never cleared. */
    VkDescriptorBufferInfo out_of_range VKROPE_ZERO;
} vkrope_position_call;

/**
 * Records one dispatch for each output. vkrope_get_boundary applies: outputs and `out_of_range` are
 * written, and overlap no other buffer of the call; the other buffers are read. The library inserts
 * a barrier only between two dispatches whose bound ranges overlap and of which one writes, as in a
 * call with out_of_range. Replaces the same state of the command buffer as vkrope_record, and
 * allocates nothing. On error nothing has been recorded. Needs a device that binds 6 storage
 * buffers in a stage (maxPerStageDescriptorStorageBuffers); 4 suffice for `out` alone, without
 * seq_lens.
 *
 * @param commands  as for vkrope_record
 * @param kernel    any number of threads may record with one kernel at a time
 * @param call      the conversion
 * @param arena     as for vkrope_record; takes one set for each output
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_LIMIT_EXCEEDED if the device cannot bind or dispatch that much, or if the
 *         arena has no set left
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_record_positions(VkCommandBuffer commands, const vkrope_position_kernel* kernel,
                        const vkrope_position_call* call, vkrope_arena* arena, vkrope_error* error);

/**
 * Writes the ids of a ragged batch. The ids of each sequence count up from its offset.
 * vkrope_record_positions does the same on the device.
 *
 * @param cu_seqlens  [sequences + 1] ascending from 0, the last is the number of tokens
 * @param sequences   number of sequences
 * @param offsets     optional, [sequences]: position of the first token of each sequence; null: 0
 * @param ids         receives [tokens]; unchanged on error
 * @param tokens      must be cu_seqlens[sequences]
 * @param error       optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id does not fit in int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_ragged_ids(const int64_t* cu_seqlens,
                                                            size_t sequences,
                                                            const int64_t* offsets, int32_t* ids,
                                                            size_t tokens, vkrope_error* error);

/* ---- model: config.json and GGUF files; not in vkrope::c_static. Thread-safe. ---- */

/** RoPE parameters of a model, read from its file. Immutable. */
typedef struct vkrope_model vkrope_model;

/** Returns the RoPE parameters, which the model owns; null for null. */
VKROPE_API const vkrope_rope_params* vkrope_model_get_params(const vkrope_model* model);

/** Destroys a model. Tables and kernels do not refer to it. */
VKROPE_API void vkrope_model_destroy(vkrope_model* model);

/** Selects one RoPE of a model that has several. */
typedef struct vkrope_model_query {
    /** One of the model's layer types, such as "full_attention" or "sliding_attention"; null: the
     * only layer type, or full attention, with a warning, if there are several. */
    const char* layer_type VKROPE_ZERO;
    /** Sequence length if the scaling needs it, at most 2^31; 0: unknown. */
    uint64_t seq_len VKROPE_ZERO;
    VkBool32 by_layer VKROPE_ZERO; /**< selects the layer `layer`; not together with layer_type */
    uint32_t layer VKROPE_ZERO;    /**< with `by_layer`: counted from 0; else it must be 0 */
    const char* tower VKROPE_ZERO; /**< "text" or "vision"; null: "text" */
    /** Replaces the pairing of the model_type, for weights that were permuted; VKROPE_PAIRING_NONE:
     * does not replace it. */
    vkrope_pairing pairing VKROPE_ZERO;
    /** Names of keys that are taken out of the file before it is read, as errors and warnings show
     * them, such as "rope_scaling.x": for keys that the model's own code does not use. A name that
     * the file does not have is VKROPE_ERROR_INVALID_ARGUMENT. */
    const char* const* ignore VKROPE_ZERO;
    size_t ignore_count VKROPE_ZERO; /**< number of names in `ignore` */
} vkrope_model_query;

/**
 * Reads the RoPE of a Hugging Face config.json.
 *
 * Reads `rope_parameters` (transformers 5; also one per layer type) and `rope_theta` with
 * `rope_scaling` (transformers 4), with the type in `rope_type` or `type`. Types: default, linear,
 * dynamic, ntk (GTE's), yarn, longrope (su), llama3, proportional, and mrope and xdrope, which have
 * positions on several axes. For a multi-modal model, reads the language model (text_config and
 * similar) or the vision tower. If layers differ and the query selects none, reads the
 * full-attention layers, or, if those have no RoPE, the layers that rotate.
 *
 * Without a model_type, `architectures` names the class.
 *
 * Also reads the params.json of Mistral's original checkpoints, which has `dim` and no model_type;
 * a file with an unknown key is VKROPE_ERROR_NOT_SUPPORTED, since other settings may be in code.
 *
 * A key that no rule reads is VKROPE_ERROR_NOT_SUPPORTED if the words of its name concern the
 * angles (rope, rotary, theta, base, interpolation ...), unless its value states nothing (null,
 * false, 0, 1, the default by name); vkrope_model_query::ignore takes such a key out of the file. A
 * key whose name concerns the scale of the scores, the choice of layers, or norms of Q and K causes
 * a warning. This includes keys of objects that are not read, unless the object describes another
 * part of the model. A list of one number per layer is read for the selected layers. Two places
 * that state different values of one fact are VKROPE_ERROR_INVALID_DATA, or a warning where the
 * model's own code says which of them it reads, or where one belongs to another kind of layer.
 *
 * Multi-head latent attention: head_dim is qk_rope_head_dim, the rotated channels. They start at
 * q_rotary_offset = qk_nope_head_dim in a query row and at k_rotary_offset = kv_lora_rank in a row
 * of the latent cache; both rows end with these channels. YaRN is DeepSeek's, which sets
 * softmax_scale. If neither the class nor `rope_interleave` determines the pairing, the query must
 * select it.
 *
 * The indexer of sparse attention (DeepSeek V3.2, GLM 5) is the layer type "indexer".
 *
 * A layer without RoPE has no_rope, no rotary_dim and no frequencies. So has a layer without rows
 * of Q and K: of linear attention, Mamba, a convolution or an MLP alone.
 *
 * vkrope_rope_params::ops describes the norms of Q, K and V in the model's class, with the eps of
 * the file or else of the class, its clamping, and its scaling of queries by position. A latent row
 * of K has a norm of its first kv_lora_rank channels, with an eps of 1e-6 whatever the file has,
 * the default of the class in transformers. vkrope_model_ops::norms_known is false, with a warning,
 * for diffusion transformers, unknown classes, classes whose versions differ, and files with a norm
 * key that the class does not have.
 *
 * An unsupported scaling type, or a model whose RoPE this library does not know, is
 * VKROPE_ERROR_NOT_SUPPORTED, and the message names it. VKROPE_ERROR_INVALID_DATA names a field
 * that is missing, of the wrong kind, out of range or contradicted by another.
 * vkrope_rope_params::warnings lists assumptions and ignored values: at most 100 warnings, and one
 * that counts the rest. A document with more than 16 MiB, 524288 values, 64 levels of nesting or 64
 * layer types is VKROPE_ERROR_INVALID_DATA; the worst accepted document takes a second or two and
 * 300 MB. Lack of memory is VKROPE_ERROR_OUT_OF_HOST_MEMORY. Exception: if memory runs out while
 * the JSON document is destroyed, the JSON library, whose destructor allocates, ends the program.
 *
 * @param json   the content of the file, UTF-8; need not be null-terminated
 * @param bytes  size of `json`
 * @param query  null: the model's only RoPE. A selection that the model does not have is
 *               VKROPE_ERROR_INVALID_ARGUMENT
 * @param model  receives the model; destroy it with vkrope_model_destroy
 * @param error  optional
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
 * general.architecture determines the pairing and the layers. The pairing is that of the Q and K
 * weights in the file: converters permute Llama's weights, so that its pairing is interleaved in a
 * GGUF file and half_split in a config.json. An unknown architecture or one without RoPE is
 * VKROPE_ERROR_NOT_SUPPORTED, and the message names it; an unknown one is read if the query has a
 * pairing. Big-endian files and version 1 are also VKROPE_ERROR_NOT_SUPPORTED.
 *
 * The first part of a split file contains its metadata and is read, with a warning that the tensors
 * of the other parts were not seen. A first part without tensors, and any other part, is
 * VKROPE_ERROR_NOT_SUPPORTED.
 *
 * Scalings: none, linear, yarn, longrope, per-pair divisors (Llama 3, Gemma 4), alpha (HunYuan).
 * vkrope_rope_params::rope_type is "default", "linear", "yarn", "longrope" or "rope_freqs". M-RoPE
 * has ggml's axes: 3, or 4 if pairs are beyond their sections. Latent attention, layers without
 * RoPE, warnings and errors are as in vkrope_model_from_hf_config; the only tower is "text".
 * rope.freq_base, rope.dimension_count and the widths of rows may be lists of one number per layer,
 * where 0 means a layer without RoPE; an additional single number must equal that of some layer. A
 * key of RoPE with the word local, sliding or swa is for the sliding layers; where it is not known
 * which these are, a query by layer is VKROPE_ERROR_INVALID_ARGUMENT.
 *
 * vkrope_rope_params::softmax_scale includes attention.scale where llama.cpp reads it, and scales
 * that its code has. A cap of the scores is a warning.
 *
 * vkrope_rope_params::ops describes the norms of Q and K that the layer has weights for, with the
 * eps of the file, and the architecture's norms without weights, its clamping, and its scaling of
 * queries by position. K's latent row has the norm attn_kv_a_norm, too. A norm that spans neither
 * one head nor all heads is left out, with a warning. norms_known is false for a layer without
 * tensors, an unknown architecture, and a file with a norm key but without norm tensors.
 *
 * Sizes in the file are not trusted; any file takes at most a second and about 20 MiB. A file that
 * exceeds one of these limits is VKROPE_ERROR_INVALID_DATA, and the message names it: 256 MiB of
 * metadata and tensor infos; 16384 keys; 131072 tensors of 4 dimensions; 65535 bytes per name, 1
 * MiB for all keys; 4194304 strings and lists inside lists; lists nested 8 deep. Real files stay
 * far below. Lists of numbers and strings of any length are skipped in one step; a list that is
 * used has at most 65536 numbers, a string at most 256 bytes.
 *
 * @param file_bytes  size of the whole file; at most 2^62
 * @param read        reads parts of the file; must not throw. Called by this function only
 * @param user        passed to `read`
 * @param query       null: the model's only RoPE. A selection that the model does not have is
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
 * Does the same as vkrope_model_from_gguf, for a regular file on disk. Also reads the tensor infos
 * of up to 1024 other parts of a split file in the same folder, with the names of llama.cpp:
 * "-00002-of-00003.gguf".
 *
 * @param path   path of the file
 * @param query  as above
 * @param model  as above
 * @param error  optional
 * @return as above; VKROPE_ERROR_INVALID_DATA if the file cannot be opened
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_model_from_gguf_file(
    const char* path, const vkrope_model_query* query, vkrope_model** model, vkrope_error* error);

/* ---- runtime: vkrope's own device; not in vkrope::c_static ----
 *
 * A device and the objects made with it belong to one thread at a time; destroy those objects
 * before the device. Functions that take a device or such an object may return errors of Vulkan:
 * VKROPE_ERROR_OUT_OF_DEVICE_MEMORY, VKROPE_ERROR_DEVICE_LOST, VKROPE_ERROR_VULKAN. Functions that
 * wait for the device may also return VKROPE_ERROR_TIMEOUT. */

/**
 * Receives a message of the loader, a layer or a driver, or of this library about its pipeline
 * cache. Called on the calling thread during functions of this library, including
 * vkrope_device_destroy; must return normally.
 *
 * @param user_data  vkrope_device_options::user_data
 * @param is_error   true for an error, false for a warning
 * @param id         identifier of the message
 * @param text       the message
 */
typedef void (*vkrope_message_callback)(void* user_data, VkBool32 is_error, const char* id,
                                        const char* text);

/** Options for opening a device. */
typedef struct vkrope_device_options {
    /** The best device if empty; digits: an index into the list of devices; 32 hex digits: a UUID;
     * else part of a name, in any case. */
    const char* select VKROPE_ZERO;
    /** null: the system's Vulkan loader, found at run time. */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr VKROPE_ZERO;
    /** Enables VK_LAYER_KHRONOS_validation with synchronisation validation and best practices.
     * Returns VKROPE_ERROR_NOT_SUPPORTED if the layer is not installed. */
    VkBool32 validation VKROPE_ZERO;
    /** Uses descriptor sets even if push descriptors are available. */
    VkBool32 no_push_descriptors VKROPE_ZERO;
    /** Optional; on_message and user_data must outlive the device. */
    vkrope_message_callback on_message VKROPE_ZERO;
    void* user_data VKROPE_ZERO; /**< passed to on_message */
    /** Longest wait for one submission; 0: 30 s, or 300 s on a CPU device, which compiles a
     * pipeline in the first submission that uses it. */
    uint64_t timeout_ns VKROPE_ZERO;
    /** Folder, in UTF-8, that keeps compiled pipelines between processes, in one file for each
     * device and driver; null: no folder. It must exist, and only users whom you trust may write to
     * it: a checksum finds damage, not malice. If a file is damaged, or cannot be read or written,
     * pipelines are compiled without it, and `on_message` receives a warning with the id
     * "vkrope-pipeline-cache". */
    const char* pipeline_cache_folder VKROPE_ZERO;
    /** Largest size of all these files together, in bytes; 0: 64 MiB. Writing a file removes the
     * oldest files; a single file above this size is neither written nor read. */
    uint64_t pipeline_cache_bytes VKROPE_ZERO;
} vkrope_device_options;

/** Properties of a physical device. Strings and limits are valid as long as the list or device that
 * they come from. */
typedef struct vkrope_device_info {
    const char* name VKROPE_ZERO;   /**< name reported by the driver */
    const char* driver VKROPE_ZERO; /**< name and version of the driver */
    const char* uuid VKROPE_ZERO;   /**< 32 hex digits */
    /** Requirements that the device lacks; empty if it is suitable. */
    const char* reason VKROPE_ZERO;
    VkPhysicalDeviceType type VKROPE_ZERO;            /**< discrete, integrated, ... */
    uint32_t api_version VKROPE_ZERO;                 /**< Vulkan version of the device */
    VkBool32 suitable VKROPE_ZERO;                    /**< VK_TRUE: it has all requirements */
    uint64_t memory_bytes VKROPE_ZERO;                /**< largest device-local heap */
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

/** Returns the devices of the list, best first, which the list owns; `count` receives their number.
 * For a null list, returns null and 0. Thread-safe. */
VKROPE_API const vkrope_device_info* vkrope_device_list_get(const vkrope_device_list* list,
                                                            uint32_t* count);

/**
 * Finds the one device that `select` names, as vkrope_device_open does. Thread-safe.
 *
 * @param devices  `count` devices, such as those from vkrope_device_list_get
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

/** Returns the properties of the device, which owns them; null for null. */
VKROPE_API const vkrope_device_info* vkrope_device_get_info(const vkrope_device* device);

/** Returns the device's handles, for vkrope_kernel_create and the caller's own Vulkan calls. The
 * device owns them; null for null. */
VKROPE_API const vkrope_device_ref* vkrope_device_get_ref(const vkrope_device* device);

/** Returns the device's queue; `family`, optional, receives its queue family index. Submit to it
 * only on the thread that the device belongs to, and not while a function of this library does.
 * Null for null. */
VKROPE_API VkQueue vkrope_device_get_queue(const vkrope_device* device, uint32_t* family);

/**
 * Records commands for vkrope_device_submit.
 *
 * @param user_data  as passed to vkrope_device_submit
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
 * vkrope_device_destroy does so too. Has no effect without a folder, if nothing was compiled since,
 * or if the driver returns no data. The file is replaced as a whole, so that any number of
 * processes may write it; the last one wins. On error the device and the old file remain usable.
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

/** Device memory for a tensor, ids or a table: a storage and uniform buffer that can be copied from
 * and to. */
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

/** Returns the whole buffer, for vkrope_tensor::where and similar fields; {VK_NULL_HANDLE, 0, 0}
 * for null. */
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

/** Returns the value for vkrope_call::angles, which the table owns; null for null. */
VKROPE_API const vkrope_angles* vkrope_angle_table_get(const vkrope_angle_table* table);

/**
 * Grows the table to `max_position`, at least doubling it if possible, so that growing step by step
 * is cheap; has no effect if the table is large enough. Existing angles keep their bits. Command
 * buffers that use the old table must have completed, and the values from vkrope_angle_table_get
 * are no longer valid. On error the table is unchanged.
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
    uint32_t batch VKROPE_ZERO;                 /**< sequences; 0: 1 */
    uint32_t tokens VKROPE_ZERO;                /**< tokens per sequence */
    uint32_t heads[VKROPE_TENSORS] VKROPE_ZERO; /**< of Q, K and V; 0: absent */
    /** 0: vkrope_row_channels of the rotation for Q and K; K's number for V. Of an absent tensor it
     * must be 0. */
    uint32_t head_dim[VKROPE_TENSORS] VKROPE_ZERO;
    vkrope_element element VKROPE_ZERO; /**< type of all tensors, input and output */
    vkrope_layout layout VKROPE_ZERO;   /**< layout of all tensors */
    /** [tokens] for all sequences, or [batch, tokens]; null: implicit. */
    const int32_t* positions VKROPE_ZERO;
    size_t position_count VKROPE_ZERO; /**< numbers in positions */
    /** Positions are [axes, batch, tokens], for the rotation's sections. 0: one position per token,
     * used on all axes. */
    uint32_t axes VKROPE_ZERO;
    int32_t first_position VKROPE_ZERO;     /**< implicit: position of token 0 of every sequence */
    vkrope_angle_source angles VKROPE_ZERO; /**< kind of table */
    vkrope_mapping mapping VKROPE_ZERO;     /**< distribution of work over invocations */
    vkrope_conversion conversion VKROPE_ZERO; /**< of f16: automatic unless element is f16 */
    /** VK_FALSE: separate input and output on the device, so that a run can be repeated. */
    VkBool32 in_place VKROPE_ZERO;
} vkrope_host_shape;

/** Rotates tensors in host memory; owns the table and buffers for one rotation and one shape. */
typedef struct vkrope_host_rotation vkrope_host_rotation;

/**
 * Fills the table, creates the buffers, and compiles pipelines that the device has not compiled
 * yet.
 *
 * @param device         a device
 * @param rotation       the rotation; not referred to afterwards
 * @param shape          the tensors
 * @param host_rotation  receives the object; destroy it with vkrope_host_rotation_destroy
 * @param error          optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field with an invalid value;
 *         VKROPE_ERROR_LIMIT_EXCEEDED for tensors or a table that are too large;
 *         VKROPE_ERROR_NOT_SUPPORTED for an operation that this version or the device does not
 *         support
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_host_rotation_create(
    vkrope_device* device, const vkrope_rope_params* rotation, const vkrope_host_shape* shape,
    vkrope_host_rotation** host_rotation, vkrope_error* error);

/** Returns the bytes of a tensor in host memory; 0 if it is absent or the pointer is null. */
VKROPE_API size_t vkrope_host_rotation_bytes(const vkrope_host_rotation* host_rotation,
                                             vkrope_tensor_index tensor);

/**
 * Copies Q, K and V to the device.
 *
 * @param host_rotation  a host rotation
 * @param q              vkrope_host_rotation_bytes of VKROPE_Q bytes; null if and only if absent
 * @param k              vkrope_host_rotation_bytes of VKROPE_K bytes; null if and only if absent
 * @param v              vkrope_host_rotation_bytes of VKROPE_V bytes; null if and only if absent
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_upload(vkrope_host_rotation* host_rotation, const void* q, const void* k,
                            const void* v, vkrope_error* error);

/** Settings that may change between runs of a vkrope_host_rotation. Positions stay in effect for
 * later runs. */
typedef struct vkrope_host_run {
    vkrope_direction direction VKROPE_ZERO; /**< forward or inverse */
    /** VK_TRUE: implicit positions start at first_position; VK_FALSE: first_position must be 0. */
    VkBool32 moves VKROPE_ZERO;
    int32_t first_position VKROPE_ZERO; /**< with `moves`: position of token 0 of every sequence */
    /** Same count and order as vkrope_host_shape::positions; null: no change. */
    const int32_t* positions VKROPE_ZERO;
    size_t position_count VKROPE_ZERO; /**< numbers in positions */
} vkrope_host_run;

/**
 * Rotates the uploaded Q and K, and copies V; in place, rotates the result of the last run. Waits
 * for the device. The table grows to cover new positions, as in decoding. The angle source, and
 * therefore the result bits, do not change.
 *
 * @param host_rotation  a host rotation
 * @param run            null: forward, at the positions of the previous run or of the shape
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
 * @param q              receives vkrope_host_rotation_bytes of VKROPE_Q bytes; null if Q is absent
 * @param k              receives vkrope_host_rotation_bytes of VKROPE_K bytes; null if K is absent
 * @param v              receives vkrope_host_rotation_bytes of VKROPE_V bytes; null if V is absent
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_host_rotation_download(
    vkrope_host_rotation* host_rotation, void* q, void* k, void* v, vkrope_error* error);

/** Destroys a host rotation. */
VKROPE_API void vkrope_host_rotation_destroy(vkrope_host_rotation* host_rotation);

/* ---- scalings: frequencies for long contexts; needs no device. Thread-safe. ---- */

/* vkrope_scale_... and vkrope_stop_slow_pairs change `count` frequencies at inv_freq (radians per
 * position) in place; on error they change nothing and return VKROPE_ERROR_INVALID_ARGUMENT with
 * the parameter, its value and its rule. `error` is optional. */

/**
 * Position interpolation: divides every frequency by `factor`. arXiv:2306.15595; "linear" in
 * Hugging Face transformers' modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param factor    finite and above 0
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a factor outside its range; nothing is changed then
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_linear(double* inv_freq, size_t count,
                                                              double factor, vkrope_error* error);

/** Parameters of Llama 3.1's scaling, named as in its configuration. */
typedef struct vkrope_llama3_scaling {
    double factor VKROPE_ZERO; /**< finite and above 0 */
    /** Above 0, at most high_freq_factor; if both are equal, the blend becomes a step, as in Llama
     * 4. */
    double low_freq_factor VKROPE_ZERO;
    double high_freq_factor VKROPE_ZERO;                 /**< finite */
    double original_max_position_embeddings VKROPE_ZERO; /**< positions; finite and above 0 */
} vkrope_llama3_scaling;

/**
 * Divides frequencies with a wavelength above original / low_freq_factor by `factor`, keeps those
 * with a wavelength below original / high_freq_factor, and blends those in between linearly in
 * original / wavelength. `apply_scaling` of Meta's llama-models; "llama3" in Hugging Face's
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

/** Parameters of YaRN, named as in model configurations. */
typedef struct vkrope_yarn_scaling {
    double factor VKROPE_ZERO;                           /**< finite and above 0 */
    double original_max_position_embeddings VKROPE_ZERO; /**< finite and above 0 */
    /** Pairs with at least this number of turns in the original length are kept. Must be at least
     * beta_slow; 0: 32. */
    double beta_fast VKROPE_ZERO;
    /** Pairs with at most this number of turns are divided by `factor`; finite, above 0; 0: 1. */
    double beta_slow VKROPE_ZERO;
    /** The opposite of `truncate`: does not round the ends of the blended range outwards to whole
     * pairs. */
    VkBool32 no_truncate VKROPE_ZERO;
    /** 0: computed from mscale and mscale_all_dim, or 0.1 ln(factor) + 1. */
    double attention_factor VKROPE_ZERO;
    double mscale VKROPE_ZERO;         /**< 0: not set */
    double mscale_all_dim VKROPE_ZERO; /**< 0: not set */
} vkrope_yarn_scaling;

/**
 * YaRN: keeps fast pairs, divides slow pairs by `factor`, and blends linearly in the pair index in
 * between. arXiv:2309.00071, section 3.2; "yarn" in Hugging Face's modeling_rope_utils.py.
 *
 * @param inv_freq          `count` numbers, radians per position; changed in place
 * @param count             number of frequencies
 * @param base              base of the frequencies, finite and above 1. They must be its powers,
 *                          base^(-j / count), but for 1e-5; scale those, and apply the quotients to
 *                          other frequencies with vkrope_scale_divisors
 * @param scaling           parameters
 * @param attention_factor  receives the factor for cos and sin. Default: m(mscale) /
 *                          m(mscale_all_dim) if both are set, else m(1), with m(s) = 0.1 s
 *                          ln(factor) + 1 (1 for factors up to 1)
 * @param error             optional
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
    /** 0: 1, DeepSeek's default. Negative: none, m(mscale) is 1, as with a 0 in DeepSeek's file. */
    double mscale VKROPE_ZERO;
    double mscale_all_dim VKROPE_ZERO; /**< finite, at least 0; 0: none, m is 1 */
} vkrope_deepseek_yarn_scaling;

/**
 * DeepSeek's YaRN: scales frequencies as vkrope_scale_yarn does with `truncate`, and divides the
 * magnitude, with m as there, between the rotation and the softmax scale.
 * DeepseekV2YarnRotaryEmbedding and DeepseekV2Attention in DeepSeek's modeling_deepseek.py.
 *
 * @param inv_freq          `count` numbers, radians per position; changed in place
 * @param count             number of frequencies
 * @param base              as for vkrope_scale_yarn
 * @param scaling           parameters
 * @param attention_factor  receives m(mscale) / m(mscale_all_dim)
 * @param softmax_scale     receives m(mscale_all_dim)^2, a factor for the caller's softmax scale
 * @param error             optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_deepseek_yarn(
    double* inv_freq, size_t count, double base, const vkrope_deepseek_yarn_scaling* scaling,
    double* attention_factor, double* softmax_scale, vkrope_error* error);

/** Parameters of LongRoPE, named as in model configurations. */
typedef struct vkrope_longrope_scaling {
    const double* short_factor VKROPE_ZERO; /**< [count] divisors, finite and above 0 */
    const double* long_factor VKROPE_ZERO;  /**< [count] divisors, finite and above 0 */
    size_t count VKROPE_ZERO;               /**< must equal the number of frequencies */
    /** Longest sequence that uses short_factor; finite and above 1. */
    double original_max_position_embeddings VKROPE_ZERO;
    /** max_position_embeddings / original_max_position_embeddings; finite and above 0. */
    double factor VKROPE_ZERO;
    /** 0: sqrt(1 + ln(factor) / ln(original)), or 1 if factor <= 1. */
    double attention_factor VKROPE_ZERO;
    /** Attention factor with short_factor; 0: as attention_factor. */
    double short_mscale VKROPE_ZERO;
    /** Attention factor with long_factor; 0: as attention_factor. */
    double long_mscale VKROPE_ZERO;
} vkrope_longrope_scaling;

/**
 * LongRoPE: divides each frequency by its own divisor, short_factor for sequences up to the
 * original length, long_factor for longer ones. arXiv:2402.13753; "longrope" in Hugging Face's
 * modeling_rope_utils.py; short_mscale and long_mscale as in its modeling_phimoe.py.
 *
 * @param inv_freq          `count` numbers, radians per position; changed in place
 * @param count             number of frequencies
 * @param scaling           parameters
 * @param seq_len           0: unknown; uses short_factor
 * @param attention_factor  receives the factor for cos and sin
 * @param error             optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_scale_longrope(double* inv_freq, size_t count, const vkrope_longrope_scaling* scaling,
                      uint64_t seq_len, double* attention_factor, vkrope_error* error);

/** Parameters of dynamic NTK scaling, named as in model configurations. */
typedef struct vkrope_dynamic_ntk_scaling {
    double factor VKROPE_ZERO; /**< finite and above 0 */
    /** Length that the model was trained with; finite and above 0. */
    double max_position_embeddings VKROPE_ZERO;
} vkrope_dynamic_ntk_scaling;

/**
 * Applies vkrope_scale_ntk with the alpha factor * L / M - (factor - 1), which grows with the
 * sequence: M = max_position_embeddings, L = max(seq_len, M). u/emozilla (2023), described in
 * arXiv:2309.00071, section 3.3; "dynamic" in Hugging Face's modeling_rope_utils.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param scaling   parameters
 * @param seq_len   0: unknown; the frequencies stay unchanged
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_scale_dynamic_ntk(double* inv_freq, size_t count, const vkrope_dynamic_ntk_scaling* scaling,
                         uint64_t seq_len, vkrope_error* error);

/**
 * NTK-aware scaling: multiplies the base by alpha^(d / (d - 2)), d = rotary_dim. This divides the
 * slowest frequency by `alpha` and keeps the fastest. u/bloc97 (2023), described in
 * arXiv:2309.00071, section 3.1; alpha of HunYuan's modeling_hunyuan.py.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param alpha     finite and above 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_ntk(double* inv_freq, size_t count,
                                                           double alpha, vkrope_error* error);

/**
 * Multiplies every frequency by `seq_scale`, as if every position were multiplied by it:
 * interpolation of TransformerEngine's RotaryPositionEmbedding (seq_scale = 1 /
 * seq_len_interpolation_factor).
 *
 * @param inv_freq   `count` numbers, radians per position; changed in place
 * @param count      number of frequencies
 * @param seq_scale  finite and above 0
 * @param error      optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_positions(double* inv_freq, size_t count,
                                                                 double seq_scale,
                                                                 vkrope_error* error);

/**
 * Divides each frequency by its own divisor, as freq_factors of ggml's ggml_rope_ext and the lists
 * of LongRoPE do.
 *
 * @param inv_freq       `count` numbers, radians per position; changed in place
 * @param count          number of frequencies
 * @param divisors       `divisor_count` numbers, finite and above 0
 * @param divisor_count  must be `count`
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_divisors(double* inv_freq, size_t count,
                                                                const double* divisors,
                                                                size_t divisor_count,
                                                                vkrope_error* error);

/**
 * Stops the pairs that do not complete a turn within `length` positions: their frequency becomes 0.
 * These are the zero frequencies of FoPE (arXiv:2412.17739; get_inv_freq of its reference code).
 * FoPE's Fourier series, a weighted sum of cosines for each channel, is not a rotation.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     number of frequencies
 * @param length    positions that the model was trained with: finite and above 0
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_stop_slow_pairs(double* inv_freq, size_t count,
                                                                 double length,
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

/**
 * Computes inv_freq[j] = base^(-j / (rotary_dim / 2 - 1)), 1 to 1 / base; a single pair gets 1.
 *
 * @param base        finite and above 0
 * @param rotary_dim  channels: even, 2 to VKROPE_MAX_HEAD_DIM
 * @param inv_freq    receives rotary_dim / 2 numbers
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a base or rotary_dim outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_inclusive_inv_freq(double base,
                                                                    uint32_t rotary_dim,
                                                                    double* inv_freq,
                                                                    vkrope_error* error);

/** Arguments of ggml_rope_ext that affect the angles.
 *
 * A field that is not set takes its default. 0 means not set, and so does a negative number in
 * ext_factor and the three fields after it ("from the model" in llama_context_params of llama.cpp's
 * include/llama.h). The defaults are what llama.cpp uses if the model file gives no value
 * (src/llama-hparams.h, src/llama-context.cpp). Exception: if the scaling type is YaRN, llama.cpp
 * replaces an unset ext_factor by 1; here the caller must set it to 1. If ext_factor is 0, the
 * betas, n_ctx_orig and n_dims have no effect, as in ggml. */
typedef struct vkrope_ggml_scaling {
    double freq_scale VKROPE_ZERO; /**< 1 / factor; finite and above 0; 0: not set */
    /** Weight of YaRN: 0 (linear scaling) to 1; negative: not set. */
    double ext_factor VKROPE_ZERO;
    double attn_factor VKROPE_ZERO; /**< finite and above 0; negative: not set */
    double beta_fast VKROPE_ZERO;   /**< at least beta_slow; negative: not set */
    double beta_slow VKROPE_ZERO;   /**< finite and above 0; negative: not set */
    /** Original length; finite, not negative; 0 blends only pair 0. */
    double n_ctx_orig VKROPE_ZERO;
    /** rotary_dim of the frequencies and the blended range; 0: twice the number of frequencies. */
    uint32_t n_dims VKROPE_ZERO;
    const double* freq_factors VKROPE_ZERO; /**< [freq_factor_count] divisors, finite and above 0 */
    /** 0, or at least the number of frequencies; the rest is ignored. */
    size_t freq_factor_count VKROPE_ZERO;
} vkrope_ggml_scaling;

/**
 * ggml's form of linear scaling, YaRN and per-pair factors: rope_yarn in ggml's ggml-cpu/ops.cpp.
 *
 * @param inv_freq          `count` numbers, radians per position; changed in place
 * @param count             number of frequencies
 * @param base              freq_base: finite and above 0. If ext_factor is not 0, it is above 1 and
 *                          the frequencies must be base^(-2j / n_dims), as for vkrope_scale_yarn
 * @param scaling           parameters
 * @param attention_factor  receives attn_factor, times 1 + 0.1 ln(1 / freq_scale) if ext_factor is
 *                          not 0
 * @param error             optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_ggml(double* inv_freq, size_t count,
                                                            double base,
                                                            const vkrope_ggml_scaling* scaling,
                                                            double* attention_factor,
                                                            vkrope_error* error);

/** Arguments of ggml_rope_ext and ggml_rope_multi that determine angles and pairs; ggml's ggml.h
 * and ggml_compute_forward_rope in ggml-cpu/ops.cpp. ggml_rope_ext_back is VKROPE_INVERSE.
 *
 * attn_factor is multiplied by 1 + 0.1 ln(1 / freq_scale) if ext_factor is not 0. The attention
 * factor of a config.json already contains this factor, which would then count twice. */
typedef struct vkrope_ggml_rope {
    uint32_t head_dim VKROPE_ZERO; /**< ne[0] of the tensor: 2 to 65534 */
    /** Rotated channels: even, 2 to head_dim. In vision mode head_dim / 2, although all channels
     * rotate. */
    uint32_t n_dims VKROPE_ZERO;
    /** GGML_ROPE_TYPE_...: 0 normal (interleaved pairs), 2 neox (half_split); with four ids per
     * token and half_split: 8 mrope, 40 imrope (interleaved sections), 24 vision (frequencies start
     * again in each section). */
    uint32_t mode VKROPE_ZERO;
    /** Original length; finite, not negative; 0 blends only pair 0. */
    double n_ctx_orig VKROPE_ZERO;
    /** Finite and above 0; above 1 if ext_factor is not 0; 0: 10000. */
    double freq_base VKROPE_ZERO;
    double freq_scale VKROPE_ZERO; /**< 1 / factor: multiplies the frequencies; 0: 1 */
    /** Weight of YaRN: 0 (linear scaling) to 1; negative: not set. */
    double ext_factor VKROPE_ZERO;
    /** Attention factor without the factor above; negative: not set; 0: 1. */
    double attn_factor VKROPE_ZERO;
    double beta_fast VKROPE_ZERO; /**< at least beta_slow; negative: not set; 0: 32 */
    double beta_slow VKROPE_ZERO; /**< above 0; negative: not set; 0: 1 */
    /** [freq_factor_count] divisors: rope_freqs of a file. */
    const double* freq_factors VKROPE_ZERO;
    size_t freq_factor_count VKROPE_ZERO; /**< 0, or at least the number of pairs */
    /** Pairs of time, height, width and the fourth axis; mrope, imrope and vision only, else 0. In
     * vision mode the sections that contain pairs must be above 0 and cover n_dims pairs. */
    uint32_t sections[4] VKROPE_ZERO;
} vkrope_ggml_rope;

/**
 * Converts ggml's arguments to a rotation. The ids of mrope and imrope are ggml's [4][tokens]; the
 * rotation has only the axes that rotate a pair.
 *
 * @param rope      arguments; freq_factors must not be `inv_freq`
 * @param inv_freq  receives the frequencies; the rotation keeps a pointer to it; unspecified on
 *                  error
 * @param count     number of elements of `inv_freq`, at least the number of frequencies of the
 *                  rotation; head_dim / 2 is always enough
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
 * As vkrope_rope_params_from_ggml, from a node of ggml's graph: GGML_OP_ROPE, or GGML_OP_ROPE_BACK,
 * which is VKROPE_INVERSE. Floats become doubles without rounding; nothing has a default. The words
 * are those of ggml 0.27.0 (ggml_rope_impl and ggml_rope_set_offset in ggml's ggml.c): [1] n_dims,
 * [2] mode, [4] n_ctx_orig, [5] to [10] the bits of freq_base, freq_scale, ext_factor, attn_factor,
 * beta_fast and beta_slow, [11] to [14] sections, [15] n_offs. A word without a meaning that is not
 * 0, and a number outside the range of its field of vkrope_ggml_rope, are errors that name it.
 *
 * @param op_params          the node's op_params
 * @param head_dim           ne[0] of the node
 * @param freq_factors       src[2] of the node, in host memory; null: the node has none
 * @param freq_factor_count  ne[0] of src[2]; 0: the node has none
 * @param inv_freq           as above
 * @param count              as above
 * @param rotation           receives the rotation; n_offs is its q_rotary_offset and
 *                           k_rotary_offset. A node is Q's or K's: for MLA, the caller sets one of
 *                           the two. Unchanged on error
 * @param error              optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for an argument outside its range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rope_params_from_ggml_op(
    const int32_t op_params[16], uint32_t head_dim, const float* freq_factors,
    size_t freq_factor_count, double* inv_freq, size_t count, vkrope_rope_params* rotation,
    vkrope_error* error);

/** XPos: a scale in addition to the angle. zeta_j = (2j / rotary_dim + gamma) / (1 + gamma) to the
 * power of (position - centre) / scale_base multiplies the query, and its inverse the key, so that
 * a score decays with the distance. arXiv:2212.10554; XPOS of torchscale's
 * xpos_relative_position.py. */
typedef struct vkrope_xpos_scaling {
    double scale_base VKROPE_ZERO; /**< finite and above 0; 0: 512 */
    double gamma VKROPE_ZERO;      /**< finite and above 0; 0: 0.4 */
    /** Position whose factor is 1. Scores do not depend on it, but the range of the factors does;
     * torchscale uses the middle of the sequence. */
    int64_t centre VKROPE_ZERO;
} vkrope_xpos_scaling;

/**
 * Writes rows of a cos_sin_cache (vkrope_plan_cos_sin_cache) with XPos: [rows, rotary_dim / 2] for
 * cos and for sin of position * inv_freq, exact, and rounded once after the product with the
 * attention factor and the scale. Queries and keys need a cache and a call each.
 *
 * @param rotation  one position per token, exact angles, no phase, one head group
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

/* ---- grids: positions of images, video and chunks; needs no device. Thread-safe. ---- */

/**
 * One axis of a grid. Element i has the id first + step * i. The coordinate of an id is
 * origin + unit * id; the model multiplies it by its frequencies.
 */
typedef struct vkrope_grid_axis {
    uint32_t count VKROPE_ZERO; /**< elements: at least 1 */
    int64_t first VKROPE_ZERO;  /**< id of element 0 */
    /** Difference between the ids of neighbouring elements; magnitude up to 2^32; 0: 1. */
    int64_t step VKROPE_ZERO;
    double unit VKROPE_ZERO;   /**< coordinate difference per id: finite and above 0; 0: 1 */
    double origin VKROPE_ZERO; /**< coordinate of id 0: finite */
} vkrope_grid_axis;

/**
 * Makes the axis of the frames of a video with `fps` frames per second, in units of frames at
 * base_fps: ids 0, 1, 2, ... with coordinates that are base_fps / fps apart.
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
 * Makes the axis of `patches` patches, stretched to the `reference` patches that the model was
 * trained with: patch i has the coordinate (first + i) * reference / patches. EVA-02;
 * ref_feat_shape of timm's build_fourier_pos_embed.
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
 * Makes the axis of the centres of `patches` equal parts of the interval from `low` to `high`: from
 * -1 to 1 in DINOv3, from 0 to the width in pixels in LTX-2. Neighbouring ids differ by 2. Ids are
 * odd; if low is -high and the number of patches is odd, they are even and include 0. The origin is
 * 0 if low is 0 or -high.
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
 * Folds the axes of a grid into a rotation: multiplies the frequencies of each axis by its unit,
 * and adds origin times frequency to the phases, less whole turns. `base` becomes 0 unless all
 * units are 1.
 *
 * @param axes        [axis_count]
 * @param axis_count  axes of the rotation, or 1 without sections
 * @param inv_freq    receives the new frequencies, as many as the rotation has; may be the
 *                    rotation's array
 * @param phase       receives the new phases, [head_groups, rotary_dim / 2]; unused if the rotation
 *                    has none and no axis has an origin
 * @param rotation    receives the new frequencies, phases and base; unchanged on error
 * @param error       optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if a frequency reaches 2048 radians
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fold_grid(const vkrope_grid_axis* axes,
                                                           uint32_t axis_count, double* inv_freq,
                                                           double* phase,
                                                           vkrope_rope_params* rotation,
                                                           vkrope_error* error);

/**
 * Returns the number of elements of a grid, the product of the counts; 0 if it exceeds 2^64 - 1,
 * and for null.
 *
 * @param axes   [count]
 * @param count  number of axes
 */
VKROPE_API uint64_t vkrope_grid_tokens(const vkrope_grid_axis* axes, uint32_t count);

/**
 * Writes the ids of a grid for vkrope_positions::ids: [axes, tokens], tokens row by row, the last
 * axis fastest.
 *
 * @param axes        [axis_count]
 * @param axis_count  1 to 8
 * @param ids         receives [axis_count, tokens]; unchanged on error
 * @param tokens      must be vkrope_grid_tokens
 * @param error       optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id does not fit in int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_grid_ids(const vkrope_grid_axis* axes,
                                                          uint32_t axis_count, int32_t* ids,
                                                          size_t tokens, vkrope_error* error);

/**
 * Writes ids by time, as Qwen2.5-Omni and Qwen2.5-VL count the frames of a video (TM-RoPE): the
 * float32 product index * seconds * ids_per_second, rounded down. get_rope_index of Hugging Face's
 * modeling_qwen2_5_omni.py. Qwen3-Omni does not round, so that its ids are not integers.
 *
 * @param seconds         time from one index to the next: finite, at least 0
 * @param ids_per_second  finite and above 0: position_id_per_seconds, 25 in Qwen2.5-Omni
 * @param ids             receives [count]; unchanged on error
 * @param count           number of indices
 * @param error           optional
 * @return VKROPE_ERROR_LIMIT_EXCEEDED if an id does not fit in int32
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_timed_ids(float seconds, float ids_per_second,
                                                           int32_t* ids, size_t count,
                                                           vkrope_error* error);

/** Row to rotate in dual-chunk attention: a key, or a query for the keys of its own chunk, of the
 * chunk before, of earlier chunks, or one of the two queries that vLLM calls critical. */
typedef enum vkrope_dual_chunk_role VKROPE_UINT32 {
    VKROPE_DUAL_CHUNK_KEY = 0,         /**< key */
    VKROPE_DUAL_CHUNK_QUERY = 1,       /**< query for keys of the same chunk */
    VKROPE_DUAL_CHUNK_QUERY_SUCC = 2,  /**< query for keys of the chunk before */
    VKROPE_DUAL_CHUNK_QUERY_INTER = 3, /**< query for keys of earlier chunks */
    /** As VKROPE_DUAL_CHUNK_QUERY_SUCC, but the ids may exceed chunk_size. */
    VKROPE_DUAL_CHUNK_QUERY_SUCC_CRITICAL = 4,
    /** As VKROPE_DUAL_CHUNK_QUERY_INTER, but the ids count on from chunk_size. */
    VKROPE_DUAL_CHUNK_QUERY_INTER_CRITICAL = 5,
} vkrope_dual_chunk_role;

/** Chunks of dual-chunk attention (arXiv:2402.17463), named as in dual_chunk_attention_config of
 * Qwen2.5-1M's config.json. */
typedef struct vkrope_dual_chunk {
    uint32_t chunk_size VKROPE_ZERO; /**< 1 to 2^30 */
    uint32_t local_size VKROPE_ZERO; /**< below chunk_size */
} vkrope_dual_chunk;

/**
 * Writes the ids with which dual-chunk attention rotates. With n = chunk_size - local_size, these
 * are p mod n for the key and the query; min(p mod n + n, chunk_size) and min(2n - 1, chunk_size)
 * for QUERY_SUCC and QUERY_INTER; p mod n + n and p mod n + chunk_size for the critical queries.
 * DualChunkRotaryEmbedding of vLLM's rotary_embedding/dual_chunk_rope.py. Each role needs its own
 * call of vkrope_record; the frequencies are the model's.
 *
 * @param chunk      sizes
 * @param role       key, or kind of query
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

#ifdef __cplusplus
}
#endif

#endif /* VKROPE_H */
