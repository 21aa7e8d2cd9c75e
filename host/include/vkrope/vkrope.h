/* SPDX-License-Identifier: MIT */
/**
 * @file vkrope.h
 * @brief Rotary position embedding on Vulkan, for C11 and for every language that calls C.
 *
 * It wraps the C++ headers of this folder, tier by tier, and adds no rule of its own but these:
 *
 * - **Structs.** Each begins with `struct_size`, which the caller sets to sizeof of it; every other
 * field may be 0, which is its default. `vkrope_call call = {.struct_size = sizeof call, .tokens =
 * 1};`. A struct that refers to another does so by a pointer, and null means that it is absent or
 * all default. An older, smaller size is accepted: the fields that it lacks are 0. A newer, larger
 * one is accepted while the bytes that this version does not know are 0. In structs that a function
 * fills, unknown bytes become 0. #vkrope_error has no size: it never changes.
 * - **Errors.** A function that can fail returns a #vkrope_result and takes a `vkrope_error*` last,
 * which may be null. On failure it writes null to the handle that it would have made; other results
 * are unspecified. Every function that takes a struct or must be given a pointer returns
 * #VKROPE_ERROR_INVALID_ARGUMENT where struct_size or the pointer breaks its rule, and may return
 *   #VKROPE_ERROR_OUT_OF_HOST_MEMORY; below only the other errors are named. No C++ exception
 * leaves the library.
 * - **Threads.** There is no global state. Unless said otherwise an object is immutable once made
 * and may be used by any number of threads; no thread may use it while or after it is destroyed. A
 * pointer passed in is read during the call only, unless said otherwise.
 * - **Destroying** null does nothing.
 */
#ifndef VKROPE_H
#define VKROPE_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

#define VKROPE_VERSION_MAJOR 0 /**< of this header */
#define VKROPE_VERSION_MINOR 1 /**< of this header */
#define VKROPE_VERSION_PATCH 0 /**< of this header */
/** A version as one number that grows with it. */
#define VKROPE_MAKE_VERSION(major, minor, patch) \
    (((uint32_t)(major) << 22) | ((uint32_t)(minor) << 12) | (uint32_t)(patch))
/** The version of this header. */
#define VKROPE_VERSION \
    VKROPE_MAKE_VERSION(VKROPE_VERSION_MAJOR, VKROPE_VERSION_MINOR, VKROPE_VERSION_PATCH)

/** @def VKROPE_API
 *  How functions are declared. With VKROPE_STATIC (target vkrope::c_static) they become part of the
 * program, which exports none of them. */
#if defined(VKROPE_STATIC)
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
 *  On functions whose result says whether they did anything: compilers warn of a caller that
 * ignores it. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define VKROPE_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define VKROPE_NODISCARD __attribute__((warn_unused_result))
#else
#define VKROPE_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is loaded, as #VKROPE_MAKE_VERSION makes it. Before 1.0 a
 * program needs the minor version that it was compiled with. Any thread. */
VKROPE_API uint32_t vkrope_version(void);

/* ---- status ---- */

/** What came of a call: 0, or what went wrong. */
typedef enum vkrope_result {
    VKROPE_SUCCESS = 0,
    VKROPE_ERROR_INVALID_ARGUMENT =
        -1, /**< a field breaks its rule; nothing was created, recorded or changed */
    VKROPE_ERROR_NOT_SUPPORTED =
        -2, /**< well formed, but not offered by this version or this device */
    VKROPE_ERROR_LIMIT_EXCEEDED =
        -3, /**< beyond a limit of the device or of the format; both numbers are in `what` */
    VKROPE_ERROR_INVALID_DATA =
        -4, /**< a model file that cannot be read, or that contradicts itself */
    VKROPE_ERROR_NO_DEVICE = -5, /**< no Vulkan loader, or no device that fits */
    VKROPE_ERROR_OUT_OF_HOST_MEMORY =
        -6, /**< an allocation of the library, of Vulkan or of the callbacks failed */
    VKROPE_ERROR_OUT_OF_DEVICE_MEMORY = -7, /**< Vulkan could not allocate device memory */
    VKROPE_ERROR_DEVICE_LOST =
        -8, /**< every later call on that device fails the same way; destroying is safe */
    VKROPE_ERROR_TIMEOUT = -9,   /**< a bounded wait ran out; the work may still be running */
    VKROPE_ERROR_VULKAN = -10,   /**< any other VkResult, in `vk_result` */
    VKROPE_ERROR_INTERNAL = -11, /**< a fault of this library, please report it */
    VKROPE_RESULT_MAX_ENUM =
        0x7fffffff /**< makes the type 32 bits wide; as in the enumerations below */
} vkrope_result;

/** The detail of an error; success leaves {VKROPE_SUCCESS, VK_SUCCESS, ""}. */
typedef struct vkrope_error {
    vkrope_result code; /**< what the function returns */
    VkResult vk_result; /**< the result behind the error, where Vulkan gave one; else VK_SUCCESS */
    char what[240];     /**< one sentence, terminated: field, value, rule */
} vkrope_error;

/** A few English words for a code, "unknown result" for any other number. Static; never null. Any
 * thread. */
VKROPE_API const char* vkrope_status_string(vkrope_result result);

/* ---- words that the tiers share ---- */

/** Which two channels of a head row form pair j, in a window of R channels that starts at channel
 * O. */
typedef enum vkrope_pairing {
    VKROPE_PAIRING_HALF_SPLIT = 0,  /**< (O + j, O + j + R/2): GPT-NeoX, Hugging Face Llama */
    VKROPE_PAIRING_INTERLEAVED = 1, /**< (O + 2j, O + 2j + 1): RoFormer, GPT-J */
    VKROPE_PAIRING_MAX_ENUM = 0x7fffffff
} vkrope_pairing;

/** How rotated pairs are written. */
typedef enum vkrope_pairing_out {
    VKROPE_PAIRING_OUT_SAME = 0, /**< as they were read */
    VKROPE_PAIRING_OUT_HALF_SPLIT =
        1, /**< another pairing than that of the input is for calls out of place */
    VKROPE_PAIRING_OUT_INTERLEAVED = 2, /**< likewise */
    VKROPE_PAIRING_OUT_MAX_ENUM = 0x7fffffff
} vkrope_pairing_out;

/** How one element of a tensor is stored, little-endian. */
typedef enum vkrope_element {
    VKROPE_ELEMENT_F32 = 0,  /**< IEEE 754 binary32 */
    VKROPE_ELEMENT_F16 = 1,  /**< IEEE 754 binary16 */
    VKROPE_ELEMENT_BF16 = 2, /**< the upper half of a binary32 */
    VKROPE_ELEMENT_MAX_ENUM = 0x7fffffff
} vkrope_element;

/** Where the shader takes cos and sin from. The bits of the output depend on the source alone, on
 * every device. With u = 2^-24 and a = attention factor, f32 output is within B u a (|x0| + |x1|) +
 * 2^-148 of the exact value (2^-123 more where the device flushes subnormals), for factors of 2^-64
 * to 2^64; f16 and bf16 are the nearest to such a value. */
typedef enum vkrope_angle_source {
    VKROPE_ANGLES_BY_DEFAULT = 0, /**< factored_texture for a max_position up to 2^22, computed
                                     beyond; of a kernel: factored_texture */
    VKROPE_ANGLES_FACTORED_TEXTURE =
        1, /**< B = 6: an RGBA32F texture with rows by the two 11-bit digits of |position| < 2^22 */
    VKROPE_ANGLES_COMPUTED = 2, /**< B = 4.5: no table but 8 bytes a pair; every int32 position */
    VKROPE_ANGLES_DIRECT_TEXTURE = 3, /**< B = 3, 2.5 where a = 1: one row a position in an RGBA32F
                                         texture, two (cos, sin) pairs a texel */
    VKROPE_ANGLES_DIRECT_BUFFER =
        4, /**< the same B: one row a position in a storage buffer of float (cos, sin) pairs */
    VKROPE_ANGLES_COS_SIN_CACHE =
        5, /**< cos and sin from two storage buffers of the caller, of any values (ONNX) */
    VKROPE_ANGLES_MAX_ENUM = 0x7fffffff
} vkrope_angle_source;

/** What the angle of a pair is. */
typedef enum vkrope_angle_precision {
    VKROPE_ANGLE_PRECISION_EXACT = 0, /**< position times the double inv_freq, in real arithmetic */
    /** float(position) * float(inv_freq) rounded to float, its cos and sin rounded to float, and
     * those times float(attention_factor) rounded to float: what Hugging Face transformers makes of
     * its float32 inv_freq. The angle is off by up to 2^-23 of itself (2^-24 where inv_freq are
     *  floats, and 2^-24 more from position 2^24 on), which is 7.8e-3 rad for the fastest pair at
     * position 131071. */
    VKROPE_ANGLE_PRECISION_FLOAT32 = 1,
    VKROPE_ANGLE_PRECISION_MAX_ENUM = 0x7fffffff
} vkrope_angle_precision;

/** Where the position of a token comes from. */
typedef enum vkrope_position_source {
    VKROPE_POSITIONS_IMPLICIT = 0, /**< first position + index of the token in its sequence */
    VKROPE_POSITIONS_IDS = 1,      /**< one int32 or int64 a token, in a buffer */
    VKROPE_POSITIONS_AXIS_IDS = 2, /**< one a token and axis (M-RoPE, vision, video) */
    VKROPE_POSITIONS_MAX_ENUM = 0x7fffffff
} vkrope_position_source;

/** Axes that a token can have positions on. */
#define VKROPE_MAX_AXES 8

/** Which axis turns pair j of all windows, with m = j mod the sum of the sections' pairs. */
typedef enum vkrope_section_order {
    VKROPE_SECTIONS_SEQUENTIAL = 0, /**< the section that m falls into: Qwen2-VL; vision, where each
                                       axis has its own frequencies */
    VKROPE_SECTIONS_INTERLEAVED =
        1, /**< axis m mod 3 where m < 3 * pairs[m mod 3], else leftover_axis: Qwen3-VL */
    VKROPE_SECTIONS_MAX_ENUM = 0x7fffffff
} vkrope_section_order;

/** Which pairs are turned by which axis, where tokens have a position on each of several axes. */
typedef struct vkrope_sections {
    size_t struct_size;              /**< sizeof this struct */
    vkrope_section_order order;      /**< how axes alternate */
    uint32_t axes;                   /**< 2 to VKROPE_MAX_AXES; of interleaved sections 3 or 4 */
    uint32_t pairs[VKROPE_MAX_AXES]; /**< of each section; the sum is above 0 */
    uint32_t leftover_axis;          /**< of interleaved sections */
    uint32_t reserved;               /**< 0 */
} vkrope_sections;

/** Which way pairs are turned. */
typedef enum vkrope_direction {
    VKROPE_DIRECTION_FORWARD = 0, /**< y0 = x0 c - x1 s, y1 = x0 s + x1 c */
    VKROPE_DIRECTION_INVERSE =
        1, /**< s -> -s: the gradient, and the un-rotation where the attention factor is 1 */
    VKROPE_DIRECTION_MAX_ENUM = 0x7fffffff
} vkrope_direction;

/** What happens to the attention factor, which angle tables contain. Where it is not 1, omit and
 * divide_out multiply what they read by a float, which adds up to 2 u to the error bound of the
 * source (u = 2^-24); a table that is filled with the factor that is wanted adds nothing. */
typedef enum vkrope_gain {
    VKROPE_GAIN_APPLY = 0, /**< multiply by it: forward and gradient */
    VKROPE_GAIN_OMIT = 1,  /**< leave it out, for shifting keys that carry it already */
    VKROPE_GAIN_DIVIDE_OUT =
        2, /**< divide by it, for a true un-rotation together with VKROPE_DIRECTION_INVERSE */
    VKROPE_GAIN_MAX_ENUM = 0x7fffffff
} vkrope_gain;

/** How the work is laid out over invocations. It never changes a bit of the result. */
typedef enum vkrope_mapping {
    VKROPE_MAPPING_BY_DEVICE = 0, /**< cpu on VK_PHYSICAL_DEVICE_TYPE_CPU, gpu elsewhere */
    VKROPE_MAPPING_GPU = 1, /**< many small invocations, neighbours on neighbouring channels */
    VKROPE_MAPPING_CPU = 2, /**< few large ones: all heads of a token each */
    VKROPE_MAPPING_MAX_ENUM = 0x7fffffff
} vkrope_mapping;

/** The order of a tensor's axes in memory, slowest first: batch, sequence, heads, head_dim. */
typedef enum vkrope_layout {
    VKROPE_LAYOUT_BSHD = 0,
    VKROPE_LAYOUT_BHSD = 1,
    VKROPE_LAYOUT_SBHD = 2,
    VKROPE_LAYOUT_THD = 3, /**< packed tokens, heads, head_dim; batch is 1 */
    VKROPE_LAYOUT_MAX_ENUM = 0x7fffffff
} vkrope_layout;

/* ---- tier "frequencies": numbers of a model to angle tables; no device, no files. Any thread.
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
 * Position interpolation ("linear"): divides every frequency by `factor`.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     frequencies
 * @param factor    finite and above 0
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a factor outside its range; nothing is changed then
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_linear(double* inv_freq, size_t count,
                                                              double factor, vkrope_error* error);

/** The numbers of Llama 3.1's scaling, as its configuration names them. None has a default. */
typedef struct vkrope_llama3_scaling {
    size_t struct_size;                      /**< sizeof this struct */
    double factor;                           /**< finite and above 0 */
    double low_freq_factor;                  /**< above 0, at most high_freq_factor */
    double high_freq_factor;                 /**< finite */
    double original_max_position_embeddings; /**< positions; finite and above 0 */
} vkrope_llama3_scaling;

/**
 * Llama 3.1's scaling ("llama3"): long wavelengths are stretched, short ones stay, those between
 * are blended.
 *
 * @param inv_freq  `count` numbers, radians per position; changed in place
 * @param count     frequencies
 * @param scaling   its numbers
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a number outside its range; nothing is changed then
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_scale_llama3(double* inv_freq, size_t count,
                                                              const vkrope_llama3_scaling* scaling,
                                                              vkrope_error* error);

/** One model's RoPE, or that of one of its layer types. Immutable. */
typedef struct vkrope_rotation vkrope_rotation;

/** What a rotation is made of. */
typedef struct vkrope_rotation_info {
    size_t struct_size;       /**< sizeof this struct */
    vkrope_pairing pairing;   /**< which channels form pairs */
    uint32_t head_dim;        /**< channels of one head row */
    uint32_t rotary_dim;      /**< channels that are rotated: even, 2 to head_dim */
    uint32_t q_rotary_offset; /**< first rotated channel of a query row */
    uint32_t k_rotary_offset; /**< first rotated channel of a key row */
    VkBool32 unrotated;       /**< true for a layer without RoPE, which needs no frequencies */
    const double* inv_freq;   /**< radians per position */
    size_t inv_freq_count;    /**< numbers in inv_freq: rotary_dim / 2 */
    double attention_factor;  /**< multiplies cos and sin, once, in the angle table: 2^-64 to 2^64;
                                 0: 1 */
    double softmax_scale; /**< what the scaling asks of the caller's softmax, never applied here; 0:
                             1 */
    uint64_t max_position; /**< positions that the model was made for; 0: unknown */
    const char* rope_type; /**< the name that the model gives its scaling; null: "default" */
    const char* const*
        warnings; /**< [warning_count] what was ignored or assumed while reading the model */
    size_t warning_count; /**< strings in warnings */
    const struct vkrope_sections*
        sections; /**< which axis turns which pair; null: one position a token */
    /** Scalings that depend on the length: the longest sequence that these frequencies serve. A
     * longer one is due frequencies and a table of its own; what was made before stays valid. 0:
     * they serve any length, from the one that they were made for. */
    uint64_t longest_seq_len;
    vkrope_angle_precision
        precision;     /**< what the angle of a pair is; float32 is for direct tables */
    uint32_t reserved; /**< 0 */
} vkrope_rotation_info;

/**
 * Makes a rotation of numbers; all of `info` is copied.
 *
 * @param info      what it is made of; numbers that only tables need are checked by
 * vkrope_plan_angles
 * @param rotation  receives the rotation, to be destroyed by vkrope_rotation_destroy
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rotation_create(const vkrope_rotation_info* info,
                                                                 vkrope_rotation** rotation,
                                                                 vkrope_error* error);

/**
 * What a rotation is made of; for one that was read from a model, what was read.
 *
 * @param rotation  a rotation
 * @param info      struct_size set; receives the rest. Its pointers are valid until the rotation is
 * destroyed.
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rotation_get_info(const vkrope_rotation* rotation,
                                                                   vkrope_rotation_info* info,
                                                                   vkrope_error* error);

/** Destroys a rotation. What was made with it does not refer to it. */
VKROPE_API void vkrope_rotation_destroy(vkrope_rotation* rotation);

/** What an angle table needs: the caller makes the image or the buffer, vkrope_fill_angles its
 * content. Made by vkrope_plan_angles. */
typedef struct vkrope_angle_plan {
    size_t struct_size;         /**< sizeof this struct */
    vkrope_angle_source source; /**< which kind of table */
    VkFormat
        format; /**< textures: VK_FORMAT_R32G32B32A32_SFLOAT; linear memory order is row major */
    VkExtent2D extent; /**< textures: texels */
    VkFlags usage;  /**< VkImageUsageFlags for a texture, VkBufferUsageFlags for a buffer, without
                       transfer bits */
    uint32_t pairs; /**< rotary_dim / 2 */
    uint32_t rows;  /**< positions with |position| < rows are covered */
    uint32_t fold_log2; /**< textures: row r starts at texel (row_texels * (r >> fold_log2), r & ((1
                           << fold_log2) - 1)) */
    uint32_t row_texels;     /**< textures: texels of one row, two pairs each */
    uint64_t bytes;          /**< size of the content */
    double attention_factor; /**< that the table contains: finite and above 0; 0: 1 */
    vkrope_element element;  /**< caller's tables: what cos and sin are stored as */
    uint32_t row_stride; /**< caller's tables: elements from one row to the next, of which the first
                            `pairs` count */
    /** The rotation's sections, as vkrope_sections has them: vkrope_record refuses a kernel that
     * was created for other ones. A caller's table has none. */
    vkrope_section_order section_order;
    uint32_t axes;                           /**< 0: one position a token */
    uint32_t section_pairs[VKROPE_MAX_AXES]; /**< of each section */
    uint32_t leftover_axis;                  /**< of interleaved sections */
    uint32_t reserved;                       /**< 0 */
} vkrope_angle_plan;

/**
 * Plans a table for every position with |position| < max_position.
 *
 * @param rotation        whose angles
 * @param source          which kind of table
 * @param max_position    1 to 2^31, of factored tables to 2^22, of computed angles to 2^31 + 1;
 * those serve every int32, whatever it is
 * @param max_image_side  maxImageDimension2D of the device, texels; ignored for buffers
 * @param plan            struct_size set; receives the rest
 * @param error           optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for numbers outside their range, also those of the
 * rotation; VKROPE_ERROR_LIMIT_EXCEEDED for a table that does not fit
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_angles(
    const vkrope_rotation* rotation, vkrope_angle_source source, uint64_t max_position,
    uint32_t max_image_side, vkrope_angle_plan* plan, vkrope_error* error);

/**
 * Plans for cos and sin of the caller's own, as [rows, row_stride] each: of any values, indexed by
 * position. A position of 0 to rows - 1 is covered. Tables of full width, whose second half repeats
 * the first, have a row_stride of rotary_dim.
 *
 * @param pairs       rotary_dim / 2
 * @param rows        1 to 2^31
 * @param row_stride  elements; at least `pairs`; 16-bit rows may begin in the middle of a word
 * @param element     what cos and sin are stored as
 * @param plan        struct_size set; receives the rest; `bytes` is what cos and sin need each, in
 * whole words
 * @param error       optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for numbers outside their range;
 * VKROPE_ERROR_LIMIT_EXCEEDED for a table that no storage buffer holds
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_plan_cos_sin_cache(uint32_t pairs, uint32_t rows,
                                                                    uint32_t row_stride,
                                                                    vkrope_element element,
                                                                    vkrope_angle_plan* plan,
                                                                    vkrope_error* error);

/**
 * Writes the table of `plan`: attention_factor * cos and sin of position * inv_freq, each rounded
 * once from double.
 *
 * @param rotation  whose angles
 * @param plan      as vkrope_plan_angles gave it for this rotation
 * @param memory    plan->bytes bytes, aligned to 4; mapped device memory will do: it is written
 * once, in order, never read
 * @param bytes     size of `memory`, at least plan->bytes
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for memory that is too small or not aligned, or for another
 * rotation's plan
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fill_angles(const vkrope_rotation* rotation,
                                                             const vkrope_angle_plan* plan,
                                                             void* memory, size_t bytes,
                                                             vkrope_error* error);

/** A table in lines: texel lines of a texture, positions of a buffer. */
typedef struct vkrope_angle_lines {
    size_t struct_size; /**< sizeof this struct */
    uint64_t count;     /**< lines of the table */
    uint64_t bytes;     /**< of one line */
} vkrope_angle_lines;

/**
 * How the table of `plan` is divided into lines, for vkrope_fill_angle_lines.
 *
 * @param plan   as vkrope_plan_angles gave it
 * @param lines  struct_size set; receives the rest
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_lines(const vkrope_angle_plan* plan,
                                                                 vkrope_angle_lines* lines,
                                                                 vkrope_error* error);

/**
 * Writes a part of the table, for staging memory that is smaller than the whole; else as
 * vkrope_fill_angles.
 *
 * @param rotation    whose angles
 * @param plan        as vkrope_plan_angles gave it for this rotation
 * @param first_line  the first line that is written
 * @param lines       how many are; first_line + lines is within the table
 * @param memory      receives them, without gaps; aligned to 4
 * @param bytes       size of `memory`, at least lines * vkrope_angle_lines::bytes
 * @param error       optional
 * @return as vkrope_fill_angles
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_fill_angle_lines(
    const vkrope_rotation* rotation, const vkrope_angle_plan* plan, uint32_t first_line,
    uint32_t lines, void* memory, size_t bytes, vkrope_error* error);

/* ---- tier "model": not in vkrope::c_static. Any thread. ---- */

/** Which RoPE of a model that has several. */
typedef struct vkrope_model_query {
    size_t struct_size;     /**< sizeof this struct */
    const char* layer_type; /**< one of the model's layer types; null: its only one, or else full
                               attention with a warning */
    const char* tower;      /**< "text" or "vision"; null: "text" */
    uint32_t layer_number;  /**< a single layer, counted from 1; 0: none in particular. Not together
                               with layer_type */
    uint64_t seq_len; /**< length of the sequence, for scalings that depend on it; 0: unknown */
} vkrope_model_query;

/**
 * Reads the RoPE of a Hugging Face config.json; see model.hpp for what is read. What was assumed or
 * ignored is in the warnings. Where memory runs out while the JSON document is destroyed, the JSON
 * library, whose destructor allocates, ends the program.
 *
 * @param json      the content of the file, UTF-8; need not be terminated
 * @param bytes     its size
 * @param query     null: the model's only RoPE. What it asks for and the model does not have is
 * VKROPE_ERROR_INVALID_ARGUMENT
 * @param rotation  receives the rotation, to be destroyed by vkrope_rotation_destroy
 * @param error     optional
 * @return VKROPE_ERROR_NOT_SUPPORTED for a rope type that this version does not have;
 * VKROPE_ERROR_INVALID_DATA for a field that is missing, of the wrong kind or out of range. Both
 * name it.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_rotation_from_hf_config(const char* json, size_t bytes, const vkrope_model_query* query,
                               vkrope_rotation** rotation, vkrope_error* error);

/**
 * Reads a part of a file: puts the bytes from `offset` on to `to`. No part is asked for that lies
 * beyond the end of the file.
 *
 * @param user    as it was given
 * @param offset  bytes from the beginning of the file
 * @param to      receives the bytes
 * @param bytes   how many
 * @return how many it has put there; other than `bytes`, it has failed
 */
typedef size_t (*vkrope_read_at)(void* user, uint64_t offset, void* to, size_t bytes);

/**
 * Reads the RoPE of a GGUF file, and no weights; see model.hpp for what is read. What was assumed
 * or ignored is in the warnings.
 *
 * @param file_bytes  size of the whole file; at most 2^62
 * @param read        reads parts of it; must not throw. Called by this function only
 * @param user        passed to `read`
 * @param query       null: the model's only RoPE. What it asks for and the model does not have is
 * VKROPE_ERROR_INVALID_ARGUMENT
 * @param rotation    receives the rotation, to be destroyed by vkrope_rotation_destroy
 * @param error       optional
 * @return VKROPE_ERROR_NOT_SUPPORTED for an architecture without RoPE, or that this version does
 * not know, and for version 1, big-endian and split files; VKROPE_ERROR_INVALID_DATA for a file
 * that is cut off or contradicts itself, and for a key that is missing, of the wrong type or out of
 * range
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rotation_from_gguf(uint64_t file_bytes,
                                                                    vkrope_read_at read, void* user,
                                                                    const vkrope_model_query* query,
                                                                    vkrope_rotation** rotation,
                                                                    vkrope_error* error);

/**
 * As vkrope_rotation_from_gguf, for a regular file on disk.
 *
 * @param path      where it is
 * @param query     as above
 * @param rotation  as above
 * @param error     optional
 * @return as above; VKROPE_ERROR_INVALID_DATA where the file cannot be opened
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_rotation_from_gguf_file(const char* path, const vkrope_model_query* query,
                               vkrope_rotation** rotation, vkrope_error* error);

/* ---- tier "kernel": record into a command buffer of yours, on a device of yours ---- */

/** Device functionality that the application enabled at vkCreateDevice: nothing is inferred from
 * mere support. */
typedef enum vkrope_device_features {
    VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR =
        1, /**< VK_KHR_push_descriptor: vkrope_record then needs no arena */
    VKROPE_DEVICE_FEATURE_DEBUG_UTILS =
        2, /**< VK_EXT_debug_utils of the instance: objects get names, each call a label */
    /** VK_KHR_shader_float_controls, or Vulkan 1.2: pipelines declare the arithmetic that the error
       bounds assume. */
    VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS = 4,
    /** The feature shaderFloat16, of VK_KHR_shader_float16_int8 or Vulkan 1.2: with float controls,
       the device itself converts f16. */
    VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 = 8,
    VKROPE_DEVICE_FEATURE_MAX_ENUM = 0x7fffffff
} vkrope_device_features;

/** What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo. */
typedef struct vkrope_requirements {
    size_t struct_size;   /**< sizeof this struct */
    uint32_t api_version; /**< the lowest VkApplicationInfo::apiVersion and device version */
    uint32_t enabled; /**< vkrope_device_ref::enabled, once all optional extensions are enabled */
    uint32_t optional_extension_count; /**< how many of optional_extensions there are */
    /** Device extensions that this device offers and that the kernel makes use of; static strings.
     */
    const char* optional_extensions[4];
    /** The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be
     * enabled: then vkrope_device_ref::enabled may have VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 too.
     */
    VkBool32 offers_shader_float16;
    /** What vkrope_device_ref::enabled may have without any of these extensions where
     * VkApplicationInfo::apiVersion is at least 1.2: float controls are part of a device of
     * Vulkan 1.2, and shaderFloat16, once enabled, is a field of VkPhysicalDeviceVulkan12Features.
     */
    uint32_t enabled_in_core;
} vkrope_requirements;

/**
 * Asks a physical device what the kernel needs of it. Any thread.
 *
 * @param instance                an instance
 * @param physical                a device of it
 * @param get_instance_proc_addr  through which all of Vulkan is found
 * @param requirements            struct_size set; receives the rest
 * @param error                   optional
 * @return VKROPE_ERROR_NOT_SUPPORTED says what the device lacks
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                        PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                        vkrope_requirements* requirements, vkrope_error* error);

/** A borrowed device. Its handles must outlive every kernel and arena that is made with them. */
typedef struct vkrope_device_ref {
    size_t struct_size;        /**< sizeof this struct */
    VkInstance instance;       /**< made for vkrope_requirements::api_version or a later one */
    VkPhysicalDevice physical; /**< a device of the instance */
    VkDevice device;           /**< made of it */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr; /**< through which all of Vulkan is found */
    uint32_t enabled;                                 /**< bits of vkrope_device_features */
    VkPipelineCache pipeline_cache;         /**< optional; used while a kernel is created only */
    const VkAllocationCallbacks* allocator; /**< optional; must outlive what is made with it */
} vkrope_device_ref;

/** How Q, K or V is stored. */
typedef struct vkrope_head_format {
    size_t struct_size;     /**< sizeof this struct */
    vkrope_element in;      /**< of the input */
    vkrope_element out;     /**< of the output */
    uint32_t head_dim;      /**< channels: 2 to 65534 */
    uint32_t rotary_offset; /**< first rotated channel; rotary_offset + rotary_dim <= head_dim */
} vkrope_head_format;

/** Windows that a kernel can have. */
#define VKROPE_MAX_WINDOWS 4

/** Channels of a head row that are rotated among themselves. Has no size: it never changes. */
typedef struct vkrope_window {
    uint32_t offset;     /**< first channel, counted from vkrope_head_format::rotary_offset */
    uint32_t rotary_dim; /**< channels: even */
} vkrope_window;

/** How f16 is converted to f32 and back. It never changes a bit of the result, but for the sign and
 * payload of a NaN. */
typedef enum vkrope_conversion {
    VKROPE_CONVERSION_BY_DEVICE =
        0, /**< integer on VK_PHYSICAL_DEVICE_TYPE_CPU and where native is not to be had */
    /** by the device, as SPIR-V defines it under RoundingModeRTE 16; needs
     * VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS and VKROPE_DEVICE_FEATURE_SHADER_FLOAT16, and a device
     * that reports shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16.
     * Subnormal halves are left to integers where it does not report shaderDenormPreserveFloat16.
     */
    VKROPE_CONVERSION_NATIVE = 1,
    VKROPE_CONVERSION_INTEGER = 2, /**< by integer operations */
    VKROPE_CONVERSION_MAX_ENUM = 0x7fffffff
} vkrope_conversion;

/** What is fixed when a kernel is created; everything else is per call. */
typedef struct vkrope_kernel_info {
    size_t struct_size;               /**< sizeof this struct */
    vkrope_pairing pairing;           /**< of input and, usually, output */
    uint32_t rotary_dim;              /**< channels: even, 2 to head_dim; of all windows together */
    vkrope_angle_source angles;       /**< where cos and sin come from */
    vkrope_position_source positions; /**< where positions come from */
    vkrope_mapping mapping;           /**< how the work is laid out */
    vkrope_pairing_out
        pairing_out;    /**< of the output; another than `pairing` is for calls out of place */
    VkBool32 scatter_k; /**< k_out's rows, and v_out's, go where vkrope_call::paged_cache says */
    const vkrope_head_format* q; /**< null: the kernel never sees a Q */
    const vkrope_head_format* k; /**< null: the kernel never sees a K */
    /** Several windows in a row, ascending and apart, whose rotary_dims add up to rotary_dim: 2-D
     * vision RoPE. The pairs of the angle table are numbered window after window. All zero: one
     * window. */
    vkrope_window windows[VKROPE_MAX_WINDOWS];
    const vkrope_sections* sections; /**< with VKROPE_POSITIONS_AXIS_IDS; else null */
    vkrope_element table; /**< VKROPE_ANGLES_COS_SIN_CACHE: what cos and sin are stored as */
    vkrope_conversion conversion; /**< how f16 is converted */
    /** Heads of Q and of K, and below of V, in every call that has them; 0: any number. On a GPU,
     * lanes are shared out by them. */
    uint32_t q_heads, k_heads;
    /** V, whose rows are moved with K's, and stored as `out`: never rotated, rotary_offset is 0.
     * Null: the kernel never sees a V. */
    const vkrope_head_format* v;
    uint32_t v_heads;
    uint32_t reserved; /**< 0 */
} vkrope_kernel_info;

/**
 * What vkrope_kernel_create needs to know of a model: pairing, channels, offsets, angle source and
 * sections. Change what your engine has otherwise: `scatter_k`, or `positions` for ids in a buffer;
 * with sections positions stay VKROPE_POSITIONS_AXIS_IDS, and text has an axis_stride of 0. Any
 * thread.
 *
 * @param rotation  of a layer that rotates: otherwise there is no kernel, and Q and K stay as they
 * are
 * @param plan      made from this rotation, or by vkrope_plan_cos_sin_cache
 * @param q         struct_size, `in` and `out` set; receives the rest. Null: the kernel never sees
 * a Q
 * @param k         likewise
 * @param info      struct_size set; receives the rest, which refers to q, to k and to the rotation.
 * Positions are VKROPE_POSITIONS_AXIS_IDS where the rotation has sections, else implicit
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a layer without RoPE, and for another rotation's plan
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_rotation_get_kernel_info(
    const vkrope_rotation* rotation, const vkrope_angle_plan* plan, vkrope_head_format* q,
    vkrope_head_format* k, vkrope_kernel_info* info, vkrope_error* error);

/** The pipelines of one kind of rotation. Immutable: any number of threads may record it, each into
 * its own command buffer. */
typedef struct vkrope_kernel vkrope_kernel;

/**
 * Compiles every pipeline that vkrope_record may choose, at most nine. Any thread, if the pipeline
 * cache is not externally synchronised.
 *
 * @param device  the borrowed device
 * @param info    what the kernel is for
 * @param kernel  receives the kernel, to be destroyed by vkrope_kernel_destroy
 * @param error   optional
 * @return VKROPE_ERROR_NOT_SUPPORTED, VKROPE_ERROR_LIMIT_EXCEEDED, or what Vulkan answered. Nothing
 * is left behind.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_kernel_create(const vkrope_device_ref* device,
                                                               const vkrope_kernel_info* info,
                                                               vkrope_kernel** kernel,
                                                               vkrope_error* error);

/** Destroys a kernel. No command buffer that uses it may be pending. */
VKROPE_API void vkrope_kernel_destroy(vkrope_kernel* kernel);

/** Descriptor sets, for devices without push descriptors. Belongs to one thread at a time: make one
 * per thread and frame. */
typedef struct vkrope_arena vkrope_arena;

/**
 * Makes the descriptor sets for `calls` calls of vkrope_record. They serve every kernel of the same
 * device, position kernels too; on a device that binds fewer than 11 storage buffers to a stage
 * (maxPerStageDescriptorStorageBuffers), those of an equal vkrope_kernel_info: it may serve others,
 * and vkrope_record refuses those that it does not.
 *
 * @param kernel  says which device; need not outlive the arena
 * @param calls   at least 1
 * @param arena   receives the arena, to be destroyed by vkrope_arena_destroy
 * @param error   optional
 * @return what Vulkan answered
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_arena_create(const vkrope_kernel* kernel,
                                                              uint32_t calls, vkrope_arena** arena,
                                                              vkrope_error* error);

/** Takes all sets back. No command buffer recorded with the arena may be pending, nor be submitted
 * afterwards. Null is ignored. */
VKROPE_API void vkrope_arena_reset(vkrope_arena* arena);

/** As vkrope_arena_reset, for good. */
VKROPE_API void vkrope_arena_destroy(vkrope_arena* arena);

/** A head stride for inputs: every head reads one and the same row. */
#define VKROPE_BROADCAST INT64_MIN

/** Where the rows of a tensor are. Strides are in elements; 0 means packed as [batch, tokens,
 * heads, head_dim]. */
typedef struct vkrope_tensor {
    size_t struct_size;           /**< sizeof this struct */
    VkDescriptorBufferInfo where; /**< buffer, offset and range in bytes of the tensor's own bytes;
                                     never VK_WHOLE_SIZE */
    uint32_t heads;               /**< 0: this tensor is absent from the call */
    uint32_t heads_per_group; /**< a second head axis (grouped QKV): `heads` counts all, in groups
                                 of so many; 0: one group */
    int64_t token_stride;     /**< from token to token */
    int64_t head_stride;      /**< from head to head */
    int64_t batch_stride;     /**< from sequence to sequence */
    int64_t group_stride;     /**< from group to group; 0: heads_per_group * head_stride */
    VkDeviceSize buffer_size; /**< bytes of the whole buffer, 0: unknown; needed only where 16-bit
                                 rows end in the middle of a word that where.range does not cover */
} vkrope_tensor;

/**
 * Destination rows of k_out, and of v_out, one a token, in a cache of pages each, as many as
 * where.range holds (of the smaller cache, where a call has both):
 *
 *     [slots, heads, head_dim]              page_size 1
 *     [pages, page_size, heads, head_dim]   packed, the default
 *     [pages, heads, page_size, head_dim]   row_stride head_dim,
 *                                           head_stride page_size * head_dim,
 *                                           page_stride heads * page_size * head_dim
 *
 * Rows that no token names keep their bits. Where two tokens name one row, its content is
 * undefined. token_stride and batch_stride of k_out and v_out are 0.
 */
typedef struct vkrope_paged_cache {
    size_t struct_size;                  /**< sizeof this struct */
    VkDescriptorBufferInfo slot_mapping; /**< int32 or int64 [batch, tokens]: page * page_size +
                                     row; -1 skips the token, any other value outside the cache does
                                     too, and counts in vkrope_call::out_of_range */
    /** Rows of a page, to 2^31; 0: 1. With 1, another page_stride than the packed one is an error,
     * for page_size may have been forgotten; single rows that lie apart have a row_stride and a
     * page_stride of one length. */
    uint32_t page_size;
    VkBool32 int64_slots; /**< slots of 64 bits */
    int64_t page_stride;  /**< elements, of both caches (where their rows differ in length and
                             neither is packed,  V takes a call of its own); 0: packed */
    int64_t row_stride;   /**< likewise */
    int64_t batch_stride; /**< slots from one sequence's to the next's; 0: packed */
} vkrope_paged_cache;

/** Positions of the tokens, by the kernel's vkrope_position_source. */
typedef struct vkrope_positions {
    size_t struct_size; /**< sizeof this struct */
    int32_t first;      /**< implicit: position of token 0; the last one must be an int32 */
    VkBool32 int64_ids; /**< ids of 64 bits; one outside int32 counts as outside the table */
    VkDescriptorBufferInfo
        ids; /**< ids: int32 or int64 [axes, batch, tokens]; offset and range are multiples of 4 */
    int64_t batch_stride; /**< ids from one sequence to the next; 0: all share one row. Implicit:
                             positions between token 0 of each */
    int64_t axis_stride;  /**< ids from axis to axis; 0: all share one row */
    int64_t token_stride; /**< ids from token to token; 0: 1 */
} vkrope_positions;

/** The angle table: what `plan` says, filled by vkrope_fill_angles. */
typedef struct vkrope_angles {
    size_t struct_size;            /**< sizeof this struct */
    const vkrope_angle_plan* plan; /**< read during the call only */
    VkImageView view; /**< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL when the commands
                         execute */
    VkDescriptorBufferInfo
        buffer; /**< (cos, sin) pairs, or the caller's cos; offset is a multiple of 4 */
    VkDescriptorBufferInfo sin; /**< the caller's sin, likewise */
} vkrope_angles;

/** One rotation of Q, K or both, which may take V along. Input and output of a tensor are the same
 * bytes (in place) or disjoint. */
typedef struct vkrope_call {
    size_t struct_size;                    /**< sizeof this struct */
    uint32_t batch;                        /**< sequences; 0: 1 */
    uint32_t tokens;                       /**< tokens of each; 0 is legal and records nothing */
    const vkrope_tensor* q_in;             /**< null: absent */
    const vkrope_tensor* q_out;            /**< may be the pointer that q_in is */
    const vkrope_tensor* k_in;             /**< null: absent */
    const vkrope_tensor* k_out;            /**< may be the pointer that k_in is */
    const vkrope_positions* positions;     /**< null: implicit, from position 0 */
    const vkrope_angles* angles;           /**< cos and sin */
    vkrope_direction direction;            /**< forward or inverse */
    vkrope_gain gain;                      /**< what happens to the attention factor */
    const vkrope_paged_cache* paged_cache; /**< with scatter_k: destination rows; else null */
    /** Optional uint32: plus one for each token whose position the table does not cover, which
     * leaves its rows unrotated, or whose slot the cache does not have, which leaves its K and its
     * V nowhere. Never cleared here. */
    VkDescriptorBufferInfo out_of_range;
    /** Null: absent. Moved to where it is stored, and to another element type if the kernel says
     * so; in place nothing is left to do. With K's heads, head_dim and strides, in elements, it
     * takes K's dispatch; otherwise it has one of its own. */
    const vkrope_tensor* v_in;
    const vkrope_tensor* v_out; /**< may be the pointer that v_in is */
} vkrope_call;

/**
 * Dispatches that vkrope_record makes of a call, and sets of an arena that it takes: one, or as
 * many as there are parts; 0 where there is nothing to do, for want of tokens or with a V alone
 * that stays in place. Tokens beyond the workgroups of a dispatch go into further ones. Q, K and V
 * go apart where the device binds too few storage buffers for all, and where a tensor exceeds what
 * it binds at once; V also where it lies otherwise than K. A cache may span several such ranges;
 * heads in groups may meet a batch or slots. Any thread.
 *
 * @param kernel      which kernel
 * @param call        as for vkrope_record
 * @param dispatches  receives the count
 * @param error       optional
 * @return as vkrope_record, for all but the arena
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel,
                                                                const vkrope_call* call,
                                                                uint64_t* dispatches,
                                                                vkrope_error* error);

/** How what vkrope_record records is ordered against other commands. */
typedef struct vkrope_boundary {
    size_t struct_size;            /**< sizeof this struct */
    VkPipelineStageFlags stage;    /**< first and last stage */
    VkAccessFlags input_access;    /**< of q_in, k_in, v_in, ids and an angle table in a buffer */
    VkAccessFlags output_access;   /**< of q_out, k_out, v_out and out_of_range */
    VkAccessFlags in_place_access; /**< of a tensor that is both */
    VkAccessFlags texture_access;  /**< of an angle table in a texture */
    uint32_t reserved;             /**< 0 */
} vkrope_boundary;

/**
 * What to put into the barriers before and after vkrope_record: the same for every call. Any
 * thread.
 *
 * @param boundary  struct_size set; receives the rest
 * @param error     optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_boundary(vkrope_boundary* boundary,
                                                              vkrope_error* error);

/**
 * Records one rotation into `commands`. It submits, waits for, allocates and compiles nothing.
 *
 * vkrope_get_boundary says which stage accesses what, and how; buffers need
 * VK_BUFFER_USAGE_STORAGE_BUFFER_BIT. Ordering against earlier and later commands is the caller's.
 * A call owns the 4-byte words that its tensors touch; a word that it shares with a neighbour is
 * read and written atomically, and counts whole for the caller's barriers. It disturbs the compute
 * pipeline, descriptor set 0 and the push constants of the compute bind point. On error nothing has
 * been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 * synchronised
 * @param kernel    any number of threads may record it at once
 * @param call      what to rotate
 * @param arena     null with push descriptors; otherwise one that serves this kernel, externally
 * synchronised, with as many sets left as vkrope_get_dispatches says
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field that breaks its rule;
 * VKROPE_ERROR_NOT_SUPPORTED for what this version does not have; VKROPE_ERROR_LIMIT_EXCEEDED for
 * what the device cannot bind or address, and for an arena without a set left
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_record(VkCommandBuffer commands,
                                                        const vkrope_kernel* kernel,
                                                        const vkrope_call* call,
                                                        vkrope_arena* arena, vkrope_error* error);

/* ---- the upload of an angle table ---- */

/**
 * What to create the image of a texture's plan with: to be copied into once, then sampled by
 * compute shaders of one queue family. Any thread.
 *
 * @param plan   as vkrope_plan_angles gave it
 * @param info   receives what vkCreateImage takes
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_image_info(const vkrope_angle_plan* plan,
                                                                      VkImageCreateInfo* info,
                                                                      vkrope_error* error);

/**
 * What to create the view for vkrope_angles::view with. Any thread.
 *
 * @param plan   as vkrope_plan_angles gave it
 * @param image  of vkrope_get_angle_image_info
 * @param info   receives what vkCreateImageView takes
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_get_angle_view_info(const vkrope_angle_plan* plan,
                                                                     VkImage image,
                                                                     VkImageViewCreateInfo* info,
                                                                     vkrope_error* error);

/** From where, and to where, a table is copied. */
typedef struct vkrope_angle_upload {
    size_t struct_size; /**< sizeof this struct */
    VkBuffer
        staging; /**< has VK_BUFFER_USAGE_TRANSFER_SRC_BIT, and what vkrope_fill_angles wrote */
    VkDeviceSize staging_offset; /**< bytes; a multiple of 16 for textures, of 4 for buffers */
    VkImage image;               /**< textures: of vkrope_get_angle_image_info */
    VkBuffer
        buffer; /**< buffers: has vkrope_angle_plan::usage and VK_BUFFER_USAGE_TRANSFER_DST_BIT */
    VkDeviceSize buffer_offset; /**< bytes; a multiple of 4 */
    uint32_t first_line; /**< a part of the table, see vkrope_angle_lines: the first part comes
                            first, the last one last */
    uint32_t lines;      /**< so many lines from first_line on; 0: all of the table from there on */
} vkrope_angle_upload;

/**
 * Records the copy of a table that vkrope_fill_angles wrote: the transitions of the image, the
 * copy, and the barrier after which what vkrope_record records later on the same queue may read it.
 * Once a model, not per call: it looks up what it calls. The image is in
 * VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL then. On error nothing has been recorded.
 *
 * @param commands  recording, outside a render pass, on a compute queue family; externally
 * synchronised
 * @param device    the borrowed device
 * @param plan      not of a caller's table, whose content the caller has
 * @param upload    from where, and to where
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field that breaks its rule
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_record_angle_upload(
    VkCommandBuffer commands, const vkrope_device_ref* device, const vkrope_angle_plan* plan,
    const vkrope_angle_upload* upload, vkrope_error* error);

/* ---- positions that are not int32 ids yet ---- */

/** Turns them into such, once per step for all layers. Immutable: any number of threads may record
 * it. */
typedef struct vkrope_position_kernel vkrope_position_kernel;

/**
 * Compiles the pipeline of vkrope_record_positions. Any thread, as vkrope_kernel_create.
 *
 * @param device  the borrowed device
 * @param kernel  receives the kernel, to be destroyed by vkrope_position_kernel_destroy
 * @param error   optional
 * @return what Vulkan answered. Nothing is left behind.
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_position_kernel_create(
    const vkrope_device_ref* device, vkrope_position_kernel** kernel, vkrope_error* error);

/** Destroys it. No command buffer that uses it may be pending. */
VKROPE_API void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel);

/**
 * As vkrope_arena_create; vkrope_record_positions takes one set a call.
 *
 * @param kernel  says which device; need not outlive the arena
 * @param calls   at least 1
 * @param arena   receives the arena, to be destroyed by vkrope_arena_destroy
 * @param error   optional
 * @return what Vulkan answered
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_position_arena_create(const vkrope_position_kernel* kernel, uint32_t calls,
                             vkrope_arena** arena, vkrope_error* error);

/**
 * What becomes int32 ids:
 *
 * - one row a sequence, `cu_seqlens` absent: `out` is [batch, tokens], token t of sequence b is at
 * offsets[b] + first + t, or at ids[b, t];
 * - ragged, `cu_seqlens` is [sequences + 1]: `out` is [tokens], and token t of packed sequence i,
 * cu_seqlens[i] <= t < cu_seqlens[i
 * + 1], is
 *   at offsets[i] + first + t - cu_seqlens[i]; a token of no sequence at 0;
 * - a shard, cp_size > 1: of the 2 cp_size chunks of every sequence this rank holds chunk cp_rank
 * and chunk 2 cp_size - 1 - cp_rank, one after the other; `tokens` counts those of this rank,
 * cu_seqlens those of the whole, padded to multiples of 2 cp_size.
 *
 * A position outside int32 becomes -2^31, which no table covers but computed angles do, and counts
 * in out_of_range. Whatever the numbers, nothing outside the buffers is touched.
 */
typedef struct vkrope_position_call {
    size_t struct_size; /**< sizeof this struct */
    uint32_t batch;     /**< sequences; 0: 1 */
    uint32_t tokens;    /**< of each; 0 records nothing */
    int32_t first;      /**< added to every position */
    uint32_t sequences; /**< of cu_seqlens */
    VkDescriptorBufferInfo
        ids; /**< optional: int64 [batch, tokens], instead of offsets and first */
    VkDescriptorBufferInfo offsets;    /**< optional: int32 or int64, one a sequence */
    VkDescriptorBufferInfo cu_seqlens; /**< optional: int32 or int64, ascending from 0 */
    VkBool32 int64_offsets;            /**< offsets of 64 bits */
    VkBool32 int64_cu_seqlens;         /**< cu_seqlens of 64 bits */
    uint32_t cp_size;                  /**< shards; 0: 1 */
    uint32_t cp_rank;                  /**< which one */
    VkDescriptorBufferInfo out;        /**< int32 [batch, tokens] */
    VkDescriptorBufferInfo
        out_of_range; /**< optional uint32: plus one for each position outside int32 */
} vkrope_position_call;

/**
 * Records one dispatch that writes `out`. vkrope_get_boundary holds: `out` and `out_of_range` are
 * written, the rest is read. Disturbs what vkrope_record does, allocates nothing; on error nothing
 * has been recorded.
 *
 * @param commands  as for vkrope_record
 * @param kernel    any number of threads at a time
 * @param call      what to do
 * @param arena     as for vkrope_record, one set a call
 * @param error     optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field that breaks its rule;
 * VKROPE_ERROR_LIMIT_EXCEEDED for more than the device binds or dispatches, or an arena without a
 * set
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_record_positions(VkCommandBuffer commands, const vkrope_position_kernel* kernel,
                        const vkrope_position_call* call, vkrope_arena* arena, vkrope_error* error);

/* ---- tier "runtime": a device of vkrope's own; not in vkrope::c_static ----
 *
 * A device and what was made with it belong to one thread at a time; what was made with a device is
 * destroyed before it. Functions that take either may return what Vulkan answered:
 * VKROPE_ERROR_OUT_OF_DEVICE_MEMORY, VKROPE_ERROR_DEVICE_LOST, VKROPE_ERROR_VULKAN; and those that
 * wait for the device VKROPE_ERROR_TIMEOUT. */

/**
 * Receives a message of the loader, a layer or a driver, during calls of this library, on the
 * calling thread. It must return.
 *
 * @param user_data  vkrope_device_options::user_data
 * @param is_error   true for an error, false for a warning
 * @param id         the message's identifier
 * @param text       the message
 */
typedef void (*vkrope_message_callback)(void* user_data, VkBool32 is_error, const char* id,
                                        const char* text);

/** Which device, and how to open it. */
typedef struct vkrope_device_options {
    size_t struct_size; /**< sizeof this struct */
    /** Null or empty: the best; digits: an index into the list; 32 hex digits: a UUID; else part of
     * a name, any case. */
    const char* select;
    PFN_vkGetInstanceProcAddr
        get_instance_proc_addr;   /**< null: the system's Vulkan loader, found at run time */
    VkBool32 validation;          /**< turns on VK_LAYER_KHRONOS_validation; without the layer:
                                     VKROPE_ERROR_NOT_SUPPORTED */
    VkBool32 no_push_descriptors; /**< descriptor sets even where push descriptors are offered */
    vkrope_message_callback on_message; /**< optional; with user_data it must outlive the device */
    void* user_data;                    /**< handed to on_message */
    uint64_t timeout_ns;                /**< longest wait for one submission; 0: 30 s */
} vkrope_device_options;

/** What a physical device says of itself. Strings and limits live as long as the list or the device
 * that was asked. */
typedef struct vkrope_device_info {
    size_t struct_size;                   /**< sizeof this struct */
    const char* name;                     /**< as the driver gives it */
    const char* driver;                   /**< name and version of the driver */
    const char* uuid;                     /**< 32 hex digits */
    const char* reason;                   /**< what it lacks; empty for a suitable device */
    VkPhysicalDeviceType type;            /**< discrete, integrated, ... */
    uint32_t api_version;                 /**< of the device */
    VkBool32 suitable;                    /**< false: `reason` says what it lacks */
    uint64_t memory_bytes;                /**< largest device-local heap */
    const VkPhysicalDeviceLimits* limits; /**< all of them */
} vkrope_device_info;

/** The Vulkan devices of the machine, best first. Immutable; any thread. */
typedef struct vkrope_device_list vkrope_device_list;

/**
 * Lists every Vulkan device, best first: discrete, integrated, virtual, other, and software devices
 * last. Any thread.
 *
 * @param options  null: the defaults
 * @param list     receives the list, to be destroyed by vkrope_device_list_destroy
 * @param error    optional
 * @return VKROPE_ERROR_NO_DEVICE without a Vulkan loader
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_list_create(
    const vkrope_device_options* options, vkrope_device_list** list, vkrope_error* error);

/** How many devices the list has; 0 for null. Any thread. */
VKROPE_API uint32_t vkrope_device_list_count(const vkrope_device_list* list);

/**
 * What device `index` of the list says of itself. Any thread.
 *
 * @param list   a list
 * @param index  below vkrope_device_list_count
 * @param info   struct_size set; receives the rest
 * @param error  optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_list_get(const vkrope_device_list* list,
                                                                 uint32_t index,
                                                                 vkrope_device_info* info,
                                                                 vkrope_error* error);

/** Destroys a list and the strings of its infos. */
VKROPE_API void vkrope_device_list_destroy(vkrope_device_list* list);

/** A device with one compute queue. */
typedef struct vkrope_device vkrope_device;

/**
 * Opens a device. Any thread.
 *
 * @param options  null: the defaults, which open the best device
 * @param device   receives the device, to be destroyed by vkrope_device_destroy
 * @param error    optional
 * @return VKROPE_ERROR_NO_DEVICE where none fits; VKROPE_ERROR_INVALID_ARGUMENT where `select`
 * names several
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_open(const vkrope_device_options* options,
                                                             vkrope_device** device,
                                                             vkrope_error* error);

/**
 * What the device says of itself.
 *
 * @param device  a device
 * @param info    struct_size set; receives the rest
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_get_info(const vkrope_device* device,
                                                                 vkrope_device_info* info,
                                                                 vkrope_error* error);

/**
 * The device's handles, for vkrope_kernel_create and for Vulkan calls of the caller's own. They
 * stay the device's.
 *
 * @param device  a device
 * @param ref     struct_size set; receives the rest
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_get_ref(const vkrope_device* device,
                                                                vkrope_device_ref* ref,
                                                                vkrope_error* error);

/**
 * The device's queue. Whoever submits to it does so on the thread that the device belongs to.
 *
 * @param device  a device
 * @param family  optional; receives the index of its family
 * @param queue   optional; receives the queue
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_get_queue(const vkrope_device* device,
                                                                  uint32_t* family, VkQueue* queue,
                                                                  vkrope_error* error);

/**
 * Records commands for vkrope_device_submit.
 *
 * @param user_data  as given to vkrope_device_submit
 * @param commands   recording
 * @param error      never null; for the callee, to hand on to functions of this library
 * @return anything but VKROPE_SUCCESS: nothing is submitted, and vkrope_device_submit returns it
 */
typedef vkrope_result (*vkrope_record_callback)(void* user_data, VkCommandBuffer commands,
                                                vkrope_error* error);

/**
 * Records one command buffer, submits it and waits for it. The memory effects of earlier
 * submissions are visible to the commands. The callback records, no more: whatever submits on this
 * device is VKROPE_ERROR_INVALID_ARGUMENT during it.
 *
 * @param device       a device
 * @param record       called once, before this function returns
 * @param user_data    handed to `record`
 * @param nanoseconds  optional; receives what the device spent on the commands, or -1 where that is
 * not known
 * @param error        optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_device_submit(vkrope_device* device,
                                                               vkrope_record_callback record,
                                                               void* user_data, double* nanoseconds,
                                                               vkrope_error* error);

/** Destroys a device, after all that was made with it. */
VKROPE_API void vkrope_device_destroy(vkrope_device* device);

/** Device memory for a tensor, ids or a table: a storage buffer that can be copied from and to. */
typedef struct vkrope_buffer vkrope_buffer;

/**
 * Makes a buffer.
 *
 * @param device  whose memory
 * @param bytes   above 0; rounded up to a multiple of 4
 * @param buffer  receives the buffer, to be destroyed by vkrope_buffer_destroy
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_buffer_create(vkrope_device* device,
                                                               uint64_t bytes,
                                                               vkrope_buffer** buffer,
                                                               vkrope_error* error);

/** All of the buffer, for vkrope_tensor::where and the like; {VK_NULL_HANDLE, 0, 0} for null. */
VKROPE_API VkDescriptorBufferInfo vkrope_buffer_whole(const vkrope_buffer* buffer);

/**
 * Copies host memory into the buffer, and waits for it.
 *
 * @param buffer  a buffer
 * @param source  `bytes` bytes
 * @param bytes   how many; offset + bytes is within the buffer
 * @param offset  bytes into the buffer; offset and bytes need no alignment
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_buffer_upload(vkrope_buffer* buffer,
                                                               const void* source, size_t bytes,
                                                               uint64_t offset,
                                                               vkrope_error* error);

/**
 * Copies the buffer into host memory, after all that was submitted before.
 *
 * @param buffer  a buffer
 * @param target  receives `bytes` bytes
 * @param bytes   how many; offset + bytes is within the buffer
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
 * @param device        whose memory
 * @param rotation      whose angles; not referred to afterwards
 * @param source        which kind of table
 * @param max_position  as vkrope_plan_angles: positions with |position| < max_position are covered
 * @param table         receives the table, to be destroyed by vkrope_angle_table_destroy
 * @param error         optional
 * @return as vkrope_plan_angles
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_angle_table_create(
    vkrope_device* device, const vkrope_rotation* rotation, vkrope_angle_source source,
    uint64_t max_position, vkrope_angle_table** table, vkrope_error* error);

/**
 * The table for vkrope_call::angles.
 *
 * @param table   a table
 * @param angles  struct_size set; receives the rest, which refers to the table
 * @param error   optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_angle_table_get(const vkrope_angle_table* table,
                                                                 vkrope_angles* angles,
                                                                 vkrope_error* error);

/** Destroys a table. */
VKROPE_API void vkrope_angle_table_destroy(vkrope_angle_table* table);

/** What a vkrope_host_rotation works on. Q or K may be absent (0 heads), and V, which goes along
 * with them. */
typedef struct vkrope_host_shape {
    size_t struct_size;     /**< sizeof this struct */
    uint32_t batch;         /**< sequences; 0: 1 */
    uint32_t tokens;        /**< tokens of each */
    uint32_t q_heads;       /**< query heads; 0: no Q */
    uint32_t k_heads;       /**< key heads; 0: no K */
    uint32_t q_head_dim;    /**< 0: as the rotation has it; of latent attention, what ends with the
                               window */
    uint32_t k_head_dim;    /**< 0: likewise */
    vkrope_element element; /**< of all tensors, in and out */
    vkrope_layout layout;   /**< of all tensors */
    const int32_t* positions; /**< [tokens] for all sequences, or [batch, tokens]; null: implicit */
    size_t position_count;    /**< numbers in positions */
    int32_t first_position;   /**< implicit: position of token 0 of every sequence */
    vkrope_angle_source angles; /**< which kind of table */
    vkrope_mapping mapping;     /**< how the work is laid out */
    VkBool32 in_place; /**< false: the device keeps input and output apart, so that a run can be
                          repeated */
    vkrope_conversion conversion; /**< how f16 is converted */
    /** Positions are [axes, batch, tokens], for the rotation's sections; 0: one position a token,
     * which all axes share. */
    uint32_t axes;
    uint32_t v_heads;    /**< value heads; 0: no V */
    uint32_t v_head_dim; /**< 0: as K's */
} vkrope_host_shape;

/** Rotates tensors that live in host memory: table and buffers for one rotation and one shape. */
typedef struct vkrope_host_rotation vkrope_host_rotation;

/**
 * Makes the table and the buffers; compiles when the device first meets this kind of rotation.
 *
 * @param device         where to rotate
 * @param rotation       what to do; not referred to afterwards
 * @param shape          on what
 * @param host_rotation  receives the object, to be destroyed by vkrope_host_rotation_destroy
 * @param error          optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field that breaks its rule;
 * VKROPE_ERROR_LIMIT_EXCEEDED for tensors or a table that are too large; VKROPE_ERROR_NOT_SUPPORTED
 * for what this version or the device does not have
 */
VKROPE_NODISCARD VKROPE_API vkrope_result vkrope_host_rotation_create(
    vkrope_device* device, const vkrope_rotation* rotation, const vkrope_host_shape* shape,
    vkrope_host_rotation** host_rotation, vkrope_error* error);

/** Bytes of Q, or 0 for an absent one or a null pointer. */
VKROPE_API size_t vkrope_host_rotation_q_bytes(const vkrope_host_rotation* host_rotation);
/** Bytes of K, or 0 for an absent one or a null pointer. */
VKROPE_API size_t vkrope_host_rotation_k_bytes(const vkrope_host_rotation* host_rotation);
/** Bytes of V, or 0 for an absent one or a null pointer. */
VKROPE_API size_t vkrope_host_rotation_v_bytes(const vkrope_host_rotation* host_rotation);

/**
 * Copies Q, K and V to the device.
 *
 * @param host_rotation  where to
 * @param q              vkrope_host_rotation_q_bytes bytes; null where Q is absent
 * @param k              vkrope_host_rotation_k_bytes bytes; null where K is absent
 * @param v              vkrope_host_rotation_v_bytes bytes; null where V is absent
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_upload(vkrope_host_rotation* host_rotation, const void* q, const void* k,
                            const void* v, vkrope_error* error);

/**
 * Rotates the Q and K that were uploaded, and V goes along; in place, rotates what the last run
 * left. Waits for it.
 *
 * @param host_rotation  what to rotate
 * @param direction      forward or inverse
 * @param nanoseconds    optional; receives what the device spent on it, or -1 where that is not
 * known
 * @param error          optional
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_run(vkrope_host_rotation* host_rotation, vkrope_direction direction,
                         double* nanoseconds, vkrope_error* error);

/** What may change from one run of a vkrope_host_rotation to the next. What is given here stays for
 * the runs after it. */
typedef struct vkrope_host_run {
    size_t struct_size;       /**< sizeof this struct */
    const int32_t* positions; /**< as many as the shape has, and in their order; null: no change */
    size_t position_count;    /**< numbers in positions */
    vkrope_direction direction; /**< forward or inverse */
    VkBool32 moves;         /**< implicit positions: first_position counts; without, it must be 0 */
    int32_t first_position; /**< with `moves`: position of token 0 of every sequence */
    uint32_t reserved;      /**< 0 */
} vkrope_host_run;

/**
 * As vkrope_host_rotation_run, with positions of this run, as a decoder has them from step to step.
 * The table grows as far as they reach; the angle source stays, so that bits do.
 *
 * @param host_rotation  what to rotate
 * @param run            direction and positions
 * @param nanoseconds    optional; receives what the device spent on it, or -1 where that is not
 * known
 * @param error          optional
 * @return VKROPE_ERROR_INVALID_ARGUMENT for a field that breaks its rule;
 * VKROPE_ERROR_LIMIT_EXCEEDED for a position that no table of this angle source reaches
 */
VKROPE_NODISCARD VKROPE_API vkrope_result
vkrope_host_rotation_run_at(vkrope_host_rotation* host_rotation, const vkrope_host_run* run,
                            double* nanoseconds, vkrope_error* error);

/**
 * Copies the rotated Q and K, and V, from the device.
 *
 * @param host_rotation  where from
 * @param q              receives vkrope_host_rotation_q_bytes bytes; null where Q is absent
 * @param k              receives vkrope_host_rotation_k_bytes bytes; null where K is absent
 * @param v              receives vkrope_host_rotation_v_bytes bytes; null where V is absent
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
