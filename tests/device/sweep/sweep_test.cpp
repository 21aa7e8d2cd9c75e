// SPDX-License-Identifier: MIT
// Compares small calls of every kind with the oracle. Kernels and calls are drawn at random; taken
// are those that cover most pairs of values of two dimensions that none before has covered, until
// all are. VKROPE_SEED draws others, VKROPE_SWEEP_KERNELS ends it early, VKROPE_SWEEP_CALLS are the
// calls of a kernel.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "pairs.hpp"
#include "runner.hpp"

namespace vkrope::test {

namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::uint64_t seed() {
    return number("VKROPE_SEED", 20260101);
}

/// Number of calls with each value of each dimension.
class Table {
   public:
    void add(const std::vector<Value>& values) {
        counts_.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            counts_[i].resize(values[i].names.size());
            ++counts_[i][values[i].index];
        }
        dimensions_ = values;
    }

    void print() const {
        std::printf("%-20s  %-32s  %s\n", "dimension", "value", "calls");
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            const char* shown = dimensions_[i].dimension;
            for (std::size_t n = 0; n < counts_[i].size(); ++n) {
                std::printf("%-20s  %-32s  %5zu\n", shown, dimensions_[i].names[n], counts_[i][n]);
                shown = "";
            }
        }
    }

   private:
    std::vector<Value> dimensions_;
    std::vector<std::vector<std::size_t>> counts_;
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

/// Numbers and kernels for them.
struct Candidate {
    Numbers numbers;
    std::vector<KernelChoice> kernels;
};

Candidate draw(Choices& choices) {
    choices.again();
    Candidate drawn{draw_numbers(choices), {}};
    const Two two = draw_kernels(drawn.numbers, choices);
    drawn.kernels.assign(two.begin(), two.end());
    return drawn;
}

/// A covering array of strength two, made row by row.
class Array {
   public:
    Array() : random_(seed()), pairs_(any_row()) {
        constexpr int many = 40000;  // a possible pair is in more than one of some thousand rows
        for (int i = 0; i < many; ++i) pairs_.allow(any_row());
    }

    Pairs::Sum sum() const { return pairs_.sum(values_of({}, {}, {}).size()); }
    bool misses_kernels() const { return !pairs_.sum(of_kernels_).missing.empty(); }

    /// The numbers and kernels that cover most, after many changes of one choice; without a kernel
    /// that covers nothing beside the other.
    Candidate next_kernels() {
        constexpr int changes = 1000;
        Candidate best;
        for (double most = 0; most == 0;) {
            Choices kept(random_);
            for (int i = 0; i < changes; ++i) {
                Choices choices = kept;
                if (i != 0) choices.change_one();
                const Candidate drawn = draw(choices);
                double gain = 0;
                for (const KernelChoice& kernel : drawn.kernels)
                    gain += pairs_.gain(values_of(drawn.numbers, kernel));
                if (gain < most) continue;
                most = gain;
                best = drawn;
                kept = choices;
            }
        }
        std::erase_if(best.kernels, [&](const KernelChoice& kernel) {
            const std::vector<Value> values = values_of(best.numbers, kernel);
            const double gain = pairs_.gain(values);
            pairs_.cover(values);
            return gain == 0;
        });
        return best;
    }

    /// The call of this kernel that covers most, of some.
    Tuple next_call(const Numbers& numbers, const KernelChoice& kernel) {
        constexpr int some = 20;
        Tuple best;
        double most = 0;
        for (int i = 0; i < some; ++i) {
            Choices choices(random_);
            const Tuple drawn = draw_tuple(numbers, kernel, choices);
            const double gain = pairs_.gain(values_of(numbers, kernel, drawn), of_kernels_);
            if (i == 0 || gain > most) best = drawn;
            most = std::max(most, gain);
        }
        pairs_.cover(values_of(numbers, kernel, best));
        return best;
    }

   private:
    std::vector<Value> any_row() {
        Choices choices(random_);
        const Candidate drawn = draw(choices);
        const KernelChoice& kernel = drawn.kernels[choices.below(2)];
        return values_of(drawn.numbers, kernel, draw_tuple(drawn.numbers, kernel, choices));
    }

    const std::size_t of_kernels_ = values_of({}, {}).size();
    Random random_;
    Pairs pairs_;
};

}  // namespace

TEST_CASE("sweep: every pair of values of two dimensions, against the oracle") {
    const std::uint64_t most_kernels = number("VKROPE_SWEEP_KERNELS", UINT64_MAX),
                        calls_of_a_kernel = number("VKROPE_SWEEP_CALLS", 24);
    std::printf("sweep: seed %llu (VKROPE_SEED)\n", static_cast<unsigned long long>(seed()));
    Sweep sweep(seed());
    Table table;
    Array array;
    Random random(seed() + 1);
    std::uint32_t sets = 0, kernels = 0, calls = 0;
    for (; kernels < most_kernels && array.misses_kernels(); ++sets) {
        Candidate next = array.next_kernels();
        fill(next.numbers, small_shape(next.numbers.formats(), random), 48, random);
        for (const KernelChoice& kernel : next.kernels) {
            std::vector<Tuple> tuples;
            for (std::uint64_t i = 0; i < calls_of_a_kernel; ++i) {
                tuples.push_back(array.next_call(next.numbers, kernel));
                table.add(values_of(next.numbers, kernel, tuples.back()));
            }
            sweep.run(sets, next.numbers, kernel, tuples);
            ++kernels;
            calls += std::uint32_t(tuples.size());
        }
    }
    table.print();
    const Pairs::Sum sum = array.sum();
    std::printf(
        "sweep: %zu of %zu pairs, %u kernels, %u calls, %llu dispatches (%llu calls take more than "
        "two), %llu elements held against the oracle\n",
        sum.covered, sum.possible, kernels, calls,
        static_cast<unsigned long long>(sweep.dispatches),
        static_cast<unsigned long long>(sweep.cut_calls),
        static_cast<unsigned long long>(sweep.elements));
    for (const std::string& value : sum.never) FAIL_CHECK(value << ": is never drawn");
    if (most_kernels == UINT64_MAX) {
        for (const std::string& pair : sum.missing) FAIL_CHECK(pair << ": not covered");
    }
    report(sweep);
}

TEST_CASE("sweep: larger calls of random shapes") {
    Sweep sweep(seed());
    Random random(seed() + 2);
    for (std::uint32_t i = 0; i < 5; ++i) {
        Choices choices(random);
        auto [numbers, kernels] = draw(choices);
        Shape shape{.batch = 1 + below(random, 4),
                    .groups = 1 + below(random, 6),
                    .q_per_group = 1 + below(random, 5)};
        const std::uint32_t max_elements = 100000 + below(random, 300000);  // of Q
        shape.tokens = 1 + max_elements /
                               (shape.batch * shape.q_heads() * numbers.formats().q_head_dim);
        fill(numbers, shape, 3000, random);
        std::printf("sweep: batch %u, %u tokens, %u groups of %u + 1 heads, head_dim %s\n",
                    shape.batch, shape.tokens, shape.groups, shape.q_per_group,
                    numbers.formats().name);
        for (const KernelChoice& kernel : kernels) {
            std::vector<Tuple> tuples;
            for (int call = 0; call < 2; ++call) {
                Choices of_call(random);
                tuples.push_back(draw_tuple(numbers, kernel, of_call));
            }
            sweep.run(i, numbers, kernel, tuples);
        }
    }
    report(sweep);
}

TEST_CASE("sweep: calls so large that a lane of the GPU mapping takes four heads") {
    Sweep sweep(seed());
    Random random(seed() + 3);
    const struct {
        const char* head_dim;
        std::uint32_t tokens;  // so that there are 2^16 lanes
        Arrangement arrangement;
    } cases[] = {{"64", 342, Arrangement::odd_offsets},  // units of one element
                 {"20", 1639, Arrangement::bshd},        // of two
                 {"32", 4096, Arrangement::bhsd}};       // of eight
    for (std::uint32_t i = 0; i < std::size(cases); ++i) {
        const auto format = std::find_if(
            all_formats().begin(), all_formats().end(),
            [&](const Formats& of) { return std::string_view(of.name) == cases[i].head_dim; });
        REQUIRE(format != all_formats().end());
        Numbers numbers{.format = std::uint32_t(format - all_formats().begin()),
                        .pairing = VKROPE_INTERLEAVED,
                        .pairing_out = VKROPE_INTERLEAVED,
                        .q_in = VKROPE_F16,
                        .q_out = VKROPE_F16,
                        .k_in = VKROPE_F16,
                        .k_out = VKROPE_F16};
        fill(numbers, {.batch = 1, .tokens = cases[i].tokens, .groups = 4, .q_per_group = 5}, 3000,
             random);
        const Tuple tuple{.in = cases[i].arrangement, .out = cases[i].arrangement};
        sweep.run(i, numbers, {.mapping = VKROPE_MAPPING_GPU}, {tuple});
        sweep.run(i, numbers, {.mapping = VKROPE_MAPPING_CPU}, {tuple});  // the same bits
    }
    report(sweep);
}

}  // namespace vkrope::test
