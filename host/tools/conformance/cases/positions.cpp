// SPDX-License-Identifier: MIT
#include "conformance/cases/positions.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "conformance/cases/fields.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::int64_t lowest_id = std::numeric_limits<std::int32_t>::min(),
                       highest_id = std::numeric_limits<std::int32_t>::max();

std::uint64_t distance(std::int64_t position) noexcept {
    return position < 0 ? 0 - static_cast<std::uint64_t>(position)
                        : static_cast<std::uint64_t>(position);
}

/// Returns the largest |position| of those that fit in 32 bits. The library reports all others as
/// not covered.
std::uint64_t largest_of(const std::vector<std::int64_t>& positions) noexcept {
    std::uint64_t largest = 0;
    for (const std::int64_t position : positions) {
        if (position > lowest_id && position <= highest_id) {
            largest = std::max(largest, distance(position));
        }
    }
    return largest;
}

CasePositions implicit_positions(std::int64_t first, std::uint32_t batch, std::uint32_t tokens,
                                 std::int64_t batch_stride) {
    const std::int64_t last = first + (std::max<std::int64_t>(batch, 1) - 1) * batch_stride +
                              std::max<std::int64_t>(tokens, 1) - 1;
    if (first < lowest_id || last > highest_id) {
        unsupported("positions from {} to {}: they must be int32", first, last);
    }
    CasePositions prepared;
    prepared.positions.first = static_cast<std::int32_t>(first);
    prepared.positions.batch_stride = batch_stride == 0 ? broadcast : batch_stride;
    prepared.largest = std::max(distance(first), distance(last));
    return prepared;
}

/// Sets the strides of ids, whose axes are letters: A position axis, B batch, S or T tokens.
CasePositions explicit_positions(const CaseFolder& folder, const PositionsCase& described,
                                 std::uint32_t batch, std::uint32_t tokens) {
    const CaseFolder::IntegerList ids = folder.integers(*described.numbers);
    const std::string& axes = described.axes;
    if (axes.size() != ids.shape.size()) {
        wrong_file("positions.axes '{}' names {} axes; the ids have shape {}", shown_text(axes),
                   axes.size(), npy::shape_text(ids.shape));
    }
    CasePositions prepared;
    prepared.source = VKROPE_POSITIONS_IDS;
    prepared.positions.int64 = ids.wide;
    prepared.positions.batch_stride = broadcast;  // replaced if there is an axis B
    bool has_axes = false, has_tokens = false;
    std::int64_t stride = 1;
    for (std::size_t at = axes.size(); at-- > 0;) {
        const auto steps = static_cast<std::int64_t>(ids.shape[at]);
        const auto must_be = [&](std::int64_t wanted) {
            if (steps != wanted) {
                wrong_file("positions: axis {} of '{}' has {} steps; the tensors have {}", axes[at],
                           axes, steps, wanted);
            }
        };
        if ((axes[at] == 'S' || axes[at] == 'T') && !has_tokens) {
            must_be(tokens);
            has_tokens = true;
            prepared.positions.token_stride = stride;
        } else if (axes[at] == 'B' && axes.find('B') == at) {
            if (steps != 1) {  // with 1, all sequences share one row
                must_be(batch);
            }
            prepared.positions.batch_stride = steps == 1 ? broadcast : stride;
        } else if (axes[at] == 'A' && !has_axes) {
            has_axes = true;
            prepared.axes = static_cast<std::uint32_t>(std::min<std::int64_t>(steps, 256));
            prepared.positions.axis_stride = stride;
            prepared.source = VKROPE_POSITIONS_AXIS_IDS;
        } else {
            unsupported("positions.axes '{}'", shown_text(axes));
        }
        stride *= std::max<std::int64_t>(steps, 1);
    }
    if (!has_tokens && tokens != 1) {
        wrong_file("positions.axes '{}' has no axis of the {} tokens", shown_text(axes), tokens);
    }
    prepared.ids = ids.bytes;
    prepared.largest = largest_of(ids.values);
    return prepared;
}

/// Expands offsets, ragged sequences and shards: the library writes the ids, which are checked.
class Expansion {
   public:
    Expansion(DeviceUnderTest& device, const CaseFolder& folder)
        : device_(device), folder_(folder) {}

    PositionCall call;

    void add_offsets(const std::optional<Integers>& offsets, std::size_t sequences) {
        if (!offsets) {
            return;
        }
        const CaseFolder::IntegerList list = folder_.integers(*offsets);
        if (list.values.size() != sequences) {
            wrong_file("positions: {} offsets for {} sequences", list.values.size(), sequences);
        }
        offsets_ = device_.upload(list.bytes.data(), list.bytes.size());
        call.offsets = offsets_.whole();
        call.offsets_int64 = list.wide;
    }

    /// Adds the starts of sequences with `whole` tokens in total and lengths divisible by
    /// `multiple`. Returns the number of sequences.
    std::size_t add_cu_seqlens(const Integers& cu_seqlens, std::uint64_t whole,
                               std::uint32_t multiple) {
        const CaseFolder::IntegerList list = folder_.integers(cu_seqlens);
        if (list.values.size() < 2) {
            wrong_file(
                "positions.cu_seqlens has {} numbers; it must have one more than there are "
                "sequences",
                list.values.size());
        }
        if (list.values.front() != 0) {
            wrong_file("positions.cu_seqlens begins with {}; it must begin with 0",
                       list.values.front());
        }
        for (std::size_t i = 1; i < list.values.size(); ++i) {
            const std::int64_t start = list.values[i - 1], end = list.values[i];
            if (end < start) {
                wrong_file("positions.cu_seqlens[{}] is {} after {}; it must ascend", i, end,
                           start);
            }
            if ((end - start) % multiple != 0) {
                wrong_file(
                    "positions.cu_seqlens[{}] is {} after {}; the length of a sequence must be a "
                    "multiple of 2 cp_size, {}",
                    i, end, start, multiple);
            }
        }
        if (static_cast<std::uint64_t>(list.values.back()) != whole) {
            wrong_file("positions.cu_seqlens ends with {}; the tensors have {} tokens",
                       list.values.back(), whole);
        }
        cu_seqlens_ = device_.upload(list.bytes.data(), list.bytes.size());
        call.cu_seqlens = cu_seqlens_.whole();
        call.cu_seqlens_int64 = list.wide;
        call.sequences = static_cast<std::uint32_t>(list.values.size() - 1);
        return call.sequences;
    }

    CasePositions run(const PositionsCase& described) {
        CasePositions prepared;
        prepared.source = VKROPE_POSITIONS_IDS;
        std::vector<std::int32_t> ids(std::size_t{std::max(call.batch, 1u)} * call.tokens);
        prepared.positions.batch_stride = call.tokens;
        if (ids.empty()) {
            return prepared;
        }
        Buffer out = device_.upload(ids.data(), ids.size() * sizeof ids[0]);
        call.out = out.whole();
        device_.expand(call);
        check(out.download(ids.data(), ids.size() * sizeof ids[0]));
        const auto bytes = std::as_bytes(std::span(ids));
        prepared.ids.assign(bytes.begin(), bytes.end());
        const std::vector<std::int64_t> values(ids.begin(), ids.end());
        compare_resolved(described, values);
        prepared.largest = largest_of(values);
        return prepared;
    }

   private:
    void compare_resolved(const PositionsCase& described,
                          const std::vector<std::int64_t>& ids) const {
        if (described.resolved.empty()) {
            return;
        }
        const CaseFolder::IntegerList expected = folder_.integers(described.resolved);
        if (expected.values.size() != ids.size() && expected.values.size() != call.tokens) {
            wrong_file("{}: has {} positions for {} tokens", described.resolved,
                       expected.values.size(), ids.size());
        }
        // The file has shape [batch, tokens], or [tokens, batch] if the tensor has that order.
        const std::size_t tokens = call.tokens,
                          batch = expected.values.size() / std::max<std::size_t>(tokens, 1);
        const bool by_token = expected.shape.size() == 2 && expected.shape[0] == tokens &&
                              expected.shape[1] != tokens;
        for (std::size_t index = 0; index < ids.size(); ++index) {
            const std::size_t of_list = index % expected.values.size();
            const std::int64_t wanted =
                expected.values[by_token ? of_list % tokens * batch + of_list / tokens : of_list];
            if (ids[index] != wanted) {
                throw Refusal(Verdict::fail, tools::ExitCode::verification_failed,
                              fmt::format("position of token {} is {}, expected {}", index,
                                          ids[index], wanted));
            }
        }
    }

    DeviceUnderTest& device_;
    const CaseFolder& folder_;
    Buffer offsets_, cu_seqlens_;
};

std::int32_t first_of(const PositionsCase& described) {
    if (described.value < lowest_id || described.value > highest_id) {
        unsupported("positions from {} on: they must be int32", described.value);
    }
    return static_cast<std::int32_t>(described.value);
}

}  // namespace

Positions CasePositions::of(std::uint32_t first, std::uint32_t batch, std::uint32_t used_axes,
                            std::optional<std::uint32_t> axis) const {
    Positions part = positions;
    const std::int64_t batch_stride = part.batch_stride == broadcast ? 0 : part.batch_stride;
    if (source == VKROPE_POSITIONS_IMPLICIT) {
        part.first = static_cast<std::int32_t>(part.first + first * batch_stride);
        return part;
    }
    const std::int64_t id_bytes = part.int64 ? 8 : 4;
    const auto skipped = static_cast<VkDeviceSize>(
        (first * batch_stride + axis.value_or(0) * part.axis_stride) * id_bytes);
    part.ids.offset += skipped;
    part.ids.range -= skipped;
    // The range must be the part's own bytes, as far as its rows are not among those of others.
    const auto limit = [&](std::int64_t elements) {
        part.ids.range = std::min(part.ids.range, static_cast<VkDeviceSize>(elements * id_bytes));
    };
    if (part.axis_stride > std::max(part.token_stride, batch_stride)) {
        limit((axis ? 1 : used_axes) * part.axis_stride);
    }
    if (batch_stride > part.token_stride && (axis || source == VKROPE_POSITIONS_IDS)) {
        limit(batch * batch_stride);
    }
    if (axis) {
        part.axis_stride = 0;
    }
    return part;
}

CasePositions prepare_positions(DeviceUnderTest& device, const CaseFolder& folder,
                                const PositionsCase& described, std::uint32_t batch,
                                std::uint32_t tokens) {
    Expansion expansion(device, folder);
    expansion.call.batch = batch;
    expansion.call.tokens = tokens;
    const auto need_one_row = [&] {
        if (batch != 1) {
            unsupported("positions: cu_seqlens with a batch of {}", batch);
        }
    };
    switch (described.kind) {
        case PositionKind::none:
            unsupported("positions.kind 'none' without a row of cos and sin for each token");
        case PositionKind::offset: return implicit_positions(described.value, batch, tokens, 0);
        case PositionKind::explicit_ids:
            return explicit_positions(folder, described, batch, tokens);
        case PositionKind::per_batch_offset: expansion.add_offsets(described.numbers, batch); break;
        case PositionKind::varlen:
            need_one_row();
            expansion.call.first = first_of(described);
            expansion.add_offsets(described.numbers,
                                  expansion.add_cu_seqlens(*described.cu_seqlens, tokens, 1));
            break;
        case PositionKind::context_parallel: {
            expansion.call.cp_size = described.cp_size;
            expansion.call.cp_rank = described.cp_rank;
            std::size_t sequences = batch;
            if (described.cu_seqlens) {
                need_one_row();
                // With one rank, sequences are whole and may have any length.
                const std::uint32_t chunks = described.cp_size == 1 ? 1 : 2 * described.cp_size;
                sequences = expansion.add_cu_seqlens(
                    *described.cu_seqlens, std::uint64_t{described.cp_size} * tokens, chunks);
            }
            expansion.add_offsets(described.numbers, sequences);
            break;
        }
    }
    return expansion.run(described);
}

CasePositions row_per_token(std::uint32_t batch, std::uint32_t tokens, bool shared) {
    return implicit_positions(0, batch, tokens, shared ? 0 : tokens);
}

}  // namespace vkrope::conformance
