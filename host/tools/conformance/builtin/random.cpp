// SPDX-License-Identifier: MIT
// Checks operations drawn at random from all that the library accepts: first those of each kind
// that has a name, then any. Each runs twice: unchanged, and in other memory by a kernel with the
// other mapping, the other conversion and the other kind of table, with descriptor sets, and for
// some kernels with lower limits, or with packed instead of bound weights. Both runs must give the
// same bits. The report of a failure has the smallest operation found that fails.
#include "verify/random.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <sstream>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"
#include "verify/place.hpp"
#include "verify/shrink.hpp"
#include "verify/text.hpp"

namespace vkrope::conformance {
namespace {

using verify::Kind, verify::operations_of_a_kernel, verify::Unplaced;

constexpr std::uint32_t kernels_of_quick = 2, kernels_of_full = 68;

// Limits of the second run. None of them may change a bit.
ReportedLimits other_limits(std::uint64_t seed, const KernelInfo& info) {
    std::mt19937_64 random(seed);
    ReportedLimits limits = {.no_push_descriptors = true};
    const bool in_buffer = info.angles == VKROPE_ANGLES_DIRECT_BUFFER ||
                           info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    // Without a counter, the positions of a call would be others than those of the first run.
    const bool by_counter = in_buffer && info.positions == VKROPE_POSITIONS_IMPLICIT;
    switch (random() % 4) {
        case 0:
            limits.storage_buffers = (info.scatter_kv || info.gather_kv || by_counter ? 8 : 4) +
                                     (in_buffer ? 2 : 0) + 2 * std::uint32_t(random() % 4);
            break;
        case 1:
            limits.workgroups_x = limits.workgroups_z = 3;
            limits.workgroups_y = 2;
            break;
        default:
            if (!in_buffer) limits.storage_range = 4096 + 256 * std::uint32_t(random() % 16);
    }
    // Each part of the source is combined with each part of the destination.
    if (info.gather_kv) limits.storage_range *= 16;
    return limits;
}

KernelInfo other_kernel(KernelInfo info) {
    info.mapping = info.mapping == VKROPE_MAPPING_GPU ? VKROPE_MAPPING_CPU : VKROPE_MAPPING_GPU;
    info.tuning = {};
    info.conversion = info.conversion == VKROPE_CONVERSION_INTEGER ? VKROPE_CONVERSION_NATIVE
                                                                   : VKROPE_CONVERSION_INTEGER;
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE)
        info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    else if (info.angles == VKROPE_ANGLES_DIRECT_BUFFER)
        info.angles = VKROPE_ANGLES_DIRECT_TEXTURE;
    return info;
}

// Runs an operation. Returns nothing, and why, if the library or the device does not support it.
std::optional<Rotated> run_if_taken(Test& test, Trial trial, std::string& refusal) {
    if (trial.info.conversion == VKROPE_CONVERSION_NATIVE && !test.device.traits().converts_f16)
        trial.info.conversion = VKROPE_CONVERSION_INTEGER;
    try {
        return test.run(trial);
    } catch (const Refusal& refused) {
        if (refused.outcome().verdict != Verdict::unsupported ||
            refused.code() == VKROPE_ERROR_INVALID_ARGUMENT)
            throw;
        refusal = refused.what();
        return {};
    }
}

// Returns true if the bits are the same, except those of NaNs, which depend on the device.
bool same_rows(Element element, const Bytes& a, const Bytes& b) {
    if (a == b) return true;
    if (is_quantised(element) || a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size() / element_bytes(element); ++i)
        if (stored(element, a, i) != stored(element, b, i) &&
            !(std::isnan(value(element, a, i)) && std::isnan(value(element, b, i))))
            return false;
    return true;
}

std::string words_of(const KernelInfo& info) {
    std::string words = info.rotary_dim == 0
                            ? "no rotation"
                            : fmt::format("{}, {}", name_of(info.pairing), name_of(info.angles));
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = info.tensor[which];
        if (of.head_dim != 0)
            words += fmt::format(", {} {} to {}", "QKV"[which], name_of(of.in), name_of(of.out));
    }
    return words;
}

// The results of an operation, and of one in other memory.
struct Runs {
    Test first, second;
    bool both = false;            // are supported
    bool in_parts = false;        // the second has more dispatches
    std::string difference = {};  // of the bits; empty if there is none
    std::string refusal = {};     // why one is not supported
};

Runs run_both(DeviceUnderTest& device, const Unplaced& operation, const Unplaced& other) {
    Runs runs = {.first = Test(device), .second = Test(device)};
    const std::optional<Rotated> rotated = run_if_taken(runs.first, operation, runs.refusal);
    std::optional<Rotated> again = run_if_taken(runs.second, other, runs.refusal);
    if (rotated && !again && !(other.limits == ReportedLimits{})) {  // a limit may be too low
        Unplaced unlimited = other;
        unlimited.limits = {};
        again = run_if_taken(runs.second, unlimited, runs.refusal);
    }
    runs.both = rotated && again;
    runs.in_parts = runs.both && again->dispatches > rotated->dispatches;
    for (const TensorIndex which : every_tensor) {
        if (!runs.both || !runs.difference.empty() ||
            (same_rows(operation.info.tensor[which].out, rotated->rows[which],
                       again->rows[which]) &&
             same_rows(operation.info.tensor[which].second, rotated->second[which],
                       again->second[which]) &&
             same_rows(VKROPE_F32, bytes_of(rotated->scales[which]),
                       bytes_of(again->scales[which]))))
            continue;
        runs.difference = fmt::format("{} has other bits in other memory", "QKV"[which]);
    }
    return runs;
}

// Returns what is wrong with an operation that runs once; empty: nothing.
std::string problem_alone(DeviceUnderTest& device, const Unplaced& operation) {
    Test once(device);
    std::string refusal;
    run_if_taken(once, operation, refusal);
    return once.wrong() ? once.outcome().reason : "";
}

// Returns the smallest operation found with a problem, as text after a comment with the problem,
// or nothing if it is too long to paste.
//
// problem_of  returns what is wrong with an operation; empty: nothing
std::string smallest(const Unplaced& operation,
                     const std::function<std::string(const Unplaced&)>& problem_of) {
    std::string text;
    const auto fails = [&](const Unplaced& candidate) {
        try {
            const std::string problem = problem_of(candidate);
            if (!problem.empty()) text = "// " + problem + '\n' + verify::text_of(candidate);
            return !problem.empty();
        } catch (const Refusal& refusal) {
            if (refusal.outcome().verdict == Verdict::unsupported) return false;
            throw;
        }
    };
    try {
        fails(verify::shrunk(operation, fails));
    } catch (const Refusal&) {  // the device failed: what was found before remains
    }
    return text.size() < 1u << 16 ? text : "";
}

// Returns the lines as comments.
std::string commented(const std::string& text) {
    std::istringstream lines(text);
    std::string comments;
    for (std::string line; std::getline(lines, line);) comments += "// " + line + '\n';
    return comments;
}

// Runs an operation twice, and returns the runs.
//
// shrinks  whether a failing one is reduced; false afterwards, because each costs up to a minute
Runs check_twice(Test& test, const Unplaced& operation, std::uint64_t seed,
                 const ReportedLimits& limits, bool& shrinks) {
    const auto other_of = [&](const Unplaced& first) {
        Unplaced other = verify::rearranged(first, seed);
        other.limits = limits;
        other.info = other_kernel(other.info);
        if (limits.storage_buffers == 0 && seed / operations_of_a_kernel % 2 == 0)
            verify::pack_weights(other);
        return other;
    };
    const Unplaced other = other_of(operation);
    Runs runs = run_both(test.device, operation, other);
    const bool alone = runs.first.wrong(), in_other_memory = !alone && runs.second.wrong();
    for (const Test* const run : {&runs.first, &runs.second})
        test.measure_u(run->outcome().max_u.value_or(0));
    if (in_other_memory && runs.in_parts) {
        Unplaced whole = other;
        whole.limits = {};
        if (problem_alone(test.device, whole).empty())
            runs.second.explain_instead(
                "a dispatch got the push constants or descriptors of another one, as fewer "
                "dispatches were right");
    }
    const std::string problem = alone             ? runs.first.outcome().reason
                                : in_other_memory ? runs.second.outcome().reason
                                                  : runs.difference;
    if (shrinks && !problem.empty()) {
        shrinks = false;
        const auto problem_of = [&](const Unplaced& candidate) -> std::string {
            if (!alone && !in_other_memory) {
                const Runs again = run_both(test.device, candidate, other_of(candidate));
                return again.difference.empty()
                           ? ""
                           : again.difference + "; the other operation is:\n" +
                                 commented(text_of(other_of(candidate))) + "// the operation is:";
            }
            return problem_alone(test.device, candidate);
        };
        test.show(smallest(in_other_memory ? other : operation, problem_of));
    }
    test.expect(problem.empty(), "operation {} ({}): {}{}", seed % operations_of_a_kernel,
                words_of(operation.info), in_other_memory ? "in other memory: " : "", problem);
    return runs;
}

// Checks operations of one kernel: 16 of the usual size, 2 large ones.
void check_kernel(Test& test, std::uint64_t number, const Kind& kind, bool& shrinks) {
    const std::uint64_t first = number * operations_of_a_kernel,
                        count = kind.elements > 100000 ? 2 : operations_of_a_kernel;
    const bool limited = !(kind.limits == ReportedLimits{}),
               cuts = limited && kind.limits.vendor == 0;
    const ReportedLimits limits =
        limited ? kind.limits
                : other_limits(first, other_kernel(verify::random_operation(first, kind).info));
    std::uint64_t taken = 0, in_parts = 0;
    std::string refusal;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const Runs runs = check_twice(test, verify::random_operation(seed, kind), seed, limits,
                                      shrinks);
        taken += runs.both ? 1 : 0;
        in_parts += runs.in_parts ? 1 : 0;
        if (!runs.both) refusal = runs.refusal;
    }
    if (taken < count * 4 / 5 && !test.wrong())
        unsupported("the device takes {} of {} operations; of one it says: {}", taken, count,
                    refusal);
    test.expect(!cuts || in_parts > 0, "no call was in parts");
}

}  // namespace

void add_operations(Checks& checks) {
    const auto shrinks = std::make_shared<bool>(!checks.extent.no_shrink);
    std::uint64_t number = 0;
    for (const Kind& kind : verify::kinds()) {
        checks.add(kind.name, [&kind, number, shrinks](Test& test) {
            check_kernel(test, number, kind, *shrinks);
        });
        ++number;
    }
}

void add_random(Checks& checks) {
    const std::uint32_t given = checks.extent.random_kernels;
    const auto shrinks = std::make_shared<bool>(!checks.extent.no_shrink);
    for (std::uint32_t number = 0; number < (given != 0 ? given : kernels_of_full); ++number) {
        const bool quick = number < kernels_of_quick;
        if (!quick && given == 0 && checks.extent.level == Level::quick) continue;
        checks.add_with(quick                      ? ""
                        : number < kernels_of_full ? "--level full"
                                                   : fmt::format("--random {}", number + 1),
                        std::to_string(number), [number, shrinks](Test& test) {
                            check_kernel(test, number, {}, *shrinks);
                            if (number % 4 == 0)  // a few with many elements
                                check_kernel(test, number, {.elements = 200000}, *shrinks);
                        });
    }
}

}  // namespace vkrope::conformance
