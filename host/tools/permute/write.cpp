// SPDX-License-Identifier: MIT
// Writes a checkpoint again, a few MiB at a time.
#include <algorithm>
#include <cstring>

#include "permute/permute.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

class Writer {
   public:
    Writer(const safetensors::File& file, OutputFile& out)
        : file_(file), out_(out), read_(piece_bytes), progress_("permuting") {}

    /// Copies the bytes from `begin` to `end` of the file.
    void copy(std::uint64_t begin, std::uint64_t end) {
        while (begin < end) {
            const std::span<std::byte> piece(
                read_.data(),
                static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, piece_bytes)));
            file_.read(begin, piece);
            put(piece);
            begin += piece.size();
        }
    }

    void permute(const PermutedTensor& tensor, Pairing to, std::uint64_t data_offset) {
        const std::uint64_t head_bytes = tensor.channels * tensor.row_bytes;
        std::uint64_t head = data_offset + tensor.tensor->begin;
        for (std::uint64_t i = 0; i < tensor.heads; ++i, head += head_bytes) {
            if (head_bytes <= piece_bytes) {
                permute_in_memory(tensor, to, head);
                continue;
            }
            for (std::uint64_t channel = 0; channel < tensor.channels; ++channel) {
                const std::uint64_t row = head +
                                          source_channel(tensor, to, channel) * tensor.row_bytes;
                copy(row, row + tensor.row_bytes);
            }
        }
    }

   private:
    void permute_in_memory(const PermutedTensor& tensor, Pairing to, std::uint64_t head) {
        const auto row_bytes = static_cast<std::size_t>(tensor.row_bytes);
        const std::span<std::byte> piece(read_.data(),
                                         static_cast<std::size_t>(tensor.channels) * row_bytes);
        file_.read(head, piece);
        moved_.resize(piece.size());
        for (std::uint64_t channel = 0; channel < tensor.channels; ++channel) {
            std::memcpy(moved_.data() + channel * row_bytes,
                        piece.data() + source_channel(tensor, to, channel) * row_bytes, row_bytes);
        }
        put(moved_);
    }

    void put(std::span<const std::byte> bytes) {
        out_.write(bytes);
        written_ += bytes.size();
        progress_.update(double(written_) / double(file_.bytes()));
    }

    const safetensors::File& file_;
    OutputFile& out_;
    std::vector<std::byte> read_, moved_;
    std::uint64_t written_ = 0;
    ProgressLine progress_;
};

}  // namespace

std::uint64_t source_channel(const PermutedTensor& tensor, Pairing to,
                             std::uint64_t channel) noexcept {
    for (const Window& window : tensor.windows) {
        const std::uint64_t first = std::uint64_t{tensor.rotary_offset} + window.offset,
                            pairs = window.rotary_dim / 2;
        if (channel < first || channel >= first + window.rotary_dim) {
            continue;
        }
        const std::uint64_t i = channel - first;
        return first + (to == Pairing::interleaved ? i / 2 + (i % 2) * pairs
                        : i < pairs                ? 2 * i
                                                   : 2 * (i - pairs) + 1);
    }
    return channel;
}

void write_permuted(const safetensors::File& file, const PermutePlan& plan, Pairing to,
                    OutputFile& out) {
    std::vector<const PermutedTensor*> by_place;
    for (const PermutedTensor& tensor : plan.permuted) {
        by_place.push_back(&tensor);
    }
    std::sort(by_place.begin(), by_place.end(),
              [](const PermutedTensor* one, const PermutedTensor* other) {
                  return one->tensor->begin < other->tensor->begin;
              });
    Writer writer(file, out);
    const std::uint64_t data_offset = file.header().data_offset;
    std::uint64_t done = 0;
    for (const PermutedTensor* tensor : by_place) {
        writer.copy(done, data_offset + tensor->tensor->begin);
        writer.permute(*tensor, to, data_offset);
        done = data_offset + tensor->tensor->end;
    }
    writer.copy(done, file.bytes());
}

}  // namespace vkrope::tools
