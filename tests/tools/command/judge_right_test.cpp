// SPDX-License-Identifier: MIT
// Tests that `vkrope check` never blames an engine that is right, for every rotation of
// tests/data/models.
#include <doctest/doctest.h>

#include "check/check.hpp"
#include "right_engine.hpp"

using namespace vkrope;
using namespace vkrope::tools;
using namespace vkrope::tools::right_engine;
using oracle::Type;

namespace {

// What an engine read and stored.
struct Stored {
    std::vector<std::byte> input, output;
    std::vector<std::uint8_t> codes = {};
    std::vector<float> scales = {};
};

std::vector<std::byte> bytes_of(const std::vector<float>& numbers, Type type) {
    std::vector<std::byte> bytes;
    for (const float x : numbers) {
        const std::uint32_t bits = oracle::narrow(type, x);
        const auto* const first = reinterpret_cast<const std::byte*>(&bits);  // little-endian
        bytes.insert(bytes.end(), first, first + oracle::bytes_of(type));
    }
    return bytes;
}

// Stores codes of int8 with a scale of each row, or blocks of q8_0.
void store_codes(const Given& given, const std::vector<float>& numbers, Stored& stored) {
    const bool blocks = given.store == oracle::Store::q8_0;
    const std::uint64_t n = blocks ? 32 : given.head_dim;
    for (std::uint64_t first = 0; first < numbers.size(); first += n) {
        float amax = 0;
        for (std::uint64_t i = 0; i < n; ++i) amax = std::max(amax, std::fabs(numbers[first + i]));
        const float scale = amax / 127;
        const std::uint32_t d = oracle::narrow(Type::f16, scale);
        if (blocks)
            stored.codes.insert(stored.codes.end(), {std::uint8_t(d), std::uint8_t(d >> 8)});
        if (!blocks) stored.scales.push_back(scale);
        for (std::uint64_t i = first; i < first + n; ++i) {
            const float x = scale == 0 ? 0 : blocks ? numbers[i] * (1 / scale) : numbers[i] / scale;
            stored.codes.push_back(std::uint8_t(int(std::round(x))));
        }
    }
}

Hypothesis rotated(const Given& given, TensorIndex which) {
    OperationInputs inputs = given.inputs;
    const verify::Operation operation = operation_of({}, inputs, false);
    return definition_for_engines(inputs, operation, which);
}

// Returns the observation that check.cpp makes of a tensor, without numbers of the file to vary.
Observation observation_of(const Given& given, const Stored& stored) {
    const RopeParams& rotation = given.inputs.rotation;
    const std::uint64_t of_token = given.heads * given.head_dim;
    Observation seen;
    Hypothesis& right = seen.right = rotated(given, given.which);
    right.in = {given.type,  batch,          given.tokens,
                given.heads, given.head_dim, given.tokens * of_token,
                of_token,    given.head_dim};
    right.out = right.in;
    right.ops = given.ops;
    seen.input = stored.input.data();
    seen.output = stored.output.data();
    seen.with_ops = given.with_ops;
    seen.base = rotation.base;
    seen.softmax_scale = rotation.softmax_scale;
    seen.max_position = std::int64_t(rotation.max_position);
    seen.other_offset = given.which == Q ? rotation.k_rotary_offset : rotation.q_rotary_offset;
    seen.yarn = given.model.yarn;
    if (given.which == V) seen.rotated = rotated(given, K);
    if (given.which != V) seen.others = given.model.others;
    if (given.store) {
        seen.codes = stored.codes;
        right.store = {.type = *given.store, .made = !stored.scales.empty()};
        right.scales = stored.scales;
    }
    return seen;
}

// Returns true if each mistake of the match is other arithmetic.
bool is_arithmetic(const Match& match) {
    std::string rest = match.mistake;
    for (const std::string name :
         {"float32_angles_by_running_product", "float32_angles", "frequencies_in_16_bits",
          "angles_in_16_bits", "tables_in_16_bits", "subnormals_flushed", " + "})
        for (std::size_t at = 0; (at = rest.find(name)) != rest.npos;) rest.erase(at, name.size());
    return match.precision || rest.empty();
}

// The judgements that wrongly blame a right engine, with the largest errors of its outputs.
struct Blamed {
    std::size_t judged = 0;
    std::vector<std::pair<double, std::string>> all = {};

    // spoil  changes the largest value of one row by a tenth
    void check(const Given& given, Way way, bool spoil = false) {
        std::vector<float> numbers = Engine(given, way).run();
        if (spoil) {
            const auto row = numbers.begin() + std::ptrdiff_t(3 * given.heads * given.head_dim);
            *std::max_element(row, row + std::ptrdiff_t(given.head_dim),
                              [](float a, float b) { return std::fabs(a) < std::fabs(b); }) *= 1.1f;
        }
        Stored stored = {bytes_of(given.input, given.type), bytes_of(numbers, given.type)};
        if (given.store) store_codes(given, numbers, stored);
        constexpr const char *outcomes[] = {"pass", "close", "mistake", "unexplained"},
                             *ways[] = {"exact", "hugging_face", "fast"},
                             *types[] = {"f32", "f16", "bf16"};
        Judgement judgement;
        std::string said;
        try {
            judgement = judge(observation_of(given, stored), {});
            said = outcomes[std::size_t(judgement.outcome)];
        } catch (const std::exception& thrown) {
            said = thrown.what();
        }
        ++judged;
        const Match first = judgement.matches.empty() ? Match() : judgement.matches.front();
        if (spoil ? said == "close" || said == "unexplained"
                  : said == "pass" ||
                        (way != Way::exact &&
                         (said == "close" || (said == "mistake" && is_arithmetic(first)))))
            return;
        const double error = judgement.right.largest_error;
        all.emplace_back(
            error,
            fmt::format("\n  {}: {}{} {} {}{}{}: {}, first {} {}, error {:.2g}", given.model.name,
                        tensor_names[given.which].name, given.with_ops ? " with ops" : "",
                        types[std::size_t(given.type)], ways[std::size_t(way)],
                        spoil ? ", one row spoilt" : "", given.store ? ", codes" : "", said,
                        first.mistake, first.where, error));
    }
};

}  // namespace

TEST_CASE("a right engine is never blamed") {
    const std::vector<ModelClass> models = ModelClasses().all;
    CHECK(models.size() > 200);
    Blamed blamed;
    for (unsigned i = 0; i < models.size(); ++i) {
        const Given given(models[i], i % 2 == 0 ? Q : K, Type(i % 3), i);
        Given other(models[i], i % 2 == 0 ? K : Q, Type(i / 3 % 3), i + 1);
        blamed.check(given, Way::exact);
        blamed.check(other, i / 2 % 2 == 0 ? Way::hugging_face : Way::fast);
        if (i % 32 == 1 && given.head_dim <= 128) blamed.check(given, Way::exact, true);
        const Ops& of_v = models[i].rotation.ops.tensor[V];
        if (i % 8 == 2 || of_v.norm.kind != VKROPE_NORM_NONE || of_v.clip != 0) {
            const Given value(models[i], V, Type(i % 3), i);
            blamed.check(value, Way::exact);
            blamed.check(value, Way::hugging_face);
        }
        if (i % 16 == 3) {
            const bool blocks = i % 32 == 3 && other.head_dim % 32 == 0;
            other.store = blocks ? oracle::Store::q8_0 : oracle::Store::int8;
            blamed.check(other, Way::exact);
        }
    }
    std::sort(blamed.all.rbegin(), blamed.all.rend());
    std::string worst;
    for (std::size_t i = 0; i < std::min<std::size_t>(40, blamed.all.size()); ++i)
        worst += blamed.all[i].second;
    CHECK_MESSAGE(blamed.all.empty(), blamed.all.size(), " of ", blamed.judged, ", worst:", worst);
}
