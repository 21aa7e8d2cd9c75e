// SPDX-License-Identifier: MIT
#include "sharded_batch.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

namespace vkrope::sharding {
namespace {

void check(const Status& status) {
    if (!status) throw std::runtime_error(status.what);
}

template <class T>
T value_of(Result<T> result) {
    check(result.status);
    return std::move(result.value);
}

template <class Object>
Owned<DescriptorArena> arena_of(const Device& device, const Owned<Object>& kernel) {
    if (device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
    return Owned<DescriptorArena>(value_of(create_arena(kernel.get(), 2)));
}

Buffer uploaded(Device& device, const Bytes& bytes) {
    Buffer buffer = value_of(Buffer::make(device, bytes.size()));
    check(buffer.upload(bytes.data(), bytes.size()));
    return buffer;
}

RopeParams rotation_of(const Batch& batch) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = batch.head_dim;
    rotation.rotary_dim = batch.head_dim;
    rotation.inv_freq.resize(batch.head_dim / 2);
    check(default_inv_freq(500000.0, batch.head_dim, rotation.inv_freq.data()));
    return rotation;
}

// Returns a number of any sign and mantissa, with an exponent of 2 from -6 to 1.
std::uint32_t random_bits(Element element, std::mt19937& generator) {
    const std::uint32_t random = std::uint32_t(generator()), exponent = random >> 28 & 7,
                        sign = random >> 31;
    switch (element) {
        case VKROPE_F16: return sign << 15 | (9 + exponent) << 10 | (random & 0x3ff);
        case VKROPE_BF16: return sign << 15 | (121 + exponent) << 7 | (random & 0x7f);
        default: return sign << 31 | (121 + exponent) << 23 | (random & 0x7fffff);
    }
}

Bytes random_elements(Element element, std::size_t bytes, std::mt19937& generator) {
    Bytes made(bytes);
    for (std::size_t at = 0; at < bytes; at += vkrope_element_bytes(element)) {
        const std::uint32_t bits = random_bits(element, generator);
        std::memcpy(made.data() + at, &bits, vkrope_element_bytes(element));
    }
    return made;
}

// Returns the positions of a rank, [sequences, tokens], which record_positions() computes.
Buffer positions_of(Device& device, const Batch& local, std::uint32_t rank, std::uint32_t ranks) {
    const Owned<PositionKernel> kernel(value_of(create_positions(device.ref())));
    const Owned<DescriptorArena> arena = arena_of(device, kernel);
    Buffer ids = value_of(Buffer::make(device, VkDeviceSize{4} * local.sequences * local.tokens));
    const PositionCall call{.batch = local.sequences,
                            .tokens = local.tokens,
                            .first = local.first_position,
                            .cp_size = ranks,
                            .cp_rank = rank,
                            .out = ids.whole()};
    value_of(device.submit([&](VkCommandBuffer commands) {
        return record_positions(commands, kernel.get(), call, arena.get());
    }));
    return ids;
}

}  // namespace

Batch test_batch(Element element) {
    return {.element = element,
            .sequences = 2,
            .tokens = 48,
            .q_heads = 16,
            .k_heads = 4,
            .head_dim = 64,
            .first_position = 100003};
}

Tensors random_tensors(const Batch& batch, std::uint32_t seed) {
    std::mt19937 generator(seed);
    Tensors made;
    made.q = random_elements(batch.element, batch.bytes(batch.q_heads), generator);
    made.k = random_elements(batch.element, batch.bytes(batch.k_heads), generator);
    return made;
}

const char* word_for(Split split) {
    return split == Split::heads ? "heads" : "sequence";
}

Shard::Shard(const Batch& whole, Split split, std::uint32_t rank, std::uint32_t ranks)
    : whole_(whole), local_(whole), split_(split), rank_(rank), ranks_(ranks) {
    if (split == Split::heads) {
        local_.k_heads = first_k_head(rank + 1) - first_k_head(rank);
        local_.q_heads = local_.k_heads * (whole.q_heads / whole.k_heads);
        if (local_.k_heads == 0) throw std::runtime_error("more ranks than heads of K");
    } else {
        local_.tokens = whole.tokens / ranks;
        if (whole.tokens % (2 * ranks) != 0)
            throw std::runtime_error("the tokens are not two chunks of one length a rank");
    }
}

// Calls copy(tensor, byte of the whole, byte of the part, bytes) for the heads of each token,
// which are contiguous in the whole and in the part.
template <class Copy>
void Shard::for_each_run(const Copy& copy) const {
    const std::uint32_t chunk = local_.tokens / 2;
    for (Bytes Tensors::*tensor : {&Tensors::q, &Tensors::k}) {
        const bool key = tensor == &Tensors::k;
        const std::size_t row = std::size_t{whole_.head_dim} * vkrope_element_bytes(whole_.element);
        const std::size_t whole_token = row * (key ? whole_.k_heads : whole_.q_heads);
        const std::size_t local_token = row * (key ? local_.k_heads : local_.q_heads);
        const std::uint32_t group = key ? 1 : whole_.q_heads / whole_.k_heads;
        for (std::uint32_t sequence = 0; sequence < whole_.sequences; ++sequence) {
            for (std::uint32_t t = 0; t < local_.tokens; ++t) {
                std::size_t token = t, head = 0;
                if (split_ == Split::heads)
                    head = std::size_t{first_k_head(rank_)} * group;
                else if (t < chunk)
                    token = std::size_t{rank_} * chunk + t;
                else
                    token = std::size_t{2 * ranks_ - 1 - rank_} * chunk + t - chunk;
                copy(tensor,
                     (std::size_t{sequence} * whole_.tokens + token) * whole_token + head * row,
                     (std::size_t{sequence} * local_.tokens + t) * local_token, local_token);
            }
        }
    }
}

Tensors Shard::part_of(const Tensors& whole) const {
    Tensors part{Bytes(local_.bytes(local_.q_heads)), Bytes(local_.bytes(local_.k_heads))};
    for_each_run([&](Bytes Tensors::*tensor, std::size_t from, std::size_t to, std::size_t bytes) {
        std::memcpy((part.*tensor).data() + to, (whole.*tensor).data() + from, bytes);
    });
    return part;
}

void Shard::put(const Tensors& part, Tensors& whole) const {
    for_each_run([&](Bytes Tensors::*tensor, std::size_t to, std::size_t from, std::size_t bytes) {
        std::memcpy((whole.*tensor).data() + to, (part.*tensor).data() + from, bytes);
    });
}

Tensors Shard::rotate(Device& device, const Tensors& part) const {
    const TensorInfo width{local_.element, local_.element, local_.head_dim, 0};
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT,
                    .rotary_dim = local_.head_dim,
                    .tensor = {width, width},
                    .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    info.positions = split_ == Split::heads ? VKROPE_POSITIONS_IMPLICIT : VKROPE_POSITIONS_IDS;
    const Owned<Kernel> kernel(value_of(create(device.ref(), info)));
    const Owned<DescriptorArena> arena = arena_of(device, kernel);
    // The table covers the whole sequence, since a rank has some of the last positions.
    const std::uint64_t reach = std::uint64_t(whole_.first_position) + whole_.tokens;
    const AngleTable table = value_of(
        AngleTable::make(device, rotation_of(local_), info.angles, reach));
    Buffer q = uploaded(device, part.q), k = uploaded(device, part.k), ids;

    Call call{.batch = local_.sequences, .tokens = local_.tokens};
    call.in[Q] = call.out[Q] = {.where = q.whole(), .heads = local_.q_heads};
    call.in[K] = call.out[K] = {.where = k.whole(), .heads = local_.k_heads};
    call.angles = table.angles();
    if (split_ == Split::heads) {
        call.positions = {.first = local_.first_position, .batch_stride = broadcast};
    } else {
        ids = positions_of(device, local_, rank_, ranks_);
        call.positions = {.ids = ids.whole()};
    }
    value_of(device.submit([&](VkCommandBuffer commands) {
        return record(commands, kernel.get(), call, arena.get());
    }));
    Tensors rotated{Bytes(part.q.size()), Bytes(part.k.size())};
    check(q.download(rotated.q.data(), rotated.q.size()));
    check(k.download(rotated.k.data(), rotated.k.size()));
    return rotated;
}

Tensors rotate_whole(Device& device, const Batch& batch, const Tensors& tensors) {
    const HostShape shape{.batch = batch.sequences,
                          .tokens = batch.tokens,
                          .heads = {batch.q_heads, batch.k_heads},
                          .element = batch.element,
                          .first_position = batch.first_position};
    HostRotation work = value_of(HostRotation::make(device, rotation_of(batch), shape));
    check(work.upload(tensors.q.data(), tensors.k.data()));
    value_of(work.run());
    Tensors rotated{Bytes(tensors.q.size()), Bytes(tensors.k.size())};
    check(work.download(rotated.q.data(), rotated.k.data()));
    return rotated;
}

std::vector<Device> open_all(std::size_t& errors) {
    std::vector<Device> opened;
    const DeviceList devices = value_of(DeviceList::make());
    for (const DeviceInfo& info : devices) {
        if (!info.suitable) continue;
        DeviceOptions options;
        options.select = info.uuid;
        options.validation = true;
        options.user_data = &errors;
        options.on_message = [](void* count, VkBool32 is_error, const char* id, const char* text) {
            if (!is_error) return;
            ++*static_cast<std::size_t*>(count);
            std::fprintf(stderr, "validation: [%s] %s\n", id, text);
        };
        Result<Device> device = Device::open(options);
        if (device.status.code == VKROPE_ERROR_NOT_SUPPORTED) {  // no validation layer is installed
            options.validation = false;
            device = Device::open(options);
        }
        opened.push_back(value_of(std::move(device)));
    }
    return opened;
}

}  // namespace vkrope::sharding
