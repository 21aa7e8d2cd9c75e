// SPDX-License-Identifier: MIT
// Compares small calls of every kind with the oracle: distinct tuples of input and output layout,
// pairing, input and output types, direction, gain, angle source, in place or not, each with
// several heads, tokens and positions, spread over all other options of a kernel and a call.
// VKROPE_SEED chooses other tuples. A share (sweep_share()) leaves out sets of numbers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runner.hpp"

namespace vkrope::test {

namespace {

constexpr std::size_t least_tuples = 20000;
constexpr std::uint32_t tuples_of_a_kernel = 144;

std::uint64_t seed() {
    const char* text = std::getenv("VKROPE_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 20260101;
}

/// Number of tuples for each value of each dimension, in order of appearance.
class Table {
   public:
    void add(const std::vector<std::pair<std::string, std::string>>& values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i == dimensions_.size()) dimensions_.push_back({values[i].first, {}});
            ++dimensions_[i].second[values[i].second];
        }
    }

    void print() const {
        std::printf("%-14s  %-44s  %s\n", "dimension", "value", "tuples");
        for (const auto& [dimension, counts] : dimensions_) {
            const char* shown = dimension.c_str();
            for (const auto& [value, count] : counts) {
                std::printf("%-14s  %-44s  %6zu\n", shown, value.c_str(), count);
                shown = "";
            }
        }
    }

   private:
    std::vector<std::pair<std::string, std::map<std::string, std::size_t>>> dimensions_;
};

void report(const Sweep& sweep) {
    std::printf(
        "sweep: %.1f s creating kernels, %.1f s on the device, %.1f s preparing and checking\n",
        sweep.create_seconds, sweep.device_seconds, sweep.check_seconds);
    CHECK(sweep.failures.empty());
    constexpr std::size_t shown = 10;
    for (std::size_t i = 0; i < std::min(sweep.failures.size(), shown); ++i)
        FAIL_CHECK(sweep.failures[i]);
    if (sweep.failures.size() > shown)
        std::printf("sweep: %zu failures in all, the first %zu are shown\n", sweep.failures.size(),
                    shown);
}

}  // namespace

TEST_CASE("sweep: every kind of call against the oracle") {
    std::printf("sweep: seed %llu (VKROPE_SEED)\n", static_cast<unsigned long long>(seed()));
    Sweep sweep(seed());
    Table table;
    std::set<Key> keys;
    Random random(seed());
    std::uint32_t kernels = 0;
    for (std::uint32_t index = 0; index < numbers_count; ++index) {
        const Formats& formats = formats_of(index);
        const Numbers numbers = numbers_of(index, formats, small_shape(formats, random), 48,
                                           random);
        if (index % sweep_share() != 0) continue;
        const std::vector<KernelChoice> choices = kernels_for(index, numbers);
        Random own(seed() + 3 + index);  // the plain calls do not depend on it
        const bool short_ranges = std::any_of(
            choices.begin(), choices.end(),
            [](const KernelChoice& choice) { return choice.limits == Limits::short_ranges; });
        const Numbers finished = with_finish(numbers, short_ranges, own);
        for (std::uint32_t which = 0; which < choices.size(); ++which) {
            const KernelChoice& kernel = choices[which];
            const bool finishes = takes_finish(index, which);
            const Numbers& of = finishes ? finished : numbers;
            std::vector<Tuple> tuples;
            while (tuples.size() < tuples_of_a_kernel) {
                const Tuple tuple = random_tuple(of, kernel, random);
                if (!keys.insert(key_of(of, kernel, tuple)).second) continue;
                tuples.push_back(tuple);
                table.add(values_of(of, kernel, tuple));
            }
            sweep.run(finishes ? numbers_count + index : index, of, kernel, tuples);
            ++kernels;
        }
    }
    table.print();
    std::printf(
        "sweep: %zu distinct tuples, %u kernels, %llu dispatches (%llu calls take more than two), "
        "%llu elements held "
        "against the oracle\n",
        keys.size(), kernels, static_cast<unsigned long long>(sweep.dispatches),
        static_cast<unsigned long long>(sweep.cut_calls),
        static_cast<unsigned long long>(sweep.elements));
    CHECK(keys.size() >= least_tuples / sweep_share());
    report(sweep);
}

TEST_CASE("sweep: larger calls of random shapes") {
    std::printf("sweep: larger calls, seed %llu (VKROPE_SEED)\n",
                static_cast<unsigned long long>(seed()));
    Sweep sweep(seed());
    Random random(seed() + 1);
    for (std::uint32_t i = 0; i < 5; ++i) {
        const std::uint32_t index = below(random, numbers_count);
        const Formats& formats = formats_of(below(random, 1000));
        Shape shape{.batch = 1 + below(random, 4),
                    .groups = 1 + below(random, 6),
                    .q_per_group = 1 + below(random, 5)};
        const std::uint32_t max_elements = 100000 + below(random, 300000);  // of Q
        shape.tokens = 1 + max_elements / (shape.batch * shape.q_heads() * formats.q_head_dim);
        const Numbers numbers = numbers_of(index, formats, shape, 3000, random);
        std::printf("sweep: batch %u, %u tokens, %u groups of %u + 1 heads, %s\n", shape.batch,
                    shape.tokens, shape.groups, shape.q_per_group, numbers.formats.text().c_str());
        Random own(seed() + 100 + i);
        const Numbers finished = with_finish(numbers, true, own);
        for (const KernelChoice& kernel : kernels_for(index, numbers)) {
            const bool finishes = kernel.source == kernels_for(index, numbers)[i % 2].source;
            const Numbers& of = finishes ? finished : numbers;
            sweep.run(finishes ? numbers_count + i : i, of, kernel,
                      {random_tuple(of, kernel, random), random_tuple(of, kernel, random)});
        }
    }
    report(sweep);
}

TEST_CASE("sweep: calls so large that a lane of the GPU mapping takes four heads") {
    Sweep sweep(seed());
    Random random(seed() + 2);
    struct Case {
        Formats formats;
        std::uint32_t tokens;  // so that there are 2^16 lanes
        Arrangement arrangement;
    };
    const Case cases[] = {
        {{64, 0, 64, 0, 64}, 342, Arrangement::odd_offsets},  // units of one element
        {{20, 0, 20, 0, 20}, 1639, Arrangement::bshd},        // of two
        {{32, 0, 32, 0, 32}, 4096, Arrangement::bhsd}};       // of eight
    constexpr std::uint32_t f16_interleaved_with_ids = 19;
    for (std::uint32_t i = 0; i < 3; ++i) {
        const Shape shape{.batch = 1, .tokens = cases[i].tokens, .groups = 4, .q_per_group = 5};
        const Numbers numbers = numbers_of(f16_interleaved_with_ids, cases[i].formats, shape, 3000,
                                           random);
        REQUIRE((numbers.q_in == Element::f16 && numbers.q_out == Element::f16 &&
                 numbers.k_in == Element::f16));
        const Tuple tuple{.in = cases[i].arrangement, .out = cases[i].arrangement};
        sweep.run(i, numbers, {.mapping = Mapping::gpu}, {tuple});
        sweep.run(i, numbers, {.mapping = Mapping::cpu}, {tuple});  // the same bits
    }
    report(sweep);
}

}  // namespace vkrope::test
