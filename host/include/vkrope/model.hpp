// SPDX-License-Identifier: MIT
// Tier "model": from the files that models come with to a Rotation.
// Every function is thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "vkrope/frequencies.hpp"

namespace vkrope {

/// Which RoPE of a model that has several.
struct ModelQuery {
    /// One of the model's layer types: "full_attention", "sliding_attention", ...
    std::string_view layer_type = {};
    std::uint64_t seq_len =
        0;  ///< length of the sequence, for scalings that depend on it; 0: unknown. At most 2^31
    int layer = -1;  ///< a single layer; -1: none in particular. Not together with layer_type
    std::string_view tower = "text";  ///< "text" or "vision"
    /// Instead of the one that the model_type has: for weights that were permuted.
    std::optional<Pairing> pairing = {};
};

/// Reads the RoPE of a Hugging Face config.json.
///
/// Both generations are read: `rope_parameters` (transformers 5; also one per layer type) and
/// `rope_theta` with `rope_scaling` (4), the type under `rope_type` or `type`. Types: default,
/// linear, dynamic, ntk (GTE's), yarn, longrope (su), llama3, proportional, and mrope and xdrope,
/// which name positions on several axes. Of a multi-modal model it is the language model's, in
/// text_config and its like, or that of the vision tower. Where layers differ and the query names
/// none it is full attention's, or, where those have none, that of the layers that rotate.
///
/// Multi-head latent attention: head_dim is qk_rope_head_dim, the channels that turn. A query row
/// turns from q_rotary_offset on, which is qk_nope_head_dim, and a row of the latent cache from
/// k_rotary_offset on, which is kv_lora_rank; both end there. YaRN is DeepSeek's, which sets
/// softmax_scale.
///
/// A layer without RoPE has rotates = false, and neither rotary_dim nor frequencies.
///
/// A type or model without RoPE that we know is Code::not_supported and names it; a field that is
/// missing, of the wrong kind or out of range, or that another contradicts, is Code::invalid_data
/// and names it. What was assumed or ignored is in Rotation::warnings. A document that has more
/// than 16 MiB, 524288 values, 64 levels of nesting or 64 layer types is Code::invalid_data: to
/// read the worst that is left takes a second or two and 300 MB. There are at most 100 warnings and
/// one that counts the others. Out of memory is Code::out_of_host_memory; but where memory runs out
/// while the JSON document is destroyed, the JSON library, whose destructor allocates, ends the
/// program.
///
/// json_text  the content of the file, UTF-8
/// query      what it asks for and the model does not have is Code::invalid_argument
Result<Rotation> from_hf_config(std::string_view json_text, const ModelQuery& query = {});

/// Reads a part of a file: puts the bytes from `offset` on to `to` and returns how many they are;
/// other than `bytes`, it has failed. No part is asked for that lies beyond the end of the file.
using GgufRead = std::function<std::size_t(std::uint64_t offset, void* to, std::size_t bytes)>;

/// Reads the RoPE of a GGUF file, version 2 or 3, as llama.cpp computes it. No weights are read:
/// the metadata, where the tensors lie, and of their data rope_freqs, rope_factors_long and
/// rope_factors_short.
///
/// Pairing and layers follow from general.architecture, and the pairing is that of the file's own Q
/// and K weights: a converter permutes Llama's, which are interleaved there and half_split in a
/// config.json. An architecture that is unknown, or has no RoPE, is Code::not_supported and named;
/// an unknown one is read where the query has a pairing. Big-endian files, version 1 and the parts
/// of a split file are Code::not_supported, too.
///
/// Scalings: none, linear, yarn, longrope, divisors of each pair (Llama 3, Gemma 4), alpha
/// (HunYuan). Rotation::rope_type is "default", "linear", "yarn", "longrope" or "rope_freqs".
/// Tokens of M-RoPE have ggml's axes: 3, or 4 where pairs lie beyond their sections. Latent
/// attention, layers without RoPE, warnings and errors are as from_hf_config's; there is no tower
/// but "text".
///
/// Sizes in the file are not believed, and time and memory are bounded whatever it says: a second,
/// and some 20 MiB. What exceeds one of these limits is Code::invalid_data, and named with it: 256
/// MiB of metadata and tensor infos; 16384 keys; 131072 tensors of 4 dimensions; 65535 bytes of a
/// name, 1 MiB of all keys together; 4194304 strings and lists that are elements of lists; lists 8
/// deep. Real files stay far below. A list of numbers, or a string, of any length is passed in one
/// step; those that matter have at most 65536 numbers and 256 bytes.
///
/// file_bytes  size of the whole file; at most 2^62
/// query       what it asks for and the model does not have is Code::invalid_argument
Result<Rotation> from_gguf(std::uint64_t file_bytes, const GgufRead& read,
                           const ModelQuery& query = {});

/// The same of a file in memory. Its beginning will do, as far as it holds metadata, tensor infos
/// and the data that is read.
Result<Rotation> from_gguf(const void* data, std::size_t bytes, const ModelQuery& query = {});

/// The same of a regular file on disk.
Result<Rotation> from_gguf_file(const std::string& path, const ModelQuery& query = {});

}  // namespace vkrope
