// SPDX-License-Identifier: MIT
// Calls in one command buffer, each with the output of the one before it as its input, and a
// barrier of boundary() between them: the bits equal a submission for each call.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 48, heads = 3, head_dim = 64;

/// Three calls. apart: from the first buffer to the second, on to the third, and back to the
/// second. In place: in the first, from there to the second, and in the second.
void hold_chain(Test& test, Element element, Pairing pairing, bool in_place) {
    Trial trial = trial_of(element, head_dim, tokens, pairing);
    trial.shape.q_per_group = heads;
    const Bytes input = random_elements(element, elements_of(trial, Q), 131);
    const Bytes poison(input.size(), std::byte{0xa5});
    RopeParams rotation;
    rotation.pairing = pairing;
    rotation.head_dim = rotation.rotary_dim = head_dim;
    rotation.inv_freq = inv_freq_of(trial);
    const AngleTable table = value_of(
        AngleTable::make(test.device.device(), rotation, trial.info.angles, 2 * tokens));
    constexpr std::size_t way_apart[][2] = {{0, 1}, {1, 2}, {2, 1}},
                          way_in_place[][2] = {{0, 0}, {0, 1}, {1, 1}};
    const auto rotated = [&](bool together) {
        std::vector<Buffer> buffers;
        buffers.push_back(test.device.upload(input.data(), input.size()));
        buffers.push_back(test.device.upload(poison.data(), poison.size()));
        buffers.push_back(test.device.upload(poison.data(), poison.size()));
        std::vector<Call> calls;
        for (const auto& [from, to] : in_place ? way_in_place : way_apart) {
            Call call = {.tokens = tokens};
            call.in[Q] = {.where = buffers[from].whole(), .heads = heads};
            call.out[Q] = {.where = buffers[to].whole(), .heads = heads};
            call.positions.first = static_cast<std::int32_t>(7 * calls.size() + 1);
            call.angles = table.angles();
            calls.push_back(call);
        }
        if (together) {
            test.device.rotate_in_order(trial.info, calls);
        } else {
            for (const Call& call : calls) {
                test.device.rotate({.info = trial.info, .call = call});
            }
        }
        std::vector<Bytes> results(buffers.size(), Bytes(input.size()));
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            test.device.download(buffers[i], results[i].data(), results[i].size());
        }
        return results;
    };
    const std::vector<Bytes> apart = rotated(false), together = rotated(true);
    test.hold(apart[1] != poison, "nothing has been rotated");
    test.hold(apart == together,
              "calls that read what the one before has written, with a barrier in between, give "
              "other bits in one command buffer than in one each: the barrier did not hold");
}

}  // namespace

void add_chains(Checks& checks) {
    for (const Element element : elements) {
        for (const Pairing pairing : pairings) {
            for (const bool in_place : {false, true}) {
                checks.add(fmt::format("{}_{}_{}", name_of(element), name_of(pairing),
                                       in_place ? "in_place" : "out_of_place"),
                           [=](Test& test) { hold_chain(test, element, pairing, in_place); });
            }
        }
    }
}

}  // namespace vkrope::conformance
