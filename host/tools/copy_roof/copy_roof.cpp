// SPDX-License-Identifier: MIT
#include "copy_roof/copy_roof.hpp"

#include <algorithm>

#include "base/divide_up.hpp"
#include "base/status.hpp"
#include "copy_roof/median.hpp"
#include "copy_roof/shader.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope::tools {

namespace {

constexpr std::uint8_t packed[] = {
#include "copy.inc"
};
constexpr PackedModule module = {packed, sizeof packed};

constexpr std::size_t trial_rounds = 3, finalists = 4;

// The variant of a copy shader: see copy.comp.
struct Manner {
    std::uint32_t words, items, run, workgroup_size;
};

std::vector<Manner> all_manners() {
    std::vector<Manner> manners;
    constexpr std::pair<std::uint32_t, std::uint32_t> patterns[] = {{1, 1}, {4, 1},   {16, 1},
                                                                    {4, 4}, {16, 16}, {64, 64}};
    for (const std::uint32_t words : {4u, 2u, 1u})
        for (const auto& [items, run] : patterns) manners.push_back({words, items, run, 256});
    // The widest access again, with the workgroup sizes of RoPE and with the pattern in which an
    // invocation on a software device loops over the heads of a token: 64 bytes, then the next 64
    // bytes.
    for (const auto& [items, run] : patterns) manners.push_back({4, items, run, 128});
    for (const std::uint32_t items : {16u, 64u})
        for (const std::uint32_t size : {128u, 256u}) manners.push_back({4, items, 4, size});
    for (const std::uint32_t items : {1u, 4u}) manners.push_back({4, items, 1, 64});
    return manners;
}

struct Contender {
    Manner manner;
    Shader shader;
    std::vector<double> times_ns;  // times since the last aim()

    std::string name() const {
        std::string name = std::to_string(4 * manner.words) + " bytes";
        if (manner.run > 1) name = std::to_string(manner.run) + " x " + name + " side by side";
        if (manner.items > manner.run)
            name = std::to_string(manner.items / manner.run) + " x " + name +
                   (manner.run > 1 ? "," : "") + " a workgroup apart";
        return name + ", workgroups of " + std::to_string(shader.workgroup_size());
    }
};

}  // namespace

struct CopyRoof::Impl {
    Device* device = nullptr;
    std::vector<Contender> contenders;  // fastest first, after settle() has tried all of them
    bool tried = false;
    std::vector<Copied> copies;  // none exceeds the device's maximum binding size
    Repeat repeat;

    void record(VkCommandBuffer commands, const Contender& contender) const;
    Result<double> copy(std::size_t shader, const Repeat& repeated);
    Status raise_clocks();
    Status race(std::size_t count);
    const Contender& best() const;
};

CopyRoof::CopyRoof() noexcept = default;
CopyRoof::~CopyRoof() = default;
CopyRoof::CopyRoof(CopyRoof&&) noexcept = default;
CopyRoof& CopyRoof::operator=(CopyRoof&&) noexcept = default;

Result<CopyRoof> CopyRoof::make(Device& device) {
    Result<CopyRoof> made;
    made->impl_ = std::make_unique<Impl>();
    made->impl_->device = &device;
    for (const Manner& manner : all_manners()) {
        Result<Shader> shader = Shader::make(
            device, module, {manner.items, manner.run, manner.words}, sizeof(std::uint32_t),
            "vkrope copy roof", {.size = manner.workgroup_size});
        if (!shader) return {shader.status, {}};
        made->impl_->contenders.push_back({manner, std::move(shader.value), {}});
    }
    return made;
}

void CopyRoof::aim(std::vector<Copied> copies, Repeat repeat) {
    // 256 is the largest offset alignment that a device may require.
    const VkDeviceSize most = impl_->device->info().limits->maxStorageBufferRange / 256 * 256;
    std::vector<Copied> parts;
    for (const Copied& copied : copies) {
        for (VkDeviceSize done = 0; done < copied.from.range; done += most) {
            const VkDeviceSize bytes = std::min(most, copied.from.range - done);
            parts.push_back({{copied.from.buffer, copied.from.offset + done, bytes},
                             {copied.to.buffer, copied.to.offset + done, bytes}});
        }
    }
    const auto in_place = [](const Copied& copied) {
        return copied.from.buffer == copied.to.buffer;
    };
    const auto alike = [&](const Copied& a, const Copied& b) {
        return a.from.range == b.from.range && in_place(a) == in_place(b);
    };
    if (!std::equal(parts.begin(), parts.end(), impl_->copies.begin(), impl_->copies.end(),
                    alike) ||
        repeat.calls != impl_->repeat.calls || bool(repeat.before) != bool(impl_->repeat.before))
        impl_->tried = false;
    impl_->copies = std::move(parts);
    impl_->repeat = std::move(repeat);
}

void CopyRoof::Impl::record(VkCommandBuffer commands, const Contender& contender) const {
    for (const Copied& copied : copies) {
        Descriptors descriptors;
        descriptors.buffers[0] = copied.from;
        descriptors.buffers[1] = copied.to;
        const auto vectors = std::uint32_t(copied.from.range / (4 * contender.manner.words));
        const std::uint64_t per_group = std::uint64_t{contender.shader.workgroup_size()} *
                                        contender.manner.items;
        contender.shader.record(commands, descriptors, &vectors, divide_up(vectors, per_group));
    }
}

Status CopyRoof::settle(bool wall_clock_will_do) {
    Impl& impl = *impl_;
    const bool has_timestamps = impl.device->get()->timestamps != VK_NULL_HANDLE;
    if (!has_timestamps && !wall_clock_will_do)
        return error(VKROPE_ERROR_NOT_SUPPORTED, "%s has no timestamps", impl.device->info().name);
    std::vector<Contender>& all = impl.contenders;
    if (Status s = impl.raise_clocks(); !s) return s;
    // The first round warms up, too; its times are discarded.
    const auto forget = [&] {
        for (Contender& contender : all) contender.times_ns.clear();
    };
    if (Status s = impl.race(impl.tried ? finalists : all.size()); !s) return s;
    forget();
    if (impl.tried) return {};
    for (std::size_t round = 0; round < trial_rounds; ++round)
        if (Status s = impl.race(all.size()); !s) return s;
    std::sort(all.begin(), all.end(), [](const Contender& a, const Contender& b) {
        return median(a.times_ns) < median(b.times_ns);
    });
    forget();
    impl.tried = true;
    return {};
}

Result<double> CopyRoof::Impl::copy(std::size_t shader, const Repeat& repeated) {
    Contender& contender = contenders[shader];
    const std::uint32_t sets = std::uint32_t(copies.size()) * repeated.calls;
    if (Status s = contender.shader.take_sets(sets); !s) return {s, {}};
    return time_ns(
        *device,
        [&](VkCommandBuffer commands) {
            record(commands, contender);
            return Status{};
        },
        repeated);
}

// A GPU that waits for its host between short dispatches keeps a low clock: an H200 took 46
// microseconds for a copy that takes 13 after this function. Work without gaps raises the clock.
Status CopyRoof::Impl::raise_clocks() {
    constexpr double enough_ns = 200e6, submission_ns = 5e6;
    if (device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU) return {};
    std::uint32_t times = 1;
    for (double taken_ns = 0; taken_ns < enough_ns;) {
        const Result<double> ns = copy(0, {.calls = times});
        if (!ns) return ns.status;
        taken_ns += std::max(ns.value, 1e3) * times;
        if (ns.value * times < submission_ns) times = std::min(2 * times, 1024u);
    }
    return {};
}

Result<double> CopyRoof::copy(std::size_t shader) {
    return impl_->copy(shader, impl_->repeat);
}

std::size_t CopyRoof::shader_count() const {
    return impl_->contenders.size();
}

Status CopyRoof::Impl::race(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Result<double> ns = copy(i, repeat);
        if (!ns) return ns.status;
        contenders[i].times_ns.push_back(ns.value);
    }
    return {};
}

Status CopyRoof::round() {
    return impl_->race(finalists);
}

const Contender& CopyRoof::Impl::best() const {
    return *std::min_element(
        contenders.begin(), contenders.begin() + finalists,
        [](const Contender& a, const Contender& b) {
            return median(a.times_ns) < median(b.times_ns);
        });
}

double CopyRoof::best_ns() const {
    return median(impl_->best().times_ns);
}
double CopyRoof::last_ns() const {
    const Contender& best = impl_->best();
    return best.times_ns.empty() ? 0 : best.times_ns.back();
}
std::string CopyRoof::best_name() const {
    return impl_->best().name();
}

}  // namespace vkrope::tools
