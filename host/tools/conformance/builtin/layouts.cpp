// SPDX-License-Identifier: MIT
// Checks row layouts: the common arrangements, for input and output; views at odd offsets; one row
// for many heads; pages. The bits depend only on the values, never on the layout.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

Trial small(Element element, std::uint32_t head_dim, bool flat) {
    Trial trial = trial_of(element, head_dim, 3);
    trial.info.rotary_dim = head_dim / 4 * 2;
    trial.info.tensor[Q].rotary_offset = 1;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.shape = flat ? Shape{.batch = 1, .tokens = 6, .groups = 2, .q_per_group = 2}
                       : Shape{.batch = 2, .tokens = 3, .groups = 2, .q_per_group = 2};
    trial.call.positions.first = 7;
    return trial;
}

void hold_pair(Test& test, Element element, std::uint32_t head_dim, Arrangement in,
               Arrangement out) {
    Trial trial = small(element, head_dim, in == Arrangement::thd || out == Arrangement::thd);
    trial.rows[Q] = random_bits(element, elements_of(trial, Q), 21);
    trial.rows[K] = random_elements(element, elements_of(trial, Q), 22);
    const Rotated packed = test.run(trial);
    trial.in = in;
    trial.out = out;
    const Rotated placed = test.run(trial);
    test.hold(placed.rows[Q] == packed.rows[Q], "Q has different bits here than in packed rows");
    test.hold(placed.rows[K] == packed.rows[K] || in == Arrangement::broadcast,
              "K has different bits here than in packed rows");
}

}  // namespace

void add_layouts(Checks& checks) {
    constexpr std::size_t count = std::size(arrangements), outputs = count - 1;
    for (std::size_t i = 0; i < count; ++i) {
        const NamedArrangement in = arrangements[i];
        const NamedArrangement out = arrangements[in.value == Arrangement::broadcast ? 0 : i];
        checks.add(in.name, [=](Test& test) {
            hold_pair(test, VKROPE_F16, 32, in.value, out.value);
            hold_pair(test, VKROPE_F32, 12, in.value, out.value);
        });
        for (std::size_t j = 0; j < outputs; ++j) {
            const NamedArrangement to = arrangements[j];
            const auto check = [=](Test& test) {
                for (const Element element : elements) {
                    hold_pair(test, element, 20, in.value, to.value);
                    hold_pair(test, element, 9, in.value, to.value);
                }
            };
            const bool next = j == (i * 4 + 3) % outputs;  // quick: one output per input
            checks.add(fmt::format("{}_to_{}", in.name, to.name), check,
                       next ? Level::quick : Level::full);
        }
    }
    for (const bool by_head : {false, true}) {
        checks.add(
            by_head ? "pages_by_head" : "pages",
            [=](Test& test) {
                for (const std::uint32_t page_size : {1u, 16u}) {
                    Trial trial = small(VKROPE_F16, 32, false);
                    trial.info.scatter_kv = true;
                    trial.call.paged_cache.page_size = page_size;
                    trial.pages_by_head = by_head;
                    trial.call.paged_cache.int64 = page_size == 1;
                    test.run(trial);
                }
            });
    }
}

}  // namespace vkrope::conformance
