// SPDX-License-Identifier: MIT
// Tier "model": reads a RopeParams from model files.
// Every function is thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "vkrope/vkrope.hpp"

namespace vkrope {

/// Selects one RoPE of a model that has several.
struct ModelQuery {
    /// One of the model's layer types, such as "full_attention" or "sliding_attention"; empty: its
    /// only one, else full attention with a warning.
    std::string_view layer_type = {};
    std::uint64_t seq_len =
        0;  ///< sequence length if the scaling needs it, at most 2^31; 0: unknown
    int layer =
        -1;  ///< a single layer, counted from 0, not together with layer_type; -1: not given
    std::string_view tower = "text";  ///< "text" or "vision"
    /// Replaces the pairing of the model_type, for weights that were permuted; needed where the
    /// pairing of a model is not known.
    Pairing pairing = VKROPE_PAIRING_NONE;
};

/// Reads the RoPE of a Hugging Face config.json.
///
/// Reads `rope_parameters` (transformers 5; also one per layer type) and `rope_theta` with
/// `rope_scaling` (transformers 4), with the type in `rope_type` or `type`. Types: default, linear,
/// dynamic, ntk (GTE's), yarn, longrope (su), llama3, proportional, and mrope and xdrope, which
/// have positions on several axes. For a multi-modal model, reads the language model (text_config
/// and similar) or the vision tower. If layers differ and the query selects none, reads the
/// full-attention layers, or, if those have no RoPE, the layers that rotate.
///
/// Also reads the params.json of Mistral's original checkpoints, which has `dim` and no model_type;
/// one with a key that is not known is VKROPE_ERROR_NOT_SUPPORTED, since the rest of it is in code.
///
/// A key that says a scaling, a choice of layers or norms of Q and K and is not read is a warning,
/// or VKROPE_ERROR_NOT_SUPPORTED if the angles would be others; so is one in an object that nobody
/// reads, unless the object describes another part of the model. A number that is listed for each
/// layer is that of the layers that are asked for. A value that contradicts another is accepted,
/// with a warning, if it is that of another kind of layer.
///
/// Multi-head latent attention: head_dim is qk_rope_head_dim, the rotated channels. They start at
/// q_rotary_offset = qk_nope_head_dim in a query row and at k_rotary_offset = kv_lora_rank in a row
/// of the latent cache; both rows end with them. YaRN is DeepSeek's, which sets softmax_scale. If
/// neither the class nor `rope_interleave` says the pairing, the query must.
///
/// The indexer of sparse attention (DeepSeek V3.2, GLM 5) is the layer type "indexer".
///
/// A layer without RoPE has rotates = false, no rotary_dim and no frequencies.
///
/// RopeParams::ops says which norms of Q, K and V the model's class has, with the eps of the file
/// or else of the class; whether it clamps them; and how it scales queries by position. Whether
/// those norms are known is an answer of its own, ModelOps::norms_known: not for diffusion
/// transformers, unknown classes, classes whose versions differ, and files with a key that says
/// norms and that the class does not have. A warning says so.
///
/// An unsupported scaling type, or a model whose RoPE this library does not know, is
/// VKROPE_ERROR_NOT_SUPPORTED and named. VKROPE_ERROR_INVALID_DATA names a field that is missing,
/// of the wrong kind, out of range or contradicted by another. RopeParams::warnings lists what was
/// assumed or ignored: at most 100 warnings, and one that counts the rest. A document with more
/// than 16 MiB, 524288 values, 64 levels of nesting or 64 layer types is VKROPE_ERROR_INVALID_DATA;
/// the worst accepted document takes a second or two and 300 MB. Lack of memory is
/// VKROPE_ERROR_OUT_OF_HOST_MEMORY. Exception: if memory runs out while the JSON document is
/// destroyed, the JSON library, whose destructor allocates, ends the program.
///
/// json_text  the content of the file, UTF-8
/// query      if the model does not have what it selects: VKROPE_ERROR_INVALID_ARGUMENT
Result<RopeParams> from_hf_config(std::string_view json_text, const ModelQuery& query = {});

/// Reads a part of a file: copies the bytes from `offset` on to `to` and returns their number; any
/// number other than `bytes` is a failure. Never called for a part beyond the end of the file.
using GgufRead = std::function<std::size_t(std::uint64_t offset, void* to, std::size_t bytes)>;

/// Reads the RoPE of a GGUF file, version 2 or 3, as llama.cpp computes it. Reads the metadata, the
/// tensor infos, and the data of rope_freqs, rope_factors_long and rope_factors_short; no weights.
///
/// general.architecture determines the pairing and the layers. The pairing is the one of the file's
/// Q and K weights: converters permute Llama's, so it is interleaved there and half_split in a
/// config.json. An unknown architecture or one without RoPE is VKROPE_ERROR_NOT_SUPPORTED and
/// named; an unknown one is read if the query has a pairing. Big-endian files and version 1 are
/// also VKROPE_ERROR_NOT_SUPPORTED.
///
/// The first part of a split file has its metadata, and is read with a warning that tensors of the
/// other parts were not seen; without any tensor, and for another part, it is
/// VKROPE_ERROR_NOT_SUPPORTED.
///
/// Scalings: none, linear, yarn, longrope, per-pair divisors (Llama 3, Gemma 4), alpha (HunYuan).
/// RopeParams::rope_type is "default", "linear", "yarn", "longrope" or "rope_freqs". M-RoPE has
/// ggml's axes: 3, or 4 if pairs lie beyond their sections. Latent attention, layers without RoPE,
/// warnings and errors are as in from_hf_config; the only tower is "text". rope.freq_base,
/// rope.dimension_count and the widths of rows may be lists of one number a layer, of which a 0 is
/// a layer without RoPE; a single number beside a list must be that of some layer.
///
/// RopeParams::ops says which norms of Q and K the layer has weights for, with the eps of the
/// file; what the architecture normalises without weights and clamps; and how it scales queries by
/// position. A norm that spans neither one head nor all heads is left out, with a warning. The
/// norms of a layer without tensors, of an unknown architecture, and of a file with a key that says
/// norms and no tensors of them are not known: norms_known.
///
/// Sizes in the file are not trusted; any file takes at most a second and about 20 MiB. A file that
/// exceeds one of these limits is VKROPE_ERROR_INVALID_DATA, and the message names it: 256 MiB of
/// metadata and tensor infos; 16384 keys; 131072 tensors of 4 dimensions; 65535 bytes per name, 1
/// MiB for all keys; 4194304 strings and lists inside lists; lists nested 8 deep. Real files stay
/// far below. Lists of numbers and strings of any length are skipped in one step; those that are
/// used have at most 65536 numbers and 256 bytes.
///
/// file_bytes  size of the whole file; at most 2^62
/// query       if the model does not have what it selects: VKROPE_ERROR_INVALID_ARGUMENT
Result<RopeParams> from_gguf(std::uint64_t file_bytes, const GgufRead& read,
                             const ModelQuery& query = {});

/// As above, for a file in memory. The beginning of the file is enough if it contains the metadata,
/// the tensor infos and the data that is read.
Result<RopeParams> from_gguf(const void* data, std::size_t bytes, const ModelQuery& query = {});

/// As from_gguf(), for a regular file on disk. Reads the tensor infos of the other parts of a split
/// file, up to 1024, that lie beside it under the names of llama.cpp: "-00002-of-00003.gguf".
Result<RopeParams> from_gguf_file(const std::string& path, const ModelQuery& query = {});

}  // namespace vkrope
