// SPDX-License-Identifier: MIT
// Tests tensors of hundreds of MiB, which are larger than the range that the device can bind: the
// bits from many dispatches are those from single dispatches.
#include <algorithm>
#include <fstream>
#include <string>

#include "base/meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

// Fills `bytes` with values of both signs below 2 in magnitude, which depend only on `block`.
void fill(Element element, std::uint64_t block, Bytes& bytes) {
    const std::uint64_t mask = element == VKROPE_F32 ? 0xbfffffffbfffffffu : 0xbfffbfffbfffbfffu;
    std::uint64_t state = block * 0x9e3779b97f4a7c15u + 1;
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const std::uint64_t bits = state & mask;
        std::memcpy(bytes.data() + i, &bits, 8);
    }
}

// Returns the memory that is available on the machine, in bytes, or UINT64_MAX if it is unknown.
std::uint64_t available_memory() {
    std::ifstream meminfo("/proc/meminfo");
    for (std::string line; std::getline(meminfo, line);)
        if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
    return UINT64_MAX;
}

// A tensor in runs() contiguous runs of memory; a run is a sequence, or all tokens of one head.
struct Large {
    std::string name;
    Element in, out;
    bool in_place, by_head;  // by_head: the layout is [batch, heads, tokens, head_dim]
    std::uint32_t batch, tokens, heads;

    static constexpr std::uint32_t D = 128, positions = 5000, piece_tokens = 8192;
    std::uint64_t elements() const { return std::uint64_t{batch} * tokens * heads * D; }
    std::uint32_t runs() const { return by_head ? batch * heads : batch; }
    std::uint32_t run_heads() const { return by_head ? 1 : heads; }
    std::uint64_t bytes(Element element) const { return elements() * element_bytes(element); }
    Tensor tensor(const VkDescriptorBufferInfo& where) const {
        const std::int64_t S = tokens;
        return {.where = where,
                .heads = heads,
                .token_stride = by_head ? D : heads * D,
                .head_stride = by_head ? S * D : D,
                .batch_stride = S * heads * D};
    }
};

// Rotates the whole tensor with one call, and then, in a separate buffer, pieces of a few tokens.
// Checks that all bits are the same.
void rotate_large(Device& on, const Large& large) {
    CAPTURE(large.name);
    const std::uint64_t widest = std::max(large.bytes(large.in), large.bytes(large.out));
    if (widest <= on.info().limits->maxStorageBufferRange) {
        MESSAGE(large.name << ": skipped: the device binds all of it at once");
        return;
    }
    const std::uint64_t needed = large.bytes(large.in) +
                                 (large.in_place ? 0 : large.bytes(large.out));
    if (available_memory() < needed + (std::uint64_t{1} << 30)) {
        MESSAGE(large.name << ": skipped: it takes " << (needed >> 20) << " MiB, the machine has "
                           << (available_memory() >> 20));
        return;
    }
    Result<Buffer> in = Buffer::make(on, large.bytes(large.in));
    Result<Buffer> out = in && !large.in_place ? Buffer::make(on, large.bytes(large.out))
                                               : Result<Buffer>{};
    if (!in || !out) {
        MESSAGE(large.name << ": skipped: the device has no such buffer: "
                           << (in ? out : in).status.what);
        return;
    }
    const AngleTable table = must(
        AngleTable::make(on, rotation(VKROPE_HALF_SPLIT, Large::D, Large::D),
                         VKROPE_ANGLES_FACTORED_TEXTURE, Large::positions));
    std::vector<std::int32_t> positions(large.tokens);
    for (std::uint32_t t = 0; t < large.tokens; ++t)
        positions[t] = std::int32_t(t % Large::positions);
    Buffer ids = must(Buffer::make(on, positions.size() * 4));
    must(ids.upload(positions.data(), positions.size() * 4));

    // Visits the pieces in the order of memory; the last piece of a run may be shorter.
    const std::uint32_t row = large.run_heads() * Large::D;
    const std::uint64_t in_row = std::uint64_t{row} * element_bytes(large.in),
                        out_row = std::uint64_t{row} * element_bytes(large.out);
    const auto each_piece = [&](auto&& action) {
        for (std::uint64_t run_index = 0; run_index < large.runs(); ++run_index) {
            for (std::uint32_t first = 0; first < large.tokens; first += Large::piece_tokens) {
                const std::uint32_t count = std::min(Large::piece_tokens, large.tokens - first);
                const std::uint64_t at = run_index * large.tokens + first;  // in rows
                Bytes content(count * in_row);
                fill(large.in, at, content);
                action(first, count, at, content);
            }
        }
    };
    each_piece([&](std::uint32_t, std::uint32_t, std::uint64_t at, const Bytes& content) {
        must(in->upload(content.data(), content.size(), at * in_row));
    });

    const Owned<Kernel> kernel = make_kernel(on, {.pairing = VKROPE_HALF_SPLIT,
                                                  .rotary_dim = Large::D,
                                                  .tensor = {{large.in, large.out, Large::D, 0}},
                                                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                                                  .positions = VKROPE_POSITIONS_IDS});
    Call whole{.batch = large.batch,
               .tokens = large.tokens,
               .positions = {.ids = ids.whole(), .batch_stride = broadcast},
               .angles = table.angles()};
    whole.in[Q] = large.tensor(in->whole());
    whole.out[Q] = large.in_place ? whole.in[Q] : large.tensor(out->whole());
    const std::uint64_t many = must(dispatches(kernel.get(), whole));
    CHECK(many > 1);
    run(on, kernel, whole);
    MESSAGE(large.name << ": " << many << " dispatches, where the device binds "
                       << on.info().limits->maxStorageBufferRange << " bytes");

    Buffer piece = must(Buffer::make(on, Large::piece_tokens * in_row)),
           turned = must(Buffer::make(on, Large::piece_tokens * out_row));
    std::uint64_t compared = 0, different = 0, unrotated = 0;
    each_piece([&](std::uint32_t first, std::uint32_t count, std::uint64_t at,
                   const Bytes& content) {
        must(piece.upload(content.data(), content.size()));
        Call few{.tokens = count,
                 .positions = {.ids = {ids.handle(), std::uint64_t{first} * 4,
                                       std::uint64_t{count} * 4}},
                 .angles = table.angles()};
        few.in[Q] = {.where = {piece.handle(), 0, count * in_row}, .heads = large.run_heads()};
        few.out[Q] = {.where = {turned.handle(), 0, count * out_row}, .heads = large.run_heads()};
        REQUIRE(must(dispatches(kernel.get(), few)) == 1);
        run(on, kernel, few);
        Bytes expected(count * out_row), got(count * out_row);
        must(turned.download(expected.data(), expected.size()));
        must((large.in_place ? in : out)->download(got.data(), got.size(), at * out_row));
        compared += got.size();
        different += got != expected;
        unrotated += expected == content;
    });
    CHECK(compared == large.bytes(large.out));
    CHECK(different == 0);
    CHECK(unrotated == 0);
}

}  // namespace

TEST_CASE(
    "300 MiB: more than lavapipe binds at once, in place and out of place, by token and by head") {
    if (gpu_assisted()) return;  // other cases have the same shaders and bindings
    const Large all[] = {
        {"[1, 150001, 8, 128] f16 in place", VKROPE_F16, VKROPE_F16, true, false, 1, 150'001, 8},
        {"[2, 8, 75001, 128] f16 in place, heads before tokens", VKROPE_F16, VKROPE_F16, true, true,
         2, 75'001, 8},
        {"[3, 25001, 8, 128] f32 out of place", VKROPE_F32, VKROPE_F32, false, false, 3, 25'001, 8},
        {"[1, 3, 200001, 128] f16 to f32, heads before tokens", VKROPE_F16, VKROPE_F32, false, true,
         1, 200'001, 3},
    };
    for (const Large& large : all) rotate_large(device(), large);
}

}  // namespace vkrope::test
