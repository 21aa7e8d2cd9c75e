// SPDX-License-Identifier: MIT
// Checks rows that are far from each other, and tensors that are far from the start of their
// buffer. For every b from 20 on, two rows are 2^b bytes apart: if a driver truncates the distance
// to b bits, in push constants or in the shader, both become the same row. Then both rows are
// adjacent, 2^b bytes after the start: only the offset of a descriptor reaches that far, whatever
// range the device can bind, and a truncated offset leads to unused bytes. Distances exceed 4 MiB
// on every device and 128 MiB if it has the memory; with Level::full there is one check for each
// power of two from 256 MiB to 4 GiB. Only the rows and some bytes at the start are ever accessed.
#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/device_properties.hpp"
#include "verify/on_device.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t head_dim = 64;
constexpr std::uint64_t from_q_to_k = 2048, row_room = 512, near_rows = 1024;  // bytes
constexpr std::uint64_t rows_room = near_rows + from_q_to_k +
                                    row_room;  // size of two adjacent rows of Q and of K

// The unit of row access, which follows from the distance of a row from a multiple of 16 bytes.
struct Access {
    const char* name;
    Element element;
    std::uint64_t first_byte;
};
constexpr Access accesses[] = {{"f32_16_bytes", VKROPE_F32, 0}, {"f32_words", VKROPE_F32, 4},
                               {"f16_16_bytes", VKROPE_F16, 0}, {"f16_words", VKROPE_F16, 4},
                               {"f16_elements", VKROPE_F16, 2}, {"bf16_16_bytes", VKROPE_BF16, 0},
                               {"bf16_words", VKROPE_BF16, 4},  {"bf16_elements", VKROPE_BF16, 2}};

// The axis along which the two rows of a tensor follow each other.
enum class Along { tokens, batch, heads };

// Returns VkPhysicalDeviceMaintenance4Properties::maxBufferSize, or 0 if it is not reported.
std::uint64_t max_buffer_bytes(DeviceUnderTest& device) {
    if (device.info().api_version < VK_API_VERSION_1_3) return 0;
    VkPhysicalDeviceMaintenance4Properties buffers = {};
    buffers.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
    add_properties(device.device().ref(), &buffers);
    return buffers.maxBufferSize;
}

// Allocates a buffer, or throws Refusal (unsupported) with the name of the limit that it exceeds.
Buffer buffer_of(DeviceUnderTest& device, std::uint64_t bytes) {
    const auto hold_limit = [bytes](const char* name, std::uint64_t most) {
        if (bytes > most)
            unsupported("rows so far apart take a buffer of {} bytes, the device allows {} ({})",
                        bytes, most, name);
    };
    hold_limit("largest device-local heap", device.info().memory_bytes);
    if (const std::uint64_t most = max_buffer_bytes(device); most != 0)
        hold_limit("maxBufferSize", most);
    Result<Buffer> made = Buffer::make(device.device(), bytes);
    if (made.status.code == VKROPE_ERROR_OUT_OF_DEVICE_MEMORY ||
        made.status.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY) {
        unsupported("rows so far apart take a buffer of {} bytes, which the device refuses: {}",
                    bytes, static_cast<const char*>(made.status.what));
    }
    return value_of(std::move(made));
}

// The packed rows of Q and K, before and after the rotation.
struct Rows {
    Bytes q, k, rotated_q, rotated_k;
};

Shape shape_along(Along along) {
    return {.batch = along == Along::batch ? 2u : 1u,
            .tokens = along == Along::tokens ? 2u : 1u,
            .groups = along == Along::heads ? 2u : 1u,
            .q_per_group = 1};
}

Trial near_trial(const Access& access, Along along) {
    Trial trial = trial_of(access.element, head_dim, 1);
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.shape = shape_along(along);
    trial.call.positions.first = 3;
    trial.rows[Q] = random_elements(access.element, elements_of(trial, Q), 101);
    trial.rows[K] = random_elements(access.element, elements_of(trial, Q), 102);
    return trial;
}

// The buffer and offsets of the two rows of Q; the rows of K are `from_q_to_k` bytes after them.
struct Placement {
    Buffer& buffer;
    std::uint64_t first, apart;  // bytes

    std::uint64_t byte(bool key, std::uint64_t row) const {
        return first + row * apart + (key ? from_q_to_k : 0);
    }
};

// The value of bytes around rows, and of output rows before the call.
constexpr std::byte nothing_there{0x5a};

// Rotates two rows of Q and two of K from `in` to `out`, or in place, and checks that the result
// has the bits of `near`.
void hold_far_rows(Test& test, const Access& access, Along along, const Rows& near,
                   const Placement& in, const Placement& out) {
    const std::uint64_t size = element_bytes(access.element), row_bytes = head_dim * size;
    for (const Placement& placed : {out, in}) {
        if (placed.first != 0) {  // a truncated offset must not lead to rows of an earlier call
            const Bytes nothing(2 * rows_room, nothing_there);
            check(placed.buffer.upload(nothing.data(), nothing.size()));
        }
    }
    for (const bool key : {false, true}) {
        for (const std::uint64_t row : {0, 1}) {
            Bytes room(row_room, nothing_there);
            check(out.buffer.upload(room.data(), room.size(), out.byte(key, row)));
            const Bytes& rows = key ? near.k : near.q;
            std::copy_n(&rows[row * row_bytes], row_bytes, &room[access.first_byte]);
            check(in.buffer.upload(room.data(), room.size(), in.byte(key, row)));
        }
    }
    const Shape shape = shape_along(along);
    const auto tensor = [&](const Placement& placed, bool key) {
        const auto stride = std::int64_t(placed.apart / size);
        const VkDescriptorBufferInfo whole = placed.buffer.whole();
        const std::uint64_t first = placed.byte(key, 0) + access.first_byte;
        Tensor made = {.where = {whole.buffer, first, placed.apart + row_bytes},
                       .heads = shape.groups};
        (along == Along::tokens  ? made.token_stride
         : along == Along::batch ? made.batch_stride
                                 : made.head_stride) = stride;
        if (along == Along::heads) made.token_stride = 2 * stride;
        made.buffer_size = whole.range;
        return made;
    };
    const Trial trial = near_trial(access, along);
    DeviceUnderTest::KernelCall call = {.info = trial.info,
                                        .call = {.batch = shape.batch, .tokens = shape.tokens}};
    RopeParams rotation = verify::rotation_of(trial);
    rotation.inv_freq = inv_freq_of(trial);
    const AngleTable table = value_of(
        AngleTable::make(test.device.device(), rotation, trial.info.angles, trial.max_position));
    call.call.angles = table.angles();
    call.call.positions = {.first = std::int32_t(trial.call.positions.first),
                           .batch_stride = broadcast};
    call.call.in[Q] = tensor(in, false);
    call.call.out[Q] = tensor(out, false);
    call.call.in[K] = tensor(in, true);
    call.call.out[K] = tensor(out, true);
    test.device.rotate(call);
    for (const bool key : {false, true}) {
        for (const std::uint64_t row : {0, 1}) {
            Bytes room(row_room);
            test.device.download(out.buffer, room.data(), room.size(), out.byte(key, row));
            const Bytes& rows = key ? near.rotated_k : near.rotated_q;
            const bool right = std::equal(&rows[row * row_bytes],
                                          &rows[row * row_bytes] + row_bytes,
                                          &room[access.first_byte]);
            test.expect(right,
                        "{} bytes apart, {} bytes behind the start of a buffer, the {} row of {} "
                        "has different bits",
                        out.apart, out.byte(key, 0), row == 0 ? "first" : "second",
                        key ? 'K' : 'Q');
        }
    }
}

// Checks distances of 2^first_bit to 2^last_bit bytes.
void hold_offsets(Test& test, const Access& access, std::uint32_t first_bit, std::uint32_t last_bit,
                  bool in_place) {
    const std::uint64_t bytes = (std::uint64_t{1} << last_bit) + 2 * rows_room;
    Buffer in = buffer_of(test.device, bytes);
    Buffer apart = in_place ? Buffer() : buffer_of(test.device, bytes);
    for (const Along along : {Along::tokens, Along::batch, Along::heads}) {
        const Trial trial = near_trial(access, along);
        const Rotated rotated = test.run(trial);
        const Rows near = {.q = trial.rows[Q],
                           .k = trial.rows[K],
                           .rotated_q = rotated.rows[Q],
                           .rotated_k = rotated.rows[K]};
        for (std::uint32_t bit = first_bit; bit <= last_bit; ++bit) {
            const std::uint64_t far = std::uint64_t{1} << bit;
            Buffer& out = in_place ? in : apart;
            const Placement rows = {.buffer = in, .first = 0, .apart = far};
            hold_far_rows(test, access, along, near, rows,
                          {.buffer = out, .first = 0, .apart = far});
            if (along == Along::tokens) {  // the offset of a tensor does not depend on its axes
                // Not in place, because some kernels would also read through the descriptor of the
                // output.
                const Placement tensor = {.buffer = in, .first = far, .apart = near_rows};
                hold_far_rows(test, access, along, near, tensor,
                              {.buffer = out, .first = far + rows_room, .apart = near_rows});
            }
        }
    }
}

}  // namespace

void add_offsets(Checks& checks) {
    // There is one check per power of two, because a device without memory for the last may have
    // memory for the earlier ones.
    struct Far {
        const char* name;
        std::uint32_t bit;
    };
    constexpr Far farther[] = {
        {"256_MiB", 28}, {"512_MiB", 29}, {"1_GiB", 30}, {"2_GiB", 31}, {"4_GiB", 32}};
    for (const Access& access : accesses) {
        checks.add(
            fmt::format("beyond_4_MiB_{}", access.name),
            [=](Test& test) { hold_offsets(test, access, 20, 23, false); });
        checks.add(fmt::format("beyond_128_MiB_{}", access.name),
                   [=](Test& test) { hold_offsets(test, access, 24, 27, true); });
        for (const Far& far : farther) {
            checks.add(
                fmt::format("beyond_{}_{}", far.name, access.name),
                [=](Test& test) { hold_offsets(test, access, far.bit, far.bit, true); },
                Level::full);
        }
    }
}

}  // namespace vkrope::conformance
