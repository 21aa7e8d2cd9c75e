// SPDX-License-Identifier: MIT
// Checks operations drawn at random from all that the library accepts. Each runs twice: unchanged,
// and in other memory by a kernel with the other mapping, the other conversion and the other kind
// of table, with descriptor sets, and for some kernels with lower limits. Both runs must give the
// same bits. The report of a failure has the smallest operation found that fails.
#include "verify/random.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <sstream>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"
#include "verify/shrink.hpp"
#include "verify/text.hpp"

namespace vkrope::conformance {
namespace {

using verify::operations_of_a_kernel, verify::Unplaced;

// Kernels of the quick level, whose pipelines take little time to compile. Random operations of 3
// have K and V in groups of other strides, those of 20 have pages in several dispatches, and those
// of 61 store blocks of zeros.
constexpr std::uint32_t of_quick[] = {3, 15, 16, 17, 18, 19, 20, 61}, kernels_of_full = 68;

// Limits of the second run. None of them may change a bit.
ReportedLimits other_limits(std::uint64_t seed, const KernelInfo& info) {
    std::mt19937_64 random(seed);
    ReportedLimits limits = {.no_push_descriptors = true};
    const bool in_buffer = info.angles == VKROPE_ANGLES_DIRECT_BUFFER ||
                           info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    switch (random() % 4) {
        case 0:
            limits.storage_buffers = (info.scatter_kv ? 8 : 4) + 2 * std::uint32_t(random() % 4);
            break;
        case 1:
            limits.workgroups_x = limits.workgroups_z = 3;
            limits.workgroups_y = 2;
            break;
        default:
            if (!in_buffer) limits.storage_range = 4096 + 256 * std::uint32_t(random() % 16);
    }
    return limits;
}

KernelInfo other_kernel(KernelInfo info) {
    info.mapping = info.mapping == VKROPE_MAPPING_GPU ? VKROPE_MAPPING_CPU : VKROPE_MAPPING_GPU;
    info.conversion = info.conversion == VKROPE_CONVERSION_INTEGER ? VKROPE_CONVERSION_NATIVE
                                                                   : VKROPE_CONVERSION_INTEGER;
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE)
        info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    else if (info.angles == VKROPE_ANGLES_DIRECT_BUFFER)
        info.angles = VKROPE_ANGLES_DIRECT_TEXTURE;
    return info;
}

// Runs an operation. Returns nothing if the library or the device does not support it.
std::optional<Rotated> run_if_taken(Test& test, Trial trial) {
    if (trial.info.conversion == VKROPE_CONVERSION_NATIVE && !test.device.traits().converts_f16)
        trial.info.conversion = VKROPE_CONVERSION_INTEGER;
    try {
        return test.run(trial);
    } catch (const Refusal& refusal) {
        if (refusal.outcome().verdict != Verdict::unsupported ||
            refusal.code() == VKROPE_ERROR_INVALID_ARGUMENT)
            throw;
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
    std::string words = fmt::format("{}, {}", name_of(info.pairing), name_of(info.angles));
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
    std::string difference = {};  // of the bits; empty if there is none
};

Runs run_both(DeviceUnderTest& device, const Unplaced& operation, const Unplaced& other) {
    Runs runs = {.first = Test(device), .second = Test(device)};
    const std::optional<Rotated> rotated = run_if_taken(runs.first, operation);
    const std::optional<Rotated> again = run_if_taken(runs.second, other);
    runs.both = rotated && again;
    for (const TensorIndex which : every_tensor) {
        if (!runs.both || !runs.difference.empty() ||
            (same_rows(operation.info.tensor[which].out, rotated->rows[which],
                       again->rows[which]) &&
             same_rows(VKROPE_F32, bytes_of(rotated->scales[which]),
                       bytes_of(again->scales[which]))))
            continue;
        runs.difference = fmt::format("{} has other bits in other memory", "QKV"[which]);
    }
    return runs;
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

// Runs an operation twice. Returns true if both runs were supported.
//
// shrinks  whether a failing one is reduced; false afterwards, because each costs up to a minute
bool hold_twice(Test& test, const Unplaced& operation, std::uint64_t seed,
                const ReportedLimits& limits, bool& shrinks) {
    const auto other_of = [&](const Unplaced& first) {
        Unplaced other = verify::rearranged(first, seed);
        other.limits = limits;
        other.info = other_kernel(other.info);
        return other;
    };
    const Unplaced other = other_of(operation);
    const Runs runs = run_both(test.device, operation, other);
    const bool alone = runs.first.wrong(), in_other_memory = !alone && runs.second.wrong();
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
            Test once(test.device);
            run_if_taken(once, candidate);
            return once.wrong() ? once.outcome().reason : "";
        };
        test.show(smallest(in_other_memory ? other : operation, problem_of));
    }
    test.hold(problem.empty(), "operation {} ({}): {}{}", seed % operations_of_a_kernel,
              words_of(operation.info), in_other_memory ? "in other memory: " : "", problem);
    return runs.both;
}

// Checks all operations of a kernel. Every fourth kernel also runs one with many elements.
void hold_kernel(Test& test, std::uint64_t number, bool& shrinks) {
    const std::uint64_t first = number * operations_of_a_kernel;
    const ReportedLimits limits = other_limits(first,
                                               other_kernel(verify::random_operation(first).info));
    std::uint64_t taken = 0;
    for (std::uint64_t seed = first; seed < first + operations_of_a_kernel; ++seed)
        taken += hold_twice(test, verify::random_operation(seed), seed, limits, shrinks) ? 1 : 0;
    if (number % 4 == 0)
        hold_twice(test, verify::random_operation(first, {.elements = 200000}), first, limits,
                   shrinks);
    if (taken < operations_of_a_kernel * 4 / 5 && !test.wrong())
        unsupported("the device takes {} of {} operations", taken, operations_of_a_kernel);
}

}  // namespace

void add_random(Checks& checks) {
    const std::uint32_t given = checks.extent.random_kernels;
    const auto shrinks = std::make_shared<bool>(!checks.extent.no_shrink);
    for (std::uint32_t number = 0; number < (given != 0 ? given : kernels_of_full); ++number) {
        const bool quick = std::find(std::begin(of_quick), std::end(of_quick), number) !=
                           std::end(of_quick);
        if (!quick && given == 0 && checks.extent.level == Level::quick) continue;
        checks.add_with(quick                      ? ""
                        : number < kernels_of_full ? "--level full"
                                                   : fmt::format("--random {}", number + 1),
                        std::to_string(number),
                        [number, shrinks](Test& test) { hold_kernel(test, number, *shrinks); });
    }
}

}  // namespace vkrope::conformance
