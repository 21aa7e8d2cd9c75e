// SPDX-License-Identifier: MIT
// Tests many heads and wide rows, with which a token has more work than one workgroup can do.
#include <algorithm>
#include <memory>

#include "base/meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

TEST_CASE("many heads, wide rows: all invocations of a token run, and none ends a loop early") {
    struct Side {
        std::uint32_t heads, head_dim;  // with 0 heads, the call omits a tensor of the kernel
        std::uint32_t offset = 0;       // the offset of the window
        bool in_place = false;
    };
    struct Case {
        Side q, k;
        std::uint32_t tokens, rotary_dim;
        Element element;
        bool cut;  // the call needs several dispatches, as an invocation cannot loop over all heads
    };
    const Case cases[] = {
        // llvmpipe ends a shader after 65 535 iterations of all its loops together. 2100 heads of
        // 32 narrow steps exceed this limit; so do 1100 + 1100 heads, and 70 001 heads of one step.
        {{2100, 129, 0, true}, {0, 129}, 1, 128, VKROPE_F16, true},
        {{1100, 129, 0, true}, {1100, 129, 0, true}, 1, 128, VKROPE_F16, true},
        {{70001, 2, 0, true}, {0, 2}, 1, 2, VKROPE_F32, true},
        // Out of place, an invocation also copies 64 steps outside the window, so that 1100 heads
        // exceed the limit, too. A tensor that is absent from a call takes no invocations, whatever
        // its width.
        {{260, 1032, 512}, {0, 65532}, 2, 8, VKROPE_F32, true},
        {{0, 65532}, {1100, 1032, 512}, 2, 8, VKROPE_F32, true},
        // One step rotates and thousands of steps copy. The tensor with more steps to copy
        // determines the number of invocations.
        {{1, 65534}, {1, 65533, 1}, 1, 2, VKROPE_F16, false},
        {{2, 65532, 0, true}, {2, 65532}, 2, 8, VKROPE_F32, false},
        {{2, 65532}, {2, 65532, 0, true}, 2, 8, VKROPE_F32, false},
        // A token takes 65 invocations; two tokens take 130, in workgroups of 128. One invocation
        // less per token would fail.
        {{2, 32784}, {0, 32784}, 2, 8, VKROPE_F32, false},
        // The access is by words of two halves, since the window rules out 16 bytes, and one
        // invocation takes all steps of 300 heads.
        {{300, 96}, {0, 96}, 2, 24, VKROPE_F16, false},
        {{0, 96}, {300, 96}, 2, 24, VKROPE_F16, false},
    };
    for (const Case& of : cases) {
        CAPTURE(&of - cases);
        const Side sides[2] = {of.q, of.k};
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, of.q.head_dim, of.rotary_dim, of.q.offset,
                                      of.k.offset);
        const AngleTable table = must(
            AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, 16));
        Bytes in[2], before[2], after[2][2];  // the first index of `after` is the mapping
        std::size_t bytes[2];
        for (const int key : {0, 1}) {
            const std::size_t elements = std::size_t{of.tokens} * sides[key].heads *
                                         sides[key].head_dim;
            bytes[key] = elements * element_bytes(of.element);
            in[key] = random_elements(of.element, elements / 2 * 2 + 4,
                                      61 + key);  // fills whole words, with bytes after the rows
            before[key] = sides[key].in_place
                              ? in[key]
                              : random_elements(of.element, elements / 2 * 2 + 4, 63 + key);
        }
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            const auto width = [&](const Side& side) {
                return TensorInfo{of.element, of.element, side.head_dim, side.offset};
            };
            const Owned<Kernel> kernel = make_kernel(device(),
                                                     {.pairing = VKROPE_HALF_SPLIT,
                                                      .rotary_dim = of.rotary_dim,
                                                      .tensor = {width(of.q), width(of.k)},
                                                      .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                                                      .mapping = mapping});
            Buffer inputs[2], outputs[2];
            Tensor from[2], to[2];
            for (const int key : {0, 1}) {
                outputs[key] = upload(device(), before[key]);
                to[key] = {.where = part(outputs[key], 0, bytes[key]),
                           .heads = sides[key].heads,
                           .buffer_size = before[key].size()};
                from[key] = to[key];
                if (sides[key].in_place) continue;
                inputs[key] = upload(device(), in[key]);
                from[key].where.buffer = inputs[key].handle();
            }
            Call call{.tokens = of.tokens, .positions = {.first = 7}, .angles = table.angles()};
            if (of.q.heads != 0) call.in[Q] = from[0], call.out[Q] = to[0];
            if (of.k.heads != 0) call.in[K] = from[1], call.out[K] = to[1];
            if (mapping == VKROPE_MAPPING_CPU)
                CHECK((must(dispatches(kernel.get(), call)) > 1) == of.cut);
            run(device(), kernel, call);
            for (const int key : {0, 1})
                after[mapping == VKROPE_MAPPING_GPU][key] = download(outputs[key],
                                                                     before[key].size());
        }
        const HostShape shape{.tokens = of.tokens,
                              .heads = {of.q.heads, of.k.heads},
                              .head_dim = {0, of.k.head_dim},
                              .element = of.element,
                              .first_position = 7,
                              .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        for (const bool key : {false, true}) {
            CAPTURE(key);
            // Every head must be rotated, channels outside its window copied, and bytes after the
            // last row unchanged.
            check_contract(r, shape, key, in[key], after[0][key]);
            CHECK(std::equal(before[key].begin() + std::ptrdiff_t(bytes[key]), before[key].end(),
                             after[0][key].begin() + std::ptrdiff_t(bytes[key])));
            CHECK((after[0][key] == after[1][key]));
        }
    }
}

}  // namespace vkrope::test
