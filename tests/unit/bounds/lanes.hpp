// SPDX-License-Identifier: MIT
// Simulates the lanes of a workgroup that store rows together, with the shader's own source.
// Between two barriers each lane takes its steps before the next lane does. Accesses to the shared
// words are recorded, so that a test finds races and counts bank conflicts.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "verify/shader_source/shader.hpp"

namespace vkrope::bounds {

using shader::uint;

// A lane's read or write of one word, or of four words in 16 aligned bytes.
struct Access {
    uint first = 0;
    std::size_t words = 1;
    bool writes = false;
};

// The shared words, and the accesses of each lane since the last barrier.
struct SharedWords {
    std::vector<uint> words;
    std::vector<std::vector<Access>> lanes;
    std::size_t lane = 0;  // the lane that takes its steps
    bool outside = false;  // whether a lane accessed a word out of range

    uint& at(uint index, bool writes) {
        lanes[lane].push_back({index, 1, writes});
        outside = outside || index >= words.size();
        return words[std::min<std::size_t>(index, words.size() - 1)];
    }
};
inline thread_local SharedWords shared;
inline thread_local uint staged_gaps = 0;

// A word of shared memory, with the operators that the shader uses.
struct SharedWord {
    uint index;

    operator uint() const {
        return shared.at(index, false);
    }  // NOLINT(google-explicit-constructor)
    SharedWord& operator=(uint value) {
        shared.at(index, true) = value;
        return *this;
    }
};

}  // namespace vkrope::bounds

namespace vkrope::shader {
#define precise
#define VKROPE_STAGED(index)       \
    ::vkrope::bounds::SharedWord { \
        index                      \
    }
#define VKROPE_STAGED_GAPS ::vkrope::bounds::staged_gaps
#include <staging.inc>
#undef precise
}  // namespace vkrope::shader

namespace vkrope::bounds {

// Runs all lanes up to the next barrier; `step` takes the index of the lane.
template <class Step>
void until_barrier(std::size_t lanes, const Step& step) {
    shared.lanes.assign(lanes, {});
    for (shared.lane = 0; shared.lane < lanes; ++shared.lane) step(uint(shared.lane));
}

// Returns whether a lane wrote a word that another lane wrote or read since the last barrier.
inline bool raced() {
    std::vector<std::set<std::size_t>> users(shared.words.size()), writers(shared.words.size());
    for (std::size_t lane = 0; lane < shared.lanes.size(); ++lane) {
        for (const Access& access : shared.lanes[lane]) {
            if (access.first >= users.size()) continue;
            users[access.first].insert(lane);
            if (access.writes) writers[access.first].insert(lane);
        }
    }
    for (std::size_t word = 0; word < users.size(); ++word)
        if (!writers[word].empty() && users[word].size() > 1) return true;
    return false;
}

// Returns a lane's accesses, where four in a row to the words of 16 aligned bytes count as one,
// because compilers for GPUs join them.
inline std::vector<Access> joined(const std::vector<Access>& apart) {
    std::vector<Access> made;
    for (std::size_t i = 0; i < apart.size();) {
        std::set<uint> words;
        bool alike = i + 4 <= apart.size();
        for (std::size_t j = i; alike && j < i + 4; ++j) {
            words.insert(apart[j].first);
            alike = apart[j].writes == apart[i].writes;
        }
        const bool wide = alike && words.size() == 4 && *words.begin() % 4 == 0 &&
                          *words.rbegin() == *words.begin() + 3;
        made.push_back(wide ? Access{*words.begin(), 4, apart[i].writes} : apart[i]);
        i += wide ? 4 : 1;
    }
    return made;
}

// Returns the most words in one of 32 banks that lanes request at a time. 32 lanes request words
// at a time, or 8 lanes if each requests 16 bytes.
inline std::size_t worst_conflict() {
    constexpr std::size_t subgroup = 32, banks = 32;
    std::vector<std::vector<Access>> lanes;
    std::size_t longest = 0;
    for (const std::vector<Access>& lane : shared.lanes) {
        lanes.push_back(joined(lane));
        longest = std::max(longest, lanes.back().size());
    }
    std::size_t worst = 0;
    for (std::size_t i = 0; i < longest; ++i) {
        for (const std::size_t words : {1, 4}) {
            const std::size_t together = subgroup / words;
            for (std::size_t first = 0; first < lanes.size(); first += together) {
                std::array<std::set<uint>, banks> asked;
                const std::size_t end = std::min(lanes.size(), first + together);
                for (std::size_t lane = first; lane < end; ++lane) {
                    if (i >= lanes[lane].size() || lanes[lane][i].words != words) continue;
                    for (uint word = 0; word < words; ++word) {
                        const uint at = lanes[lane][i].first + word;
                        asked[at % banks].insert(at);
                    }
                }
                for (const auto& bank : asked) worst = std::max(worst, bank.size());
            }
        }
    }
    return worst;
}

}  // namespace vkrope::bounds
