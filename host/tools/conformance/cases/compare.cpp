// SPDX-License-Identifier: MIT
#include "conformance/cases/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/meaning.hpp"
#include "conformance/cases/codes.hpp"
#include "conformance/suite.hpp"
#include "io/element_type.hpp"

namespace vkrope::conformance {
namespace {

npy::Array read_as(const CaseFolder& folder, const std::string& file, const Actual& actual) {
    npy::Array array = folder.array(file);
    if (array.header.shape != actual.output.shape) {
        wrong_file("{}: has shape {}; the output of {} has {}", file,
                   npy::shape_text(array.header.shape), actual.tensor.name,
                   npy::shape_text(actual.output.shape));
    }
    const npy::Type type = array.header.type;
    if (type == npy::Type::i4 || type == npy::Type::i8 ||
        (type == npy::Type::u1) != is_quantised(actual.output.element)) {
        wrong_file("{}: has data of type {}; the output of {} has {}", file, npy::name(type),
                   actual.tensor.name, npy::name(tools::npy_type(actual.output.element)));
    }
    return array;
}

double finite_tolerance(const npy::Array& atol, std::uint64_t index) {
    const double absolute = value_at(atol, index);
    if (!std::isfinite(absolute) || absolute < 0) {
        wrong_file("tolerance: element {} may differ by {}", index, absolute);
    }
    return absolute;
}

struct Allowance {
    double atol = 0, rtol = 0;
    std::optional<npy::Array> atol_file;  // one tolerance for each element
    std::optional<npy::Array> exact_where_0;

    double at(std::uint64_t index, double expected) const {
        return (atol_file ? finite_tolerance(*atol_file, index) : atol) + rtol * std::abs(expected);
    }
    bool exact(std::uint64_t index) const {
        return exact_where_0 && value_at(*exact_where_0, index) == 0;
    }
};

/// Returns the tolerance. Exact angles, which come from a base, use the tighter one, if given.
const std::optional<Tolerance>& tolerance_for(const CaseDescription& description) {
    const bool exact = std::holds_alternative<BaseCase>(description.angles) &&
                       description.tolerance_exact_angles;
    return exact ? description.tolerance_exact_angles : description.tolerance;
}

/// Returns the allowed errors. Elements with tolerance 0 in an atol file must always pass through.
Allowance allowance_for(const CaseFolder& folder, const CaseDescription& description,
                        const Actual& actual) {
    const std::optional<Tolerance>& tolerance = tolerance_for(description);
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
    allowance.exact_where_0 = allowance.atol_file ? allowance.atol_file
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
        return oracle::widen(verify::type_of(element_), bits(index));
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

/// Marks the channels of a head row that are in a window. V has no windows.
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

/// Returns true if channels outside the windows must have the bits of the input.
bool passes_through(const CaseDescription& description, const Actual& actual) {
    const StepsCase& steps = description.steps[actual.which];
    const Ops& ops = description.operation.info.tensor[actual.which].ops;
    const bool changes = !steps.files.bias.empty() || ops.norm.kind != VKROPE_NORM_NONE ||
                         ops.clip != 0 || (ops.scale != 0 && ops.scale != 1) ||
                         !steps.scale_tokens.empty() || ops.hadamard != 0;
    return !steps.cache && !changes && actual.output.element == description.dtype;
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
        // In all other elements, a tolerance of 0 means a value without rounding errors, and the
        // sign of a zero depends on how products are summed.
        const double allowed = allowance.exact(index) ? 0 : allowance.at(index, wanted);
        if (!close(got, wanted, allowed)) {
            wrong.add([&] {
                return fmt::format("{} is {}, expected {} within {:.3g}", place_of(actual, index),
                                   got, wanted, allowed);
            });
        }
    }
}

/// Returns the share of codes that may differ by one, if the case gives a share.
std::optional<double> off_by_one_of(const CaseDescription& description) {
    for (const auto* tolerance : {&tolerance_for(description), &description.tolerance}) {
        if (*tolerance && (*tolerance)->off_by_one) {
            return (*tolerance)->off_by_one;
        }
    }
    return std::nullopt;
}

void compare_quantised(const CaseFolder& folder, const CaseDescription& description,
                       const std::string& file, const Actual& actual, Wrong& wrong) {
    const npy::Array expected = read_as(folder, file, actual);
    const CodeFindings findings = compare_codes({.element = actual.output.element,
                                                 .actual = actual.bytes,
                                                 .expected = expected.data,
                                                 .row_bytes = actual.output.row_bytes,
                                                 .written = actual.output.written,
                                                 .off_by_one = off_by_one_of(description)});
    if (findings.wrong > 0) {
        wrong.add(
            [&] { return fmt::format("{}: {}", place_of(actual, findings.byte), findings.first); });
        wrong.count += findings.wrong - 1;
    }
}

/// Reads the scales of all tokens and heads. The file may omit axes of length 1.
npy::Array read_scales(const CaseFolder& folder, const std::string& file, const std::string& name,
                       const std::vector<std::uint64_t>& shape) {
    const auto longer_axes = [](std::vector<std::uint64_t> of) {
        std::erase(of, 1u);
        return of;
    };
    npy::Array array = folder.array(file);
    if (longer_axes(array.header.shape) != longer_axes(shape)) {
        wrong_file("{}: has shape {}; {} have {}", file, npy::shape_text(array.header.shape), name,
                   npy::shape_text(shape));
    }
    if (array.header.type != npy::Type::f4 && array.header.type != npy::Type::f8) {
        wrong_file("{}: has data of type {}; scales are <f4", file, npy::name(array.header.type));
    }
    return array;
}

/// Compares the scales that the library computes with the file of the case that has a fixed name.
void compare_scales(const CaseFolder& folder, const CaseDescription& description,
                    const Actual& actual, Wrong& wrong) {
    constexpr double relative = 2e-6;
    const MadeScales& made = *actual.scales;
    const std::string name = actual.tensor.name + "_scales";
    const npy::Array expected = read_scales(folder, "expected_" + name + ".npy", name, made.shape);
    const auto atol_file = [&](const std::optional<Tolerance>& from) {
        return from ? from->scale_atol_files[actual.which] : std::string();
    };
    std::string atol_name = atol_file(tolerance_for(description));
    atol_name = atol_name.empty() ? atol_file(description.tolerance) : atol_name;
    std::optional<npy::Array> atol;
    if (!atol_name.empty()) {
        atol = read_scales(folder, atol_name, name, made.shape);
    }
    for (std::size_t index = 0; index < made.values.size(); ++index) {
        const double got = made.values[index], wanted = value_at(expected, index);
        const double absolute = atol && !std::isnan(wanted) ? finite_tolerance(*atol, index) : 0;
        const double allowed = absolute + relative * std::abs(wanted);
        if (!close(got, wanted, allowed)) {
            wrong.add([&] {
                return fmt::format("{} is {}, expected {} within {:.3g}",
                                   place_text(name, made.shape, index), got, wanted, allowed);
            });
        }
    }
}

/// Returns the number of elements of an output, or of bytes if the output is quantised.
std::uint64_t element_count(const Actual& actual) {
    const Element element = actual.output.element;
    return actual.bytes.size() / (is_quantised(element) ? 1 : element_bytes(element));
}

}  // namespace

Comparison compare(const CaseFolder& folder, const CaseDescription& description,
                   const Actual& actual) {
    Comparison comparison;
    Wrong wrong;
    if (const std::string& file = description.tensors[actual.which]->expected; !file.empty()) {
        comparison.expected = true;
        if (is_quantised(actual.output.element)) {
            compare_quantised(folder, description, file, actual, wrong);
        } else {
            compare_expected(allowance_for(folder, description, actual),
                             read_as(folder, file, actual), actual,
                             rotated_channels(description, actual),
                             passes_through(description, actual), comparison, wrong);
        }
        if (actual.scales) {
            compare_scales(folder, description, actual, wrong);
        }
    }
    if (wrong.count > 0) {
        comparison.problem = fmt::format(
            "{} ({} such findings in {} {})", wrong.first, wrong.count, element_count(actual),
            is_quantised(actual.output.element) ? "bytes" : "elements");
    }
    return comparison;
}

}  // namespace vkrope::conformance
