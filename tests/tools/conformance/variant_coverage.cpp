// SPDX-License-Identifier: MIT
// Tests that the quick checks reach every variant of the shader that create() makes.
//
// create() specialises and prunes one module by some forty constants. The remaining code of a
// branch depends on few of them at a time, so a variant is one row of the list that add_aspects()
// makes. A row names the constants that meet in one branch of rope.comp: how steps map to
// invocations and access rows; which tensor and element size a load or store is for; whether V is
// moved together with K, or alone; the angle source, and whether angles are read per unit or per
// pair; the axis of a pair; pairs in and out; windows; conversions; the work per token.
//
// The variants of create() are all combinations of the values of the constants in a row. The
// reached variants are those that the calls of the quick checks dispatch. Both run on a Vulkan that
// computes nothing, once as a GPU and once as a processor.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "conformance/builtin/builtin.hpp"
#include "conformance/builtin/trial.hpp"
#include "conformance/device_under_test.hpp"
#include "kernel/plan.hpp"
#include "shell/program.hpp"
#include "support/fake_vulkan/fake_vulkan.hpp"

namespace vkrope::conformance {
namespace {

// A new constant belongs into a row of add_aspects(), and into a loop of all_aspects(). Those from
// `finish` on are not in the list yet: the group finish/* of the suite runs a choice of them.
static_assert(shader::constant_count == 90);

using Aspects = std::set<std::string>;

/// The use of one pipeline in one dispatch.
struct Use {
    KernelInfo info;  // of the pipeline's part
    Geometry geometry;
    bool apart, counts;
    std::uint32_t conversion;
    bool q, k, q_in_place, k_in_place;
    bool v_joins;  // V shares the dispatch of K
    bool v_alone;  // only V: seen as Q if the kernel is apart, else as K
};

std::string unit_of(const Geometry& geometry) {
    return fmt::format("units of {}", geometry.unit_elements);
}

const char* access_of(const Geometry& geometry) {
    return geometry.access == shader::access_wide   ? "wide"
           : geometry.access == shader::access_word ? "word"
                                                    : "narrow";
}

void add_steps(const Use& use, Aspects& aspects) {
    const Geometry& geometry = use.geometry;
    const bool all = geometry.q_batch == 0,
               several = std::max(geometry.q_batch, geometry.k_batch) > 1;
    const std::string how = fmt::format("a lane of {}, {}, {}",
                                        all       ? "all heads"
                                        : several ? "several heads"
                                                  : "one head",
                                        access_of(geometry), unit_of(geometry));
    aspects.insert("steps  rotating: " + how);
    const std::uint32_t steps = use.info.rotary_dim / (2 * geometry.unit_elements);
    aspects.insert(fmt::format("steps  {} of a lane of {}, a workgroup of {}",
                               steps > geometry.step_lanes ? "several" : "one",
                               all ? "all heads" : "a batch",
                               geometry.group_tokens == 1 ? "one token" : "several tokens"));
    if (several) {
        aspects.insert(fmt::format("steps  several heads of a lane: {}",
                                   geometry.whole_batches ? "whole batches" : "or fewer"));
    }
    const auto copies = [&use](const HeadFormat& width, bool used, bool in_place) {
        return used && !in_place && width.head_dim > use.info.rotary_dim;
    };
    if (copies(use.info.q, use.q, use.q_in_place) || copies(use.info.k, use.k, use.k_in_place)) {
        aspects.insert("steps  copying: " + how);
    }
}

/// Whether a lane that has a step of K also has one of V.
bool beside_k(const Use& use) {
    const Geometry& geometry = use.geometry;
    return geometry.q_batch != 0 && geometry.steps_together == 1 &&
           use.info.v.head_dim == use.info.rotary_dim &&
           use.info.rotary_dim == 2 * geometry.unit_elements * geometry.step_lanes;
}

void add_moves_of_v(const Use& use, Aspects& aspects) {
    const KernelInfo& info = use.info;
    const Geometry& geometry = use.geometry;
    const char* pages = info.scatter_k ? ", to pages" : "";
    const char* lane = geometry.k_batch == 0   ? "all heads"
                       : geometry.k_batch == 1 ? "one head"
                                               : "several heads";
    const std::string how = fmt::format("{}, {}", access_of(geometry), unit_of(geometry));
    const auto elements_as = [&](const char* where, const HeadFormat& width) {
        aspects.insert(fmt::format("V  {}, {} to {}, conversion {}", where, name_of(width.in),
                                   name_of(width.out), use.conversion));
    };
    if (use.v_joins) {
        const bool beside = beside_k(use),
                   after_q = beside && info.q.head_dim != 0 && geometry.q_batch > 1;
        const char* where = beside ? "beside a step of K" : "copied after K";
        aspects.insert(fmt::format("V  {}: {}", where, how));
        aspects.insert(fmt::format("V  {}: a lane of {}{}", where, lane,
                                   after_q ? ", after its heads of Q" : ""));
        aspects.insert(
            fmt::format("V  {}{}{}", where, geometry.k_batch == 0 ? " of all heads" : "", pages));
        if (geometry.k_batch > 1) {
            const char* batches = geometry.whole_batches ? "whole batches" : "or fewer";
            aspects.insert(fmt::format("V  several heads of a lane: {}", batches));
        }
        elements_as("with K", info.v);
    }
    if (use.v_alone && use.apart) {
        aspects.insert(fmt::format("V  alone, as the only tensor: a lane of {}, {}", lane,
                                   access_of(geometry)));
        elements_as("alone", info.q);
    } else if (use.v_alone) {
        aspects.insert(fmt::format("V  alone, as K: a lane of {}, {}", lane, how));
        aspects.insert(fmt::format("V  alone, as K: a lane of {}{}", lane, pages));
        elements_as("alone", info.k);
    }
}

void add_accesses(const Use& use, Aspects& aspects) {
    const auto add = [&](const HeadFormat& width, const char* tensor, bool used, bool in_place) {
        if (!used) {
            return;
        }
        const char* place = in_place ? ", in place" : ", out of place";
        aspects.insert(fmt::format("access  {}: {}{}", tensor, access_of(use.geometry), place));
        const auto elements_as = [&](const char* verb, Element element) {
            aspects.insert(fmt::format("access  {} {} bits: {}, {}", verb,
                                       8 * element_bytes(element), access_of(use.geometry),
                                       unit_of(use.geometry)));
        };
        elements_as("load of", width.in);
        elements_as("store of", width.out);
        aspects.insert(fmt::format("elements  {} to {}, conversion {}", name_of(width.in),
                                   name_of(width.out), use.conversion));
    };
    add(use.info.q, use.apart ? "the only tensor" : "Q of two tensors", use.q, use.q_in_place);
    add(use.info.k, "K of two tensors", use.k, use.k_in_place);
    if (use.info.scatter_k && use.k) {
        aspects.insert(
            fmt::format("access  pages: {}, {}", access_of(use.geometry), unit_of(use.geometry)));
    }
}

void add_angles(const Use& use, Aspects& aspects) {
    const KernelInfo& info = use.info;
    const Sections& sections = info.sections;
    std::uint32_t bits = 0, count = 0;
    for (const std::uint32_t pairs : sections.pairs) {
        bits |= pairs;
    }
    const bool sequential = sections.order == SectionOrder::sequential;
    const bool callers = info.angles == AngleSource::cos_sin_cache;
    const bool interleaved = info.pairing == Pairing::interleaved &&
                             info.pairing_out.value_or(info.pairing) == info.pairing;
    const bool apart = use.geometry.units_apart && interleaved && use.geometry.unit_elements > 1;
    const std::uint32_t run = apart ? use.geometry.unit_elements / 2 : use.geometry.unit_elements;
    const bool of_axis = sections.axes == 0 || (sequential && bits % run == 0);
    constexpr const char* sources[] = {"default", "factored", "computed",
                                       "texture", "buffer",   "caller's"};
    aspects.insert(
        fmt::format("angles  {}{}: {}, {}", sources[static_cast<std::size_t>(info.angles)],
                    callers ? std::string(" ") + name_of(info.table) : "",
                    !callers && of_axis ? "one a run" : "one a pair", unit_of(use.geometry)));
    if (apart) {
        aspects.insert(fmt::format("runs  apart: {}, {}",
                                   !callers && of_axis ? "one angle each" : "one a pair",
                                   unit_of(use.geometry)));
    }
    for (const Window& window : info.windows) {
        count += window.rotary_dim != 0 ? 1 : 0;
    }
    aspects.insert(fmt::format("windows  {}: {}", std::max(count, 1u), unit_of(use.geometry)));
    if (sections.axes != 0) {
        aspects.insert(fmt::format("axes  {}: {}",
                                   !sequential ? "interleaved"
                                   : of_axis   ? "whole runs"
                                               : "within runs",
                                   unit_of(use.geometry)));
        if (!sequential || sections.axes == max_axes) {  // fewer axes give the same code
            aspects.insert(fmt::format("axes  {} {}", sections.axes,
                                       sequential ? "in sequence" : "interleaved"));
        }
    }
    aspects.insert(fmt::format("pairs  {} to {}: {}", name_of(info.pairing),
                               name_of(info.pairing_out.value_or(info.pairing)),
                               unit_of(use.geometry)));
}

void add_tokens(const Use& use, Aspects& aspects) {
    const KernelInfo& info = use.info;
    aspects.insert(fmt::format(
        "tokens  {}, {}{}{}", info.positions == PositionSource::implicit ? "counted" : "ids",
        use.apart ? "one tensor" : "two tensors", use.counts ? ", counter" : ", no counter",
        info.scatter_k ? ", slots" : ""));
}

void add_aspects(const Use& use, Aspects& aspects) {
    add_moves_of_v(use, aspects);
    if (use.v_alone) {
        return;  // nothing is rotated
    }
    add_steps(use, aspects);
    add_accesses(use, aspects);
    add_angles(use, aspects);
    add_tokens(use, aspects);
}

Use use_of(const Kernel& kernel, const Part& part, const Pipeline& pipeline) {
    const bool alone = &part == &kernel.v;
    return {.info = part.info,
            .geometry = pipeline.geometry,
            .apart = kernel.apart,
            .counts = kernel.binds.has(shader::binding_status),
            .conversion = kernel.conversion,
            .q = part.info.q.head_dim != 0,
            .k = part.info.k.head_dim != 0,
            .q_in_place = false,
            .k_in_place = false,
            .v_joins = !alone && part.info.v.head_dim != 0,
            .v_alone = alone};
}

// ---- What create() can make ----

/// 64 channels of 96 (any unit), 24 of 32 (units of 4), 12 of 16 (of 2), 10 of 13 (of 1).
constexpr std::uint32_t widths[][3] = {{64, 96, 16}, {24, 32, 4}, {12, 16, 2}, {10, 13, 1}};

struct Asked {
    KernelInfo info;
    ReportedLimits limits = {};
};

KernelInfo info_of(const std::uint32_t (&width)[3], Element element) {
    KernelInfo info = {
        .rotary_dim = width[0],
        .q = {.in = element, .out = element, .head_dim = width[1], .rotary_offset = width[2]}};
    info.k = info.q;
    return info;
}

KernelInfo with_v(KernelInfo info) {
    info.v = {.in = info.k.in, .out = info.k.out, .head_dim = info.k.head_dim};
    return info;
}

void add_element_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element in : elements) {
            for (const Element out : elements) {
                for (const bool alike : {true, false}) {
                    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
                        KernelInfo info = info_of(width, in);
                        info.q.out = out;
                        info.k = alike ? info.q : info.k;
                        info.mapping = mapping;
                        all.push_back({.info = info});
                        all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                        info.conversion = Conversion::native;
                        all.push_back({.info = info});
                        info.conversion = Conversion::integer;
                        all.push_back({.info = info});
                    }
                }
            }
        }
    }
}

void add_angle_infos(std::vector<Asked>& all) {
    constexpr AngleSource sources[] = {AngleSource::factored_texture, AngleSource::computed,
                                       AngleSource::direct_texture, AngleSource::direct_buffer,
                                       AngleSource::cos_sin_cache};
    std::vector<Sections> turns = {{}, {.axes = 2, .pairs = {8, 8}}, {.axes = 2, .pairs = {1, 2}}};
    for (std::uint32_t axes = 3; axes <= max_axes; ++axes) {
        turns.push_back({.axes = axes, .pairs = {1}});
    }
    turns.push_back({.order = SectionOrder::interleaved, .axes = 3, .pairs = {4, 3, 3}});
    turns.push_back(
        {.order = SectionOrder::interleaved, .axes = 4, .pairs = {3, 2, 2, 2}, .leftover_axis = 3});
    for (const auto& width : widths) {
        for (const AngleSource source : sources) {
            for (const Element element : elements) {  // of the tensors, or of the tables
                for (const Sections& sections : turns) {
                    KernelInfo info = info_of(width,
                                              element == Element::bf16 ? Element::f16 : element);
                    info.angles = source;
                    info.table = element;
                    info.sections = sections;
                    info.positions = sections.axes == 0 ? PositionSource::ids
                                                        : PositionSource::axis_ids;
                    for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
                        for (const Pairing pairing : pairings) {
                            info.mapping = mapping;
                            info.pairing = pairing;
                            info.q = info.k =
                                info_of(width, element == Element::bf16 ? Element::f16 : element).q;
                            all.push_back({.info = info});
                            info.q = info.k = info_of(width, element == Element::f16 ? Element::f32
                                                                                     : Element::f16)
                                                  .q;
                            all.push_back({.info = info});
                        }
                    }
                }
            }
        }
    }
}

void add_pair_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element element : {Element::f32, Element::f16}) {
            for (const Pairing in : pairings) {
                for (const Pairing out : pairings) {
                    for (std::uint32_t windows = 1; windows <= max_windows; ++windows) {
                        KernelInfo info = info_of(width, element);
                        info.pairing = in;
                        info.pairing_out = out;
                        info.mapping = Mapping::cpu;
                        const std::uint32_t share = width[0] == 64   ? 16
                                                    : width[0] == 24 ? 8
                                                    : width[0] == 12 ? 4
                                                                     : 2;
                        if (share * (windows - 1) >= width[0]) {
                            continue;
                        }
                        for (std::uint32_t i = 0, at = 0; windows > 1 && i < windows;
                             ++i, at += share) {
                            info.windows[i] = {
                                .offset = at,
                                .rotary_dim = i + 1 < windows ? share : width[0] - at};
                        }
                        all.push_back({.info = info});
                    }
                }
            }
        }
    }
}

/// More steps than a workgroup has lanes, in a batch; one step per lane with all heads.
void add_step_infos(std::vector<Asked>& all) {
    constexpr std::uint32_t long_row[] = {262, 278, 8}, one_step[] = {2, 2, 0};
    KernelInfo info = info_of(long_row, Element::f16);
    info.mapping = Mapping::gpu;
    all.push_back({.info = info});
    info = info_of(long_row, Element::f32);
    info.mapping = Mapping::gpu;
    info.q_heads = info.k_heads = 16;
    all.push_back({.info = info});
    info = info_of(one_step, Element::f32);
    info.mapping = Mapping::cpu;
    all.push_back({.info = info});
}

void add_token_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element element : {Element::f32, Element::f16}) {
            for (const PositionSource positions : {PositionSource::implicit, PositionSource::ids}) {
                for (const AngleSource source : {AngleSource::computed, AngleSource::direct_texture,
                                                 AngleSource::direct_buffer}) {
                    for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
                        KernelInfo info = info_of(width, element);
                        info.positions = positions;
                        info.angles = source;
                        info.mapping = mapping;
                        all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                        info.scatter_k = true;
                        all.push_back({.info = info});
                    }
                }
            }
        }
    }
}

/// V if some channels are rotated and if all are, with other element types, with few storage
/// buffers, and to pages.
void add_value_infos(std::vector<Asked>& all) {
    constexpr std::uint32_t whole[][3] = {{32, 32, 0}, {24, 24, 0}, {12, 12, 0}, {10, 10, 0}};
    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
        for (const auto& of : {widths, whole}) {
            for (std::uint32_t i = 0; i < std::size(widths); ++i) {
                for (const Element element : {Element::f32, Element::f16}) {
                    KernelInfo info = with_v(info_of(of[i], element));
                    info.mapping = mapping;
                    all.push_back({.info = info});
                    all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                    info.scatter_k = true;
                    all.push_back({.info = info});
                }
            }
            for (const std::uint32_t heads : {7u, 16u}) {  // fewer than all lanes, and as many
                for (const bool has_q : {false, true}) {
                    KernelInfo info = with_v(info_of(of[0], Element::f32));
                    info.mapping = mapping;
                    info.k_heads = info.v_heads = heads;
                    info.q_heads = has_q ? heads : 0;
                    info.q = has_q ? info.q : HeadFormat{};
                    all.push_back({.info = info});
                }
            }
        }
        for (const Element in : elements) {
            for (const Element out : elements) {
                for (const Conversion conversion : {Conversion::integer, Conversion::native}) {
                    KernelInfo info = with_v(info_of(widths[0], Element::f32));
                    info.mapping = mapping;
                    info.conversion = conversion;
                    info.v.in = in;
                    info.v.out = out;
                    all.push_back({.info = info});
                }
            }
        }
    }
}

Aspects all_aspects(DeviceUnderTest& device) {
    std::vector<Asked> all;
    add_element_infos(all);
    add_angle_infos(all);
    add_pair_infos(all);
    add_step_infos(all);
    add_token_infos(all);
    add_value_infos(all);
    Aspects aspects;
    for (const Asked& asked : all) {
        const Kernel& kernel = *device.kernel_for(asked.info, asked.limits);
        for (const Part* part : {&kernel.q, &kernel.k, &kernel.v}) {
            for (std::uint32_t i = 0; i < part->pipeline_count; ++i) {
                Use use = use_of(kernel, *part, kernel.pipelines[part->first_pipeline + i]);
                add_aspects(use, aspects);
                if (asked.info.pairing_out.value_or(asked.info.pairing) == asked.info.pairing) {
                    use.q_in_place = use.info.q.in == use.info.q.out;
                    use.k_in_place = use.info.k.in == use.info.k.out && !use.info.scatter_k;
                    add_aspects(use, aspects);
                }
            }
        }
    }
    return aspects;
}

// ---- What the checks reach ----

/// Checks by the name of the aspect that they reach.
using Reached = std::map<std::string, std::vector<std::string>>;

void add_call(const Kernel& kernel, const Call& call, const std::string& id, Reached& reached) {
    const Result<ResolvedCall> resolved = resolve(kernel, call);
    if (!resolved || resolved->tokens == 0) {
        return;
    }
    const Result<Jobs> jobs = plan(kernel, resolved.value);
    Aspects aspects;
    for (std::uint32_t i = 0; i < jobs->count; ++i) {
        const Job& job = jobs->of[i];
        Use use = use_of(kernel, *job.part, *job.pipeline);
        const bool first_is_k = kernel.apart && job.k;
        use.q = kernel.apart || job.q;
        use.k = !kernel.apart && job.k;
        use.v_joins = job.v && !use.v_alone;
        use.q_in_place = first_is_k ? resolved->k.in_place : resolved->q.in_place;
        use.k_in_place = resolved->k.in_place;
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

int main() {
    return vkrope::tools::run_program("not all variants were listed", [] {
        using namespace vkrope;
        const std::size_t wrong = conformance::list_coverage(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) +
                                  conformance::list_coverage(VK_PHYSICAL_DEVICE_TYPE_CPU);
        return wrong == 0 ? tools::ExitCode::success : tools::ExitCode::verification_failed;
    });
}
