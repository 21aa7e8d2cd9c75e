// SPDX-License-Identifier: MIT
#include "copy_roof.hpp"

#include <algorithm>

#include "runtime/device_impl.hpp"
#include "shader.hpp"
#include "status.hpp"

namespace vkrope::bench {

namespace {

constexpr std::uint8_t packed[] = {
#include "copy.inc"
};
constexpr Binding bindings[] = {{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}, {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER}};
constexpr Module module = {packed, sizeof packed, bindings, 2, 2, false};

// The first warms up; the second is enough to tell the fastest from the rest.
constexpr std::size_t trial_rounds = 2, finalists = 2;

struct Contender {
    std::uint32_t items = 1, consecutive = 0, words = 4;
    Shader shader;
    std::vector<double> times_ns;  // of this aim

    std::string name() const {
        const std::string bytes = std::to_string(4 * words) + " bytes ";
        return items == 1 ? bytes + "an invocation"
                          : std::to_string(items) + " x " + bytes + (consecutive ? "side by side" : "a workgroup apart");
    }
};

}  // namespace

struct CopyRoof::Impl {
    Device* device = nullptr;
    std::vector<Contender> contenders;  // fastest first, once the trial is over
    std::size_t trials_left = trial_rounds;
    std::vector<Copied> copies;  // none longer than what the device binds

    void record(VkCommandBuffer commands, const Contender& contender) const;
    std::size_t racing() const { return trials_left > 0 ? contenders.size() : finalists; }
    void end_trial();
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
    for (const std::uint32_t words : {4u, 2u, 1u}) {
        for (const auto& [items, consecutive] : {std::pair{1u, 0u}, {4u, 0u}, {16u, 0u}, {4u, 1u}, {16u, 1u}, {64u, 1u}}) {
            Result<Shader> shader =
                Shader::make(device, module, {items, consecutive, words}, sizeof(std::uint32_t), "vkrope copy roof");
            if (!shader) return {shader.status, {}};
            made->impl_->contenders.push_back({items, consecutive, words, std::move(shader.value), {}});
        }
    }
    return made;
}

Result<CopyRoof> CopyRoof::make(Device& device, const HostRotation::Buffers& buffers) {
    std::vector<Copied> copies;
    for (const auto& [from, to] : {std::pair{buffers.q_in, buffers.q_out}, {buffers.k_in, buffers.k_out}}) {
        if (from.buffer == VK_NULL_HANDLE) continue;
        if (from.buffer == to.buffer) return {error(Code::invalid_argument, "buffers: a copy needs them apart, not in place"), {}};
        copies.push_back({from, to});
    }
    if (copies.empty()) return {error(Code::invalid_argument, "buffers: there is nothing to copy"), {}};
    Result<CopyRoof> made = make(device);
    if (made) made->aim(std::move(copies));
    return made;
}

void CopyRoof::aim(std::vector<Copied> copies) {
    // 256 is the largest offset alignment that a device may ask for.
    const VkDeviceSize most = impl_->device->info().limits.maxStorageBufferRange / 256 * 256;
    std::vector<Copied> parts;
    for (const Copied& copied : copies) {
        for (VkDeviceSize done = 0; done < copied.from.range; done += most) {
            const VkDeviceSize bytes = std::min(most, copied.from.range - done);
            parts.push_back(
                {{copied.from.buffer, copied.from.offset + done, bytes}, {copied.to.buffer, copied.to.offset + done, bytes}});
        }
    }
    const auto same_bytes = [](const Copied& a, const Copied& b) { return a.from.range == b.from.range; };
    if (!std::equal(parts.begin(), parts.end(), impl_->copies.begin(), impl_->copies.end(), same_bytes)) {
        impl_->trials_left = trial_rounds;
    }
    impl_->copies = std::move(parts);
    for (Contender& contender : impl_->contenders) contender.times_ns.clear();
}

void CopyRoof::Impl::record(VkCommandBuffer commands, const Contender& contender) const {
    for (const Copied& copied : copies) {
        Descriptors descriptors;
        descriptors.buffers[0] = copied.from;
        descriptors.buffers[1] = copied.to;
        const auto vectors = std::uint32_t(copied.from.range / (4 * contender.words));
        const std::uint64_t per_group = std::uint64_t{contender.shader.workgroup_size()} * contender.items;
        contender.shader.record(commands, descriptors, &vectors, (vectors + per_group - 1) / per_group);
    }
}

void CopyRoof::Impl::end_trial() {
    const auto least = [](const Contender& contender) {
        return *std::min_element(contender.times_ns.begin(), contender.times_ns.end());
    };
    std::sort(contenders.begin(), contenders.end(), [&](const Contender& a, const Contender& b) { return least(a) < least(b); });
}

bool CopyRoof::in_trial() const {
    return impl_->trials_left > 0;
}

Result<double> CopyRoof::copy(std::size_t shader) {
    Contender& contender = impl_->contenders[shader];
    if (Status s = contender.shader.take_sets(std::uint32_t(impl_->copies.size())); !s) return {s, {}};
    return time_ns(*impl_->device, [&](VkCommandBuffer commands) {
        impl_->record(commands, contender);
        return Status{};
    });
}

std::size_t CopyRoof::shader_count() const {
    return impl_->contenders.size();
}

Status CopyRoof::round(bool wall_clock_will_do) {
    Impl& impl = *impl_;
    const bool has_timestamps = impl.device->impl().timestamps != VK_NULL_HANDLE;
    if (!has_timestamps && !wall_clock_will_do)
        return error(Code::not_supported, "%s has no timestamps", impl.device->info().name.c_str());
    const std::size_t racing = impl.racing();
    for (std::size_t i = 0; i < racing; ++i) {
        const Result<double> ns = copy(i);
        if (!ns) return ns.status;
        impl.contenders[i].times_ns.push_back(ns.value);
    }
    if (impl.trials_left > 0 && --impl.trials_left == 0) impl.end_trial();
    return {};
}

const Contender& CopyRoof::Impl::best() const {
    return *std::min_element(contenders.begin(), contenders.begin() + std::ptrdiff_t(racing()),
                             [](const Contender& a, const Contender& b) { return median(a.times_ns) < median(b.times_ns); });
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

}  // namespace vkrope::bench
