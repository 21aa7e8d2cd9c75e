// SPDX-License-Identifier: MIT
#include "pairs.hpp"

#include <algorithm>

namespace vkrope::test {

Pairs::Pairs(const std::vector<Value>& row) : dimensions_(row) {
    std::size_t values = 0;
    for (const Value& value : row) {
        starts_.push_back(values);
        values += value.names.size();
    }
    starts_.push_back(values);
    pairs_.resize(values * values);
}

// Calls action(its index) for each pair of the row that is to be covered. A value with
// itself stands for the value.
template <class Action>
void Pairs::each_pair(const std::vector<Value>& row, std::size_t from, Action action) const {
    for (std::size_t second = from; second < row.size(); ++second) {
        const std::size_t at = starts_[second] + row[second].index;
        for (std::size_t first = 0; first <= second; ++first) {
            if (meet(row[first], row[second]))
                action((starts_[first] + row[first].index) * starts_.back() + at);
        }
    }
}

void Pairs::allow(const std::vector<Value>& row) {
    each_pair(row, 0, [this](std::size_t i) { ++pairs_[i].allowed; });
}

void Pairs::cover(const std::vector<Value>& row) {
    each_pair(row, 0, [this](std::size_t i) { pairs_[i].covered = true; });
}

double Pairs::gain(const std::vector<Value>& row, std::size_t from) const {
    double sum = 0;
    each_pair(row, from, [&](std::size_t i) {
        if (!pairs_[i].covered) sum += 1.0 / (1 + pairs_[i].allowed);
    });
    return sum;
}

Pairs::Sum Pairs::sum(std::size_t dimensions) const {
    Sum sum;
    const auto name = [&](std::size_t dimension, std::size_t at) {
        const Value& of = dimensions_[dimension];
        return std::string(of.dimension) + ": " + of.names[at - starts_[dimension]];
    };
    for (std::size_t second = 0; second < dimensions; ++second) {
        for (std::size_t first = 0; first <= second; ++first) {
            for (std::size_t a = starts_[first]; a < starts_[first + 1]; ++a) {
                for (std::size_t b = starts_[second]; b < starts_[second + 1]; ++b) {
                    const Pair& pair = pairs_[a * starts_.back() + b];
                    sum.possible += pair.allowed != 0;
                    sum.covered += pair.covered;
                    if (a == b && pair.allowed == 0) sum.never.push_back(name(second, b));
                    if (pair.allowed != 0 && !pair.covered)
                        sum.missing.push_back(name(first, a) + "; " + name(second, b));
                }
            }
        }
    }
    return sum;
}

}  // namespace vkrope::test
