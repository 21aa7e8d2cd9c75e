// SPDX-License-Identifier: MIT
// The expected values of cases with steps around the rotation come from another program; here the
// oracle of the tree is held against them: two definitions, written apart, that must agree.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "conformance/cases/angles.hpp"
#include "conformance/cases/codes.hpp"
#include "conformance/cases/description.hpp"
#include "conformance/cases/tensor.hpp"
#include "io/element_type.hpp"
#include "meaning.hpp"
#include "reference/ops.hpp"
#include "reference/quantise.hpp"

using namespace vkrope;
using namespace vkrope::conformance;

namespace {

std::vector<double> numbers(const CaseFolder& folder, const std::string& file) {
    std::vector<double> values;
    if (!file.empty()) {
        const npy::Array array = folder.array(file);
        for (std::size_t i = 0; i < count_of(array); ++i) {
            values.push_back(value_at(array, i));
        }
    }
    return values;
}

/// One number for each token, from a row for each sequence or one for all.
template <class T>
std::vector<T> per_token(const std::vector<T>& values, const CaseTensor& tensor) {
    std::vector<T> all;
    for (std::size_t i = 0; i < std::size_t{tensor.batch} * tensor.tokens && !values.empty(); ++i) {
        all.push_back(values[i % values.size()]);
    }
    return all;
}

reference::Tensor layout_of(const CaseTensor& tensor, const RowStrides& strides, Element element) {
    return {.type = tools::reference_type(element),
            .batch = tensor.batch,
            .tokens = tensor.tokens,
            .heads = tensor.heads,
            .head_dim = tensor.head_dim,
            .batch_stride = static_cast<std::uint64_t>(strides.batch),
            .token_stride = static_cast<std::uint64_t>(strides.token),
            .head_stride = static_cast<std::uint64_t>(strides.head)};
}

reference::Operation operation_of(const CaseFolder& folder, const CaseDescription& description,
                                  const CaseTensor& tensor, TensorIndex which) {
    reference::Operation operation;
    if (which == V) {
        operation.positions.assign(std::size_t{tensor.batch} * tensor.tokens, 0);
        return operation;
    }
    if (!description.windows.empty() || description.sections) {
        unsupported("windows or sections");
    }
    const auto* base = std::get_if<BaseCase>(&description.angles);
    if (base == nullptr || (description.positions.kind != PositionKind::explicit_ids &&
                            description.positions.kind != PositionKind::offset)) {
        unsupported("angles or positions of this kind");
    }
    const Frequencies frequencies = frequencies_of(folder, *base, description.attention_factor, {},
                                                   description.rotary_dim / 2);
    operation.interleaved = description.pairing == VKROPE_INTERLEAVED;
    operation.inverse = description.direction == VKROPE_INVERSE;
    operation.rotary_offset = description.rotary_offset;
    operation.inv_freq = frequencies.inv_freq;
    operation.attention_factor = frequencies.attention_factor;
    if (description.positions.kind == PositionKind::offset) {
        for (std::uint32_t t = 0; t < tensor.tokens; ++t) {
            operation.positions.push_back(description.positions.value + t);
        }
        operation.positions = per_token(operation.positions, tensor);
    } else {
        operation.positions = per_token(folder.integers(*description.positions.numbers).values,
                                        tensor);
    }
    return operation;
}

reference::Ops steps_of(const CaseFolder& folder, const StepsCase& given,
                        const CaseTensor& tensor) {
    reference::Ops steps;
    steps.bias = numbers(folder, given.bias);
    steps.clip = given.clip;
    steps.scale = given.scale;
    steps.scale_tokens = per_token(numbers(folder, given.scale_tokens), tensor);
    if (given.norm) {
        steps.norm.kind = given.norm->kind == VKROPE_NORM_LAYER ? reference::NormKind::layer
                                                                : reference::NormKind::rms;
        steps.norm.over_token = given.norm->span == VKROPE_NORM_SPAN_TOKEN;
        steps.norm.after = given.norm->place == VKROPE_NORM_PLACE_AFTER;
        steps.norm.eps = given.norm->eps;
        steps.norm.weight = numbers(folder, given.norm->weight);
        steps.norm.weight_offset = given.norm->weight_offset;
        steps.norm.bias = numbers(folder, given.norm->bias);
    }
    if (given.first_set_tokens != 0) {
        const auto second = [&folder](const std::string& file, const std::vector<double>& first) {
            return file.empty() ? first : numbers(folder, file);
        };
        steps.second = {.from_token = given.first_set_tokens,
                        .bias = second(given.second_bias, steps.bias),
                        .weight = second(given.second_weight, steps.norm.weight),
                        .norm_bias = second(given.second_norm_bias, steps.norm.bias)};
    }
    return steps;
}

/// Index of the first element of each row in the expected file, or of the first byte of a quantised
/// row of `bytes`; -1: the token has no slot.
std::int64_t row_in_file(const CaseFolder& folder, const StepsCase& steps, const CaseTensor& tensor,
                         std::uint64_t token, std::uint64_t head, std::uint64_t bytes = 0) {
    if (!steps.cache) {
        const std::int64_t channel =
            static_cast<std::int64_t>(token / tensor.tokens) * tensor.out.batch +
            static_cast<std::int64_t>(token % tensor.tokens) * tensor.out.token +
            static_cast<std::int64_t>(head) * tensor.out.head;
        return bytes == 0 ? channel : channel / tensor.head_dim * static_cast<std::int64_t>(bytes);
    }
    const std::int64_t slot = per_token(folder.integers(steps.cache->slots).values, tensor)[token];
    const auto page_size = static_cast<std::int64_t>(steps.cache->page_size);
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) {
        const char letter = steps.cache->layout[axis];
        at = at * static_cast<std::int64_t>(steps.cache->shape[axis]) +
             (letter == 'N'   ? slot / page_size
              : letter == 'P' ? slot % page_size
              : letter == 'H' ? static_cast<std::int64_t>(head)
                              : 0);
    }
    return slot < 0 ? -1 : at;
}

/// Calls visit(token of all sequences, [heads, head_dim]) with the channels before they are stored.
template <class Visit>
void each_token(const CaseFolder& folder, const CaseDescription& description,
                const CaseTensor& tensor, TensorIndex which, const Visit& visit) {
    const StepsCase& steps = description.steps[which];
    const auto* input = tensor.parent.data.data() + static_cast<std::size_t>(tensor.in.offset) *
                                                        element_bytes(description.dtype);
    reference::apply_ops(
        layout_of(tensor, tensor.in, description.dtype),
        operation_of(folder, description, tensor, which), steps_of(folder, steps, tensor), 3, input,
        [&](std::uint64_t batch, std::uint64_t token,
            std::span<const reference::Approximate> channels) {
            std::vector<reference::Approximate> row(channels.begin(), channels.end());
            reference::hadamard(row, steps.hadamard, 0);
            visit(batch * tensor.tokens + token, row);
        });
}

/// The bytes of a row, and its scale if one is made.
reference::MadeRow stored_row(const CaseFolder& folder, const StepsCase& steps, std::size_t head,
                              std::span<const float> row) {
    const reference::Store store = tools::reference_store(*steps.out);
    if (reference::block_channels(store) != 1) {
        return {.scale = NAN, .codes = reference::quantise_blocks(store, row)};
    }
    if (!steps.store_scale) {
        return {.scale = NAN, .codes = reference::quantise_given(store, row, 1)};
    }
    if (const auto* made = std::get_if<MadeScaleCase>(&*steps.store_scale)) {
        return reference::quantise_made(store, row, static_cast<float>(made->floor),
                                        made->power_of_two);
    }
    const auto& given = std::get<GivenScaleCase>(*steps.store_scale);
    const auto* file = std::get_if<std::string>(&given);
    const double scale = file == nullptr ? std::get<double>(given) : numbers(folder, *file)[head];
    return {.scale = NAN,
            .codes = reference::quantise_given(store, row, static_cast<float>(scale))};
}

/// As wrong_values(), of a quantised output: its codes and its scales.
std::size_t wrong_codes(const CaseFolder& folder, const CaseDescription& description,
                        TensorIndex which, std::size_t& compared) {
    const StepsCase& steps = description.steps[which];
    const TensorCase& described = *description.tensors[which];
    const CaseTensor tensor = read_tensor(folder, tensor_names[which], described,
                                          description.dtype);
    const npy::Array expected = folder.array(described.expected);
    std::vector<std::byte> bytes = expected.data;
    const std::uint64_t row_bytes = tensor.head_dim / block_channels(*steps.out) *
                                    element_bytes(*steps.out);
    std::vector<bool> written(bytes.size() / row_bytes);
    const bool made = steps.store_scale &&
                      std::holds_alternative<MadeScaleCase>(*steps.store_scale);
    const std::string scales = std::string(tensor_names[which]) + "_scales";
    const std::vector<double> wanted = numbers(folder, made ? "expected_" + scales + ".npy" : ""),
                              atol = numbers(folder,
                                             description.tolerance->scale_atol_files[which]);
    std::size_t wrong = 0;
    const auto visit = [&](std::uint64_t token, std::span<const reference::Approximate> channels) {
        for (std::size_t head = 0; head < tensor.heads; ++head) {
            std::vector<float> row;
            for (const auto& channel : channels.subspan(head * tensor.head_dim, tensor.head_dim)) {
                row.push_back(static_cast<float>(channel.value));
            }
            const reference::MadeRow stored = stored_row(folder, steps, head, row);
            const std::int64_t at = row_in_file(folder, steps, tensor, token, head, row_bytes);
            if (made) {
                const std::size_t i = token * tensor.heads + head;
                const double difference = std::fabs(stored.scale - wanted[i]);
                wrong += at < 0 ? !std::isnan(wanted[i])
                                : !(difference <=
                                    (atol.empty() ? 0 : atol[i]) + 2e-6 * std::fabs(wanted[i]));
            }
            if (at >= 0) {
                std::memcpy(&bytes[static_cast<std::size_t>(at)], stored.codes.data(), row_bytes);
                written[static_cast<std::size_t>(at) / row_bytes] = true;
            }
        }
    };
    each_token(folder, description, tensor, which, visit);
    const CodeFindings findings = compare_codes({.element = *steps.out,
                                                 .actual = bytes,
                                                 .expected = expected.data,
                                                 .row_bytes = row_bytes,
                                                 .written = written,
                                                 .off_by_one = description.tolerance->off_by_one});
    compared += findings.codes;
    if (wrong + findings.wrong > 0) {
        std::printf("%s: %s: %zu scales are wrong; byte %zu: %s\n", description.id.c_str(),
                    tensor_names[which], wrong, static_cast<std::size_t>(findings.byte),
                    findings.first.c_str());
    }
    return wrong + findings.wrong;
}

/// Compares one tensor; returns the number of values that are wrong.
std::size_t wrong_values(const CaseFolder& folder, const CaseDescription& description,
                         TensorIndex which, std::size_t& compared) {
    const TensorCase& described = *description.tensors[which];
    if (described.expected.empty()) {
        return 0;
    }
    const StepsCase& steps = description.steps[which];
    if (steps.out && is_quantised(*steps.out)) {
        return wrong_codes(folder, description, which, compared);
    }
    const CaseTensor tensor = read_tensor(folder, tensor_names[which], described,
                                          description.dtype);
    const npy::Array expected = folder.array(described.expected);
    const std::vector<double> atol = numbers(folder, description.tolerance->atol_files[which]);
    const reference::Type stored = tools::reference_type(steps.out.value_or(description.dtype));
    std::size_t wrong = 0;
    const auto visit = [&](std::uint64_t token, std::span<const reference::Approximate> channels) {
        for (std::size_t i = 0; i < channels.size(); ++i) {
            const std::int64_t row = row_in_file(folder, steps, tensor, token, i / tensor.head_dim);
            if (row < 0) {
                continue;
            }
            const std::size_t at = static_cast<std::size_t>(row) + i % tensor.head_dim;
            const double wanted = value_at(expected, at);
            const double got = reference::widen(stored,
                                                reference::narrow(stored, channels[i].value));
            const double allowed = (atol.empty() ? description.tolerance->atol : atol[at]) +
                                   description.tolerance->rtol * std::fabs(wanted);
            ++compared;
            const bool right = std::isnan(wanted)
                                   ? std::isnan(got)
                                   : got == wanted || std::fabs(got - wanted) <= allowed;
            if (!right && wrong++ == 0) {
                std::printf("%s: %s: element %zu is %g, expected %g within %g\n",
                            description.id.c_str(), tensor_names[which], at, got, wanted, allowed);
            }
        }
    };
    each_token(folder, description, tensor, which, visit);
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t cases = 0, failed = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
            if (entry.path().filename() != "case.json") {
                continue;
            }
            const CaseFolder folder(std::filesystem::canonical(argv[i]),
                                    std::filesystem::canonical(entry.path().parent_path()));
            try {
                const CaseDescription description = describe(parse_document(folder.document()));
                if (!description.has_steps) {
                    continue;
                }
                std::size_t wrong = 0, compared = 0;
                for (const TensorIndex which : every_tensor) {
                    if (description.tensors[which]) {
                        wrong += wrong_values(folder, description, which, compared);
                    }
                }
                std::printf("%s: %zu values, %zu wrong\n", description.id.c_str(), compared, wrong);
                ++cases;
                failed += wrong != 0 || compared == 0 ? 1 : 0;
            } catch (const Refusal& refusal) {
                std::printf("%s: left out: %s\n", entry.path().parent_path().c_str(),
                            refusal.what());
            }
        }
    }
    std::printf("%zu cases, %zu failed\n", cases, failed);
    return cases == 0 || failed != 0 ? 1 : 0;
}
