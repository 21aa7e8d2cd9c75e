// SPDX-License-Identifier: MIT
// Tests that the quick checks reach every variant of the shader that create() makes.
//
// The variants of create() are all combinations of the values of the constants in a row. The
// reached variants are those that the calls of the quick checks dispatch. Both run on a Vulkan that
// computes nothing, as a GPU or as a processor.
#include <cstdio>
#include <map>

#include "cli/program.hpp"
#include "conformance/builtin/builtin.hpp"
#include "kernel/geometry/ops.hpp"
#include "kernel/plan.hpp"
#include "support/fake_vulkan/fake_vulkan.hpp"
#include "variants.hpp"

namespace vkrope::conformance {
namespace {

/// Checks by the name of the aspect that they reach.
using Reached = std::map<std::string, std::vector<std::string>>;

void add_call(const Kernel& kernel, const Call& call, const std::string& id, Reached& reached) {
    // Quantised outputs and Hadamard transforms are not in the list: store/* has all of them.
    if (stores_together(kernel.info)) {
        return;
    }
    const Result<ResolvedCall> resolved = resolve(kernel, call);
    if (!resolved || resolved->tokens == 0) {
        return;
    }
    const Result<Jobs> jobs = plan(kernel, resolved.value);
    Aspects aspects;
    for (std::uint32_t i = 0; i < jobs->count; ++i) {
        const Job& job = jobs->of[i];
        Use use = use_of(kernel, *job.part, *job.pipeline);
        const bool first_is_k = kernel.separate_dispatches && job.has[K];
        use.q = kernel.separate_dispatches || job.has[Q];
        use.k = !kernel.separate_dispatches && job.has[K];
        use.v_joins = job.has[V] && !use.v_alone;
        use.q_in_place = first_is_k ? resolved->tensor[K].in_place : resolved->tensor[Q].in_place;
        use.k_in_place = resolved->tensor[K].in_place;
        add_aspects(use, aspects);
    }
    for (const std::string& aspect : aspects) {
        std::vector<std::string>& ids = reached[aspect];
        if (ids.empty() || ids.back() != id) {
            ids.push_back(id);
        }
    }
}

Reached reached_by_quick_checks(DeviceUnderTest& device) {
    Reached reached;
    std::string id;
    device.on_rotate = [&](const Kernel* kernel, const Call& call) {
        add_call(*kernel, call, id, reached);
    };
    for (const Group& group : builtin_groups(Level::quick)) {
        for (const std::unique_ptr<Check>& check : group.checks) {
            id = check->id();
            try {
                check->run(device);  // the result is ignored: nothing is computed here
            } catch (const Refusal&) {
            }
        }
    }
    device.on_rotate = {};
    return reached;
}

/// Prints the list of one device. Returns the number of rows that are not reached or not listed.
std::size_t list_coverage(VkPhysicalDeviceType type) {
    VkPhysicalDeviceFloatControlsProperties controls = {};
    controls.shaderRoundingModeRTEFloat16 = controls.shaderRoundingModeRTEFloat32 = VK_TRUE;
    controls.shaderSignedZeroInfNanPreserveFloat16 =
        controls.shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE;
    controls.shaderDenormPreserveFloat16 = type == VK_PHYSICAL_DEVICE_TYPE_CPU ? VK_FALSE : VK_TRUE;
    controls.denormBehaviorIndependence = controls.roundingModeIndependence =
        VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    test::fake().restart({.type = type, .float_controls = controls});
    DeviceUnderTest device({.get_instance_proc_addr = test::fake_get_instance_proc_addr});
    const Aspects all = all_aspects(device);
    const Reached reached = reached_by_quick_checks(device);
    std::size_t wrong = 0;
    std::printf("on a %s:\n", type == VK_PHYSICAL_DEVICE_TYPE_CPU ? "processor" : "GPU");
    for (const std::string& aspect : all) {
        const auto found = reached.find(aspect);
        if (found == reached.end()) {
            std::printf("  NONE  %s\n", aspect.c_str());
            ++wrong;
        } else {
            std::printf("  %4zu  %s  %s\n", found->second.size(), aspect.c_str(),
                        found->second.front().c_str());
        }
    }
    for (const auto& [aspect, ids] : reached) {
        if (all.count(aspect) == 0) {
            std::printf("  NEW   %s  %s: all_aspects() does not make it\n", aspect.c_str(),
                        ids.front().c_str());
            ++wrong;
        }
    }
    std::printf("%zu variants, %zu of them not reached or not listed\n\n", all.size(), wrong);
    return wrong;
}

}  // namespace
}  // namespace vkrope::conformance

// The argument: the kind of device, gpu or processor.
int main(int, char** arguments) {
    return vkrope::tools::run_program("not all variants were listed", [&] {
        using namespace vkrope;
        const bool gpu = std::string_view(arguments[1]) == "gpu";
        return conformance::list_coverage(gpu ? VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
                                              : VK_PHYSICAL_DEVICE_TYPE_CPU) == 0
                   ? tools::ExitCode::success
                   : tools::ExitCode::verification_failed;
    });
}
