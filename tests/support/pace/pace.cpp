// SPDX-License-Identifier: MIT
// Prints how many times as long as usual a known piece of work takes on this machine now, with all
// other load. Two threads, like two tests at a time, compute, branch, and read and write more
// memory than a cache has.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr double usual_seconds = 2.0;  // of each thread on an AMD EPYC, compiled with -O2

void work() {
    std::vector<std::uint32_t> numbers(1 << 22);
    std::uint32_t state = 1;
    for (int round = 0; round < 6; ++round) {
        for (std::uint32_t& number : numbers) number = state = state * 1664525 + 1013904223;
        std::sort(numbers.begin(), numbers.end());
    }
}

}  // namespace

int main() {
    const auto start = std::chrono::steady_clock::now();
    std::thread other(work);
    work();
    other.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%.1f\n", taken.count() / usual_seconds);
}
