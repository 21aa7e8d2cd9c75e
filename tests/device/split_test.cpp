// SPDX-License-Identifier: MIT
// Tensors beyond what the device binds or dispatches at once, since it reports reduced limits: many
// dispatches give the bits of one, over many layouts.
#include "forced_limits.hpp"
#include "split_layouts.hpp"

namespace vkrope::test {

namespace {

// The content of all buffers of the call afterwards.
std::vector<Bytes> result(Device& on, Scenario& s, const Forced& limits, std::uint64_t& count) {
    for (auto& [buffer, bytes] : s.buffers) must(buffer.upload(bytes.data(), bytes.size()));
    const Owned<Kernel> kernel = make_kernel(on, s.info, limits);
    s.call.angles = s.table.angles();
    count = run(on, *kernel, s.call);
    std::vector<Bytes> after;
    for (auto& [buffer, bytes] : s.buffers) {
        after.emplace_back(bytes.size());
        must(buffer.download(after.back().data(), after.back().size()));
    }
    return after;
}

}  // namespace

TEST_CASE(
    "a range of 64 KiB, 7 workgroups, and both: the bits of the unsplit call, over many layouts") {
    for (const bool push : {true, false}) {  // with an arena: fewer cases, since compiling is slow
        Device& on = device(push);
        for (Scenario& s : scenarios(on)) {
            if (!push && s.info.angles == VKROPE_ANGLES_FACTORED_TEXTURE && !s.info.scatter_kv)
                continue;
            CAPTURE(s.name);
            std::uint64_t one = 0;
            const std::vector<Bytes> unsplit = result(on, s, {}, one);
            CHECK(one == s.dispatches);
            std::size_t changed = 0;
            for (std::size_t i = 0; i < unsplit.size(); ++i)
                changed += unsplit[i] != s.buffers[i].second;
            CHECK(changed >= 1);
            const Forced small[] = {
                {.range = 1u << 16, .mapping = VKROPE_MAPPING_CPU},
                {.workgroups = 7, .mapping = VKROPE_MAPPING_GPU},
                {.range = 1u << 16, .workgroups = 7, .mapping = VKROPE_MAPPING_GPU}};
            for (const Forced& limits : small) {
                if (!push && (limits.range == 0 || limits.workgroups == 0)) continue;
                CAPTURE(limits.range);
                CAPTURE(limits.workgroups);
                std::uint64_t many = 0;
                const std::vector<Bytes> split = result(on, s, limits, many);
                CHECK(many > s.dispatches);
                for (std::size_t i = 0; i < unsplit.size(); ++i) {
                    CAPTURE(i);
                    CHECK(split[i] == unsplit[i]);
                }
            }
        }
    }
}

}  // namespace vkrope::test
