// SPDX-License-Identifier: MIT
// Rotations in the words of FlashInfer, MLX, ONNX and TransformerEngine.
#include "vkrope/rotation_from.hpp"

#include "frequencies/plain_rotation.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // what printf's %llu takes everywhere

constexpr Pairing pairing_of(bool interleaved) noexcept {
    return interleaved ? Pairing::interleaved : Pairing::half_split;
}

Status check_interpolation(const TransformerEngineRope& rope) noexcept {
    if (Status status = require_not_negative(rope.seq_len_interpolation_factor,
                                             "seq_len_interpolation_factor");
        !status) {
        return status;
    }
    for (const auto& [length, name] :
         {std::pair{rope.pretrained_max_position_embeddings, "pretrained_max_position_embeddings"},
          std::pair{rope.max_seq_len, "max_seq_len"}}) {
        if (length > max_positions) {
            return error(Code::invalid_argument, "%s is %llu: it must be at most 2^31", name,
                         ull{length});
        }
    }
    return {};
}

}  // namespace

Result<Rotation> rotation_from_flashinfer(const FlashinferRope& rope) {
    const Dimension head = {"head_dim", rope.head_dim};
    const Dimension rotated = rope.rotary_dim != 0 ? Dimension{"rotary_dim", rope.rotary_dim}
                                                   : head;
    Result<Rotation> made = plain_rotation(head, rotated, pairing_of(rope.interleave),
                                           {"rope_theta", rope.rope_theta});
    if (!made) return made;
    Rotation& rotation = made.value;
    if (Status status = require_positive(rope.rope_scale, "rope_scale"); !status) {
        return {status, {}};
    }
    if (rope.low_freq_factor == 0 && rope.high_freq_factor == 0 && rope.old_context_len == 0) {
        if (rope.rope_scale != 1) rotation.rope_type = "linear";
        return finished(scale_linear(rotation.inv_freq, rope.rope_scale), rotation);
    }
    if (Status status = require_positive(rope.old_context_len, "old_context_len"); !status) {
        return {status, {}};
    }
    if (!(rope.low_freq_factor < rope.high_freq_factor)) {
        return {error(Code::invalid_argument,
                      "low_freq_factor is %g: it must be below high_freq_factor, which is %g",
                      rope.low_freq_factor, rope.high_freq_factor),
                {}};
    }
    rotation.rope_type = "llama3";
    const Status status = scale_llama3(
        rotation.inv_freq,
        {rope.rope_scale, rope.low_freq_factor, rope.high_freq_factor, rope.old_context_len});
    return finished(status, rotation);
}

Result<Rotation> rotation_from_mlx(const MlxRope& rope) {
    if ((rope.base != 0) == (rope.freqs != nullptr)) {
        return {error(Code::invalid_argument,
                      "base is %g and freqs %s given: exactly one of them must be", rope.base,
                      rope.freqs ? "is" : "is not"),
                {}};
    }
    const bool listed = rope.freqs != nullptr;
    Result<Rotation> made = plain_rotation({"head_dim", rope.head_dim}, {"dims", rope.dims},
                                           pairing_of(rope.traditional),
                                           {"base", listed ? 1 : rope.base});
    if (!made) return made;
    Rotation& rotation = made.value;
    const std::size_t count = listed ? rotation.inv_freq.size() : 0;
    if (rope.freq_count != count) {
        return {error(Code::invalid_argument, "freq_count is %llu: it must be %llu",
                      ull{rope.freq_count}, ull{count}),
                {}};
    }
    for (std::size_t j = 0; j < count; ++j) {
        if (!(rope.freqs[j] > 0)) {
            return {error(Code::invalid_argument, "freqs[%llu] is %g: it must be above 0", ull{j},
                          rope.freqs[j]),
                    {}};
        }
        rotation.inv_freq[j] = 1 / rope.freqs[j];
    }
    rotation.base = rope.base;
    if (Status status = require_positive(rope.scale, "scale"); !status) return {status, {}};
    if (listed || rope.scale != 1) rotation.rope_type = listed ? "freqs" : "linear";
    return finished(scale_positions(rotation.inv_freq, rope.scale), rotation);
}

Result<Rotation> rotation_from_onnx(const OnnxRope& rope) {
    if (rope.scale != 1) {
        return {error(Code::not_supported, "scale is %g: only 1 has a meaning that is certain",
                      rope.scale),
                {}};
    }
    std::uint32_t head_dim = rope.channels;
    if (!rope.four_dims && rope.num_heads != 0) {
        if (rope.channels % rope.num_heads != 0) {
            return {error(Code::invalid_argument,
                          "channels is %u: it must be a multiple of num_heads, which is %u",
                          rope.channels, rope.num_heads),
                    {}};
        }
        head_dim = rope.channels / rope.num_heads;
    } else if (!rope.four_dims) {
        if (rope.rotary_embedding_dim != 0 || rope.cache_width == 0) {
            return {error(Code::invalid_argument,
                          "num_heads is 0: it must be given for an X with three dimensions, unless "
                          "cache_width is and rotary_embedding_dim is 0"),
                    {}};
        }
        if (rope.cache_width > max_rotary_dim / 2) {
            return {error(Code::invalid_argument, "cache_width is %u: it must be at most %u",
                          rope.cache_width, max_rotary_dim / 2),
                    {}};
        }
        head_dim = 2 * rope.cache_width;
    }
    const Dimension head = {"head_size", head_dim};
    const Dimension rotated = rope.rotary_embedding_dim != 0
                                  ? Dimension{"rotary_embedding_dim", rope.rotary_embedding_dim}
                                  : head;
    Rotation rotation;
    if (Status status = check_dimensions(head, rotated); !status) return {status, {}};
    if (rope.cache_width != 0 && rope.cache_width != rotated.value / 2) {
        return {error(Code::invalid_argument, "cache_width is %u: it must be half of %s, %u",
                      rope.cache_width, rotated.name, rotated.value / 2),
                {}};
    }
    rotation.pairing = pairing_of(rope.interleaved);
    rotation.head_dim = head_dim;
    rotation.rotary_dim = rotated.value;
    return {{}, std::move(rotation)};
}

Result<Rotation> rotation_from_transformer_engine(const TransformerEngineRope& rope) {
    if (!(rope.rotary_percent > 0)) {
        return {error(Code::invalid_argument, "rotary_percent is %g: it must be above 0",
                      rope.rotary_percent),
                {}};
    }
    const Dimension head = {"dim", rope.dim};
    const Dimension rotated = rope.rotary_percent < 1
                                  ? Dimension{"rotary_percent of dim",
                                              std::uint32_t(rope.dim * rope.rotary_percent)}
                                  : head;
    Result<Rotation> made = plain_rotation(head, rotated, pairing_of(rope.interleaved),
                                           {"rotary_base", rope.rotary_base});
    if (!made) return made;
    if (Status status = check_interpolation(rope); !status) return {status, {}};
    const double factor = rope.seq_len_interpolation_factor;
    const double trained = double(rope.pretrained_max_position_embeddings);
    if (factor == 0 || trained == 0) return made;
    Rotation& rotation = made.value;
    rotation.rope_type = "linear";
    rotation.max_position = rope.pretrained_max_position_embeddings;
    const bool beyond = double(rope.max_seq_len) > trained * factor;
    rotation.longest_seq_len = beyond ? rope.max_seq_len
                                      : std::uint64_t(std::min(trained * factor, 0x1p31));
    return finished(scale_positions(rotation.inv_freq,
                                    1 / (beyond ? double(rope.max_seq_len) / trained : factor)),
                    rotation);
}

}  // namespace vkrope
