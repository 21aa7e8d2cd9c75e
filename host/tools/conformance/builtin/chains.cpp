// SPDX-License-Identifier: MIT
// Checks calls in one command buffer, of which each reads the output of the previous call, with a
// barrier of boundary() in between: the bits are the same as with one submission per call.
#include "conformance/builtin/trial.hpp"
#include "verify/on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 48, heads = 3, head_dim = 64;

// Runs three calls. Not in place: from the first buffer to the second, to the third, and back to
// the second. In place: within the first, from the first to the second, and within the second.
void hold_chain(Test& test, Element element, Pairing pairing, bool in_place) {
    Trial trial = trial_of(element, head_dim, tokens, pairing);
    trial.shape.groups = heads;
    trial.info.tensor[K] = trial.info.tensor[Q];  // reserves memory for a third tensor
    verify::Operation operation = verify::placed(trial);
    operation.info.tensor[K] = {};
    const Bytes& before = operation.memory;
    const Tensor places[] = {operation.call.in[Q], operation.call.out[Q], operation.call.out[K]};
    constexpr std::size_t way_apart[][2] = {{0, 1}, {1, 2}, {2, 1}},
                          way_in_place[][2] = {{0, 0}, {0, 1}, {1, 1}};
    verify::OnDevice there = value_of(verify::OnDevice::make(test.device.device(), operation));
    const auto rotated = [&](bool together) {
        check(there.memory().upload(before.data(), before.size()));
        std::vector<Call> calls;
        for (const auto& [from, to] : in_place ? way_in_place : way_apart) {
            Call call = {.tokens = tokens};
            call.in[Q] = places[from];
            call.out[Q] = places[to];
            call.positions.first = std::int32_t(7 * calls.size() + 1);
            calls.push_back(there.call(call));
        }
        if (together)
            test.device.rotate_in_order(operation.info, calls);
        else
            for (const Call& call : calls) test.device.rotate({operation.info, call});
        Bytes after(before.size());
        test.device.download(there.memory(), after.data(), after.size());
        return after;
    };
    const Bytes apart = rotated(false), together = rotated(true);
    test.expect(apart != before, "nothing has been rotated");
    test.expect(apart == together,
                "calls that read what the one before has written, with a barrier in between, give "
                "other bits in one command buffer than in one each: the barrier did not hold");
}

}  // namespace

void add_chains(Checks& checks) {
    for (const Element element : elements) {
        for (const Pairing pairing : pairings) {
            for (const bool in_place : {false, true}) {
                checks.add(
                    fmt::format("{}_{}_{}", name_of(element), name_of(pairing),
                                in_place ? "in_place" : "out_of_place"),
                    [=](Test& test) { hold_chain(test, element, pairing, in_place); });
            }
        }
    }
}

}  // namespace vkrope::conformance
