// SPDX-License-Identifier: MIT
#include "conformance/builtin/trial_memory.hpp"

#include <map>

namespace vkrope::conformance {

void place(const Trial& trial, Arrangement arrangement, bool output, Memory& memory, TensorRows& q,
           TensorRows& k, TensorRows& v) {
    const KernelInfo& info = trial.info;
    const Piece piece = arrange(arrangement, trial.shape, std::max(info.tensor[Q].head_dim, 1u),
                                std::max(info.tensor[K].head_dim, 1u), info.tensor[V].head_dim);
    std::map<std::size_t, std::uint64_t> pieces;  // keyed by element size in bytes
    const auto put = [&](const Placed& placed, const TensorInfo& width, TensorRows& tensor) {
        const Element type = output ? width.out : width.in;
        const auto [found, is_new] = pieces.try_emplace(element_bytes(type));
        if (is_new) {
            found->second = memory.take(piece.elements * element_bytes(type));
        }
        (output ? tensor.out : tensor.in) = placed;
        (output ? tensor.out : tensor.in).rows.type = type_of(type);
        (output ? tensor.out_byte : tensor.in_byte) = found->second;
    };
    put(piece.q, info.tensor[Q], q);
    put(piece.k, info.tensor[K], k);
    if (info.tensor[V].head_dim > 0) {
        put(piece.v, info.tensor[V], v);
    }
}

void fill(const TensorRows& tensor, const Bytes& rows, Memory& memory) {
    const reference::Tensor& in = tensor.in.rows;
    const std::uint64_t bytes = in.head_dim * TensorRows::size(tensor.in);
    reference::each_row(in, [&](std::uint64_t row, std::uint64_t first) {
        const std::uint64_t source = in.head_stride == 0 ? row / in.heads * in.heads
                                                         : row;  // broadcast: head 0
        std::memcpy(&memory.before[tensor.first_in() + first * TensorRows::size(tensor.in)],
                    &rows[source * bytes], bytes);
    });
}

void let_change(const TensorRows& tensor, Memory& memory) {
    const reference::Tensor& out = tensor.out.rows;
    reference::each_row(out, [&](std::uint64_t, std::uint64_t first) {
        memory.let_change(tensor.first_out() + first * TensorRows::size(tensor.out),
                          out.head_dim * TensorRows::size(tensor.out));
    });
}

Bytes packed_rows(const TensorRows& tensor, const Bytes& memory) {
    const reference::Tensor& out = tensor.out.rows;
    const std::uint64_t bytes = out.head_dim * TensorRows::size(tensor.out);
    Bytes packed(out.batch * out.tokens * out.heads * bytes);
    reference::each_row(out, [&](std::uint64_t row, std::uint64_t first) {
        std::memcpy(&packed[row * bytes],
                    &memory[tensor.first_out() + first * TensorRows::size(tensor.out)], bytes);
    });
    return packed;
}

}  // namespace vkrope::conformance
