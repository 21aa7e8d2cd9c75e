// SPDX-License-Identifier: MIT
#include "conformance/cases/scales.hpp"

#include <bit>
#include <limits>

#include "conformance/cases/ops.hpp"

namespace vkrope::conformance {
namespace {

/// A number that no row makes: scales are not negative.
constexpr std::uint32_t poisoned_scale = 0xa5a5a5a5;

}  // namespace

CaseScales::CaseScales(DeviceUnderTest& device, const CaseTensor& tensor, const CaseCache* cache) {
    const std::uint64_t heads = tensor.heads, tokens = std::uint64_t{tensor.batch} * tensor.tokens;
    if (tensor.has_batch) {
        shape_.push_back(tensor.batch);
    }
    if (tensor.has_tokens) {
        shape_.push_back(tensor.tokens);
    }
    shape_.push_back(heads);
    room_ = static_cast<std::size_t>((cache != nullptr ? cache->slot_count : tokens) * heads);
    for (std::uint64_t token = 0; token < tokens; ++token) {
        const std::int64_t slot = cache != nullptr ? cache->slots.values[token]
                                                   : static_cast<std::int64_t>(token);
        for (std::uint64_t head = 0; head < heads; ++head) {
            const auto row = static_cast<std::uint64_t>(slot);
            const std::uint64_t page_size = cache != nullptr ? cache->paged.page_size : 1;
            const std::uint64_t at = cache != nullptr && cache->heads_before_rows
                                         ? (row / page_size * heads + head) * page_size +
                                               row % page_size
                                         : row * heads + head;
            places_.push_back(slot < 0 ? -1 : static_cast<std::int64_t>(at));
        }
    }
    const std::vector<std::uint32_t> poison(room_, poisoned_scale);
    buffer_ = device.upload(poison.data(), poison.size() * sizeof(float));
}

MadeScales CaseScales::read(DeviceUnderTest& device) {
    std::vector<std::uint32_t> all(room_);
    if (room_ > 0) {
        device.download(buffer_, all.data(), all.size() * sizeof(float));
    }
    MadeScales made = {.shape = shape_, .values = {}, .stray = 0};
    std::vector<bool> named(room_);
    for (const std::int64_t place : places_) {
        if (place < 0) {
            made.values.push_back(std::numeric_limits<float>::quiet_NaN());
            continue;
        }
        const auto at = static_cast<std::size_t>(place);
        made.values.push_back(std::bit_cast<float>(all[at]));
        named[at] = true;
    }
    for (std::size_t at = 0; at < room_; ++at) {
        made.stray += !named[at] && all[at] != poisoned_scale ? 1 : 0;
    }
    return made;
}

}  // namespace vkrope::conformance
