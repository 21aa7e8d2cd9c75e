// SPDX-License-Identifier: MIT
#include "conformance/cases/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/suite.hpp"
#include "files/element_type.hpp"

namespace vkrope::conformance {
namespace {

struct Allowance {
    double atol = 0, rtol = 0;
    std::optional<npy::Array> atol_file;  // one tolerance for each element
    std::optional<npy::Array> exact_where_0;

    double at(std::uint64_t index, double expected) const {
        const double absolute = atol_file ? value_at(*atol_file, index) : atol;
        if (!std::isfinite(absolute) || absolute < 0) {
            wrong_file("tolerance: element {} may differ by {}", index, absolute);
        }
        return absolute + rtol * std::abs(expected);
    }
    bool exact(std::uint64_t index) const {
        return exact_where_0 && value_at(*exact_where_0, index) == 0;
    }
};

npy::Array read_as(const CaseFolder& folder, const std::string& file, const Actual& actual) {
    npy::Array array = folder.array(file);
    if (array.header.shape != actual.output.shape) {
        wrong_file("{}: has shape {}; the output of {} has {}", file,
                   npy::shape_text(array.header.shape), actual.tensor.name,
                   npy::shape_text(actual.output.shape));
    }
    if (array.header.type == npy::Type::i4 || array.header.type == npy::Type::i8 ||
        array.header.type == npy::Type::u1) {
        wrong_file("{}: has data of type {}", file, npy::name(array.header.type));
    }
    return array;
}

/// Angles from a base are exact here, so the tighter tolerance applies if there is one. Elements
/// whose tolerance in an atol file is 0 must pass through in either case.
Allowance allowance_for(const CaseFolder& folder, const CaseDescription& description,
                        const Actual& actual) {
    const bool exact = std::holds_alternative<BaseCase>(description.angles) &&
                       description.tolerance_exact_angles;
    const std::optional<Tolerance>& tolerance = exact ? description.tolerance_exact_angles
                                                      : description.tolerance;
    if (!tolerance) {
        wrong_file("tolerance is missing");
    }
    const auto file_of = [&](const std::optional<Tolerance>& from) {
        const std::string file = from ? from->atol_files[actual.which] : "";
        return file.empty() ? std::nullopt : std::optional(read_as(folder, file, actual));
    };
    Allowance allowance = {.atol = tolerance->atol,
                           .rtol = tolerance->rtol,
                           .atol_file = file_of(tolerance),
                           .exact_where_0 = {}};
    allowance.exact_where_0 = allowance.atol_file || !exact ? allowance.atol_file
                                                            : file_of(description.tolerance);
    return allowance;
}

class Elements {
   public:
    Elements(std::span<const std::byte> bytes, Element element)
        : bytes_(bytes), element_(element) {}

    std::uint32_t bits(std::uint64_t index) const {
        std::uint32_t bits = 0;
        std::memcpy(&bits, bytes_.data() + index * element_bytes(element_),
                    element_bytes(element_));
        return bits;
    }
    double value(std::uint64_t index) const {
        return reference::widen(tools::reference_type(element_), bits(index));
    }

   private:
    std::span<const std::byte> bytes_;
    Element element_;
};

bool close(double actual, double expected, double allowed) {
    if (std::isnan(actual) || std::isnan(expected)) {
        return std::isnan(actual) && std::isnan(expected);
    }
    return actual == expected ||
           std::abs(actual - expected) <= allowed;  // infinity - infinity is NaN
}

bool same_number(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

struct Wrong {
    std::uint64_t count = 0;
    std::string first;

    template <class Sentence>
    void add(const Sentence& sentence) {
        if (count++ == 0) {
            first = sentence();
        }
    }
};

/// Marks the channels of a head row that are in a window. V has none.
std::vector<bool> rotated_channels(const CaseDescription& description, const Actual& actual) {
    std::vector<bool> rotated(actual.tensor.head_dim, false);
    const auto mark = [&rotated](std::size_t first, std::size_t count) {
        first = std::min(first, rotated.size());
        std::fill_n(rotated.begin() + static_cast<std::ptrdiff_t>(first),
                    std::min(count, rotated.size() - first), true);
    };
    if (actual.which == V) {
        return rotated;
    }
    mark(description.rotary_offset, description.rotary_dim);
    for (const WindowCase& window : description.windows) {
        mark(window.offset, window.rotary_dim);
    }
    return rotated;
}

std::string place_of(const Actual& actual, std::uint64_t index) {
    return place_text(actual.tensor.name, actual.output.shape, index);
}

/// True if the output is to be the input, bit for bit, in the channels outside the windows.
bool passes_through(const CaseDescription& description, const Actual& actual) {
    const StepsCase& steps = description.steps[actual.which];
    return !steps.cache && !steps.change_values() && actual.output.element == description.dtype;
}

void compare_expected(const Allowance& allowance, const npy::Array& expected, const Actual& actual,
                      const std::vector<bool>& rotated, bool bit_for_bit, Comparison& comparison,
                      Wrong& wrong) {
    const Element element = actual.output.element;
    const bool same_type = expected.header.type == tools::npy_type(element);
    const Elements stored(expected.data, element), computed(actual.bytes, element);
    const std::uint64_t count = actual.bytes.size() / element_bytes(element);
    for (std::uint64_t index = 0; index < count; ++index) {
        const double got = computed.value(index), wanted = value_at(expected, index);
        const double difference = std::abs(got - wanted);
        if (std::isfinite(difference)) {
            comparison.max_error = std::max(comparison.max_error, difference);
        }
        const bool in_window = rotated[index % actual.tensor.head_dim];
        if (bit_for_bit && allowance.exact(index) && !in_window) {
            if (same_type ? computed.bits(index) != stored.bits(index)
                          : !same_number(got, wanted)) {
                wrong.add([&] {
                    return fmt::format("{} is {}, expected {} bit for bit", place_of(actual, index),
                                       got, wanted);
                });
            }
            continue;
        }
        // Elsewhere, a tolerance of 0 belongs to a value without rounding errors. The sign of a
        // zero depends on how products are summed.
        const double allowed = allowance.exact(index) ? 0 : allowance.at(index, wanted);
        if (!close(got, wanted, allowed)) {
            wrong.add([&] {
                return fmt::format("{} is {}, expected {} within {:.3g}", place_of(actual, index),
                                   got, wanted, allowed);
            });
        }
    }
}

/// Checks that the output equals the input outside the windows and in planes that are not rotated.
void compare_untouched(const CaseDescription& description, const Actual& actual,
                       const std::vector<bool>& rotated, Wrong& wrong) {
    const std::vector<std::uint64_t>& planes = description.planes_rotated;
    const CaseTensor& tensor = actual.tensor;
    const Elements input(tensor.parent.data, description.dtype),
        computed(actual.bytes, description.dtype);
    each_element(tensor, [&](std::uint64_t index, std::uint64_t parent) {
        const bool in_plane = !tensor.has_planes || std::binary_search(planes.begin(), planes.end(),
                                                                       plane_of(tensor, index));
        if (!(in_plane && rotated[index % tensor.head_dim]) &&
            computed.bits(index) != input.bits(parent)) {
            wrong.add([&] {
                return fmt::format(
                    "{} is {}, and was {}: it is not rotated and must pass through bit for bit",
                    place_of(actual, index), computed.value(index), input.value(parent));
            });
        }
    });
}

/// Checks that rows of a cache that no slot names keep their bytes.
void compare_unwritten(const Actual& actual, Wrong& wrong) {
    const Elements before(actual.output.initial, actual.output.element),
        after(actual.bytes, actual.output.element);
    const std::uint64_t head_dim = actual.tensor.head_dim;
    for (std::uint64_t index = 0; index < actual.output.written.size() * head_dim; ++index) {
        if (!actual.output.written[index / head_dim] && before.bits(index) != after.bits(index)) {
            wrong.add([&] {
                return fmt::format("{} is {}, and was {}: no slot names its row",
                                   place_of(actual, index), after.value(index),
                                   before.value(index));
            });
        }
    }
}

}  // namespace

Comparison compare(const CaseFolder& folder, const CaseDescription& description,
                   const Actual& actual) {
    Comparison comparison;
    Wrong wrong;
    const std::vector<bool> rotated = rotated_channels(description, actual);
    const bool untouched = passes_through(description, actual);
    if (untouched) {
        compare_untouched(description, actual, rotated, wrong);
    }
    compare_unwritten(actual, wrong);
    if (const std::string& file = description.tensors[actual.which]->expected; !file.empty()) {
        comparison.expected = true;
        compare_expected(allowance_for(folder, description, actual), read_as(folder, file, actual),
                         actual, rotated, untouched, comparison, wrong);
    }
    if (wrong.count > 0) {
        comparison.problem = fmt::format(
            "{} ({} such findings in {} elements)", wrong.first, wrong.count,
            actual.bytes.size() / element_bytes(actual.output.element));
    }
    return comparison;
}

}  // namespace vkrope::conformance
