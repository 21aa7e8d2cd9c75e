// SPDX-License-Identifier: MIT
// Checks operations drawn at random from all that the library accepts. Each runs twice: unchanged,
// and in other memory by a kernel with the other mapping, the other conversion and the other kind
// of table, with descriptor sets, and for some kernels with lower limits. Both runs must give the
// same bits.
#include "verify/random.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "conformance/builtin/trial.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

using verify::operations_of_a_kernel, verify::Unplaced;

// Kernels of the quick level, whose pipelines take little time to compile. Random operations of 3
// have K and V in groups of other strides, those of 20 have pages in several dispatches, and those
// of 61 store blocks of zeros.
constexpr std::uint32_t of_quick[] = {3, 15, 16, 17, 18, 19, 20, 61}, kernels_of_full = 68;

/// Limits of the second run. None of them may change a bit.
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

/// Runs an operation. Returns nothing if the library or the device does not support it.
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

/// Returns true if the bits are the same, except those of NaNs, which depend on the device.
bool same_rows(Element element, const Bytes& a, const Bytes& b) {
    if (a == b) return true;
    if (is_quantised(element) || a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size() / element_bytes(element); ++i) {
        if (stored(element, a, i) != stored(element, b, i) &&
            !(std::isnan(value(element, a, i)) && std::isnan(value(element, b, i))))
            return false;
    }
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

/// Runs an operation twice. Returns true if both runs were supported.
bool hold_twice(Test& test, const Unplaced& operation, std::uint64_t seed,
                const ReportedLimits& limits) {
    Test first(test.device), second(test.device);
    const std::optional<Rotated> rotated = run_if_taken(first, {operation});
    Trial other = verify::rearranged(operation, seed);
    other.limits = limits;
    other.info = other_kernel(other.info);
    const std::optional<Rotated> again = run_if_taken(second, other);
    const auto hold = [&](bool right, const std::string& sentence) {
        test.hold(right, "operation {} ({}): {}", seed % operations_of_a_kernel,
                  words_of(operation.info), sentence);
    };
    hold(!first.wrong(), first.outcome().reason);
    hold(!second.wrong(), "in other memory: " + second.outcome().reason);
    if (!rotated || !again) return false;
    for (const TensorIndex which : every_tensor) {
        hold(
            same_rows(operation.info.tensor[which].out, rotated->rows[which], again->rows[which]) &&
                same_rows(VKROPE_F32, bytes_of(rotated->scales[which]),
                          bytes_of(again->scales[which])),
            std::string(1, "QKV"[which]) + " has other bits in other memory");
    }
    return true;
}

/// Checks all operations of a kernel. Every fourth kernel also runs one with many elements.
void hold_kernel(Test& test, std::uint64_t number) {
    const std::uint64_t first = number * operations_of_a_kernel;
    const ReportedLimits limits = other_limits(first,
                                               other_kernel(verify::random_operation(first).info));
    std::uint64_t taken = 0;
    for (std::uint64_t seed = first; seed < first + operations_of_a_kernel; ++seed)
        taken += hold_twice(test, verify::random_operation(seed), seed, limits) ? 1 : 0;
    if (number % 4 == 0)
        hold_twice(test, verify::random_operation(first, {.elements = 200000}), first, limits);
    if (taken < operations_of_a_kernel * 4 / 5 && !test.wrong())
        unsupported("the device takes {} of {} operations", taken, operations_of_a_kernel);
}

}  // namespace

void add_random(Checks& checks) {
    const std::uint32_t given = checks.extent.random_kernels;
    for (std::uint32_t number = 0; number < (given != 0 ? given : kernels_of_full); ++number) {
        const bool quick = std::find(std::begin(of_quick), std::end(of_quick), number) !=
                           std::end(of_quick);
        if (!quick && given == 0 && checks.extent.level == Level::quick) continue;
        checks.add_with(quick                      ? ""
                        : number < kernels_of_full ? "--level full"
                                                   : fmt::format("--random {}", number + 1),
                        std::to_string(number),
                        [number](Test& test) { hold_kernel(test, number); });
    }
}

}  // namespace vkrope::conformance
