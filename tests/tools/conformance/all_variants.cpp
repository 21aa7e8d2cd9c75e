// SPDX-License-Identifier: MIT
// What create() can make: the kernels whose uses are all variants.
#include "conformance/builtin/trial.hpp"
#include "meaning.hpp"
#include "variants.hpp"

namespace vkrope::conformance {
namespace {

/// 64 channels of 96 (any unit), 24 of 32 (units of 4), 12 of 16 (of 2), 10 of 13 (of 1).
constexpr std::uint32_t widths[][3] = {{64, 96, 16}, {24, 32, 4}, {12, 16, 2}, {10, 13, 1}};

struct Asked {
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT};
    ReportedLimits limits = {};
};

KernelInfo info_of(const std::uint32_t (&width)[3], Element element) {
    KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                       .rotary_dim = width[0],
                       .tensor = {{.in = element,
                                   .out = element,
                                   .head_dim = width[1],
                                   .rotary_offset = width[2]}},
                       .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    info.tensor[K] = info.tensor[Q];
    return info;
}

KernelInfo with_v(KernelInfo info) {
    info.tensor[V] = {
        .in = info.tensor[K].in, .out = info.tensor[K].out, .head_dim = info.tensor[K].head_dim};
    return info;
}

void add_element_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element in : elements) {
            for (const Element out : elements) {
                for (const bool alike : {true, false}) {
                    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
                        KernelInfo info = info_of(width, in);
                        info.tensor[Q].out = out;
                        info.tensor[K] = alike ? info.tensor[Q] : info.tensor[K];
                        info.mapping = mapping;
                        all.push_back({.info = info});
                        all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                        info.conversion = VKROPE_CONVERSION_NATIVE;
                        all.push_back({.info = info});
                        info.conversion = VKROPE_CONVERSION_INTEGER;
                        all.push_back({.info = info});
                    }
                }
            }
        }
    }
}

void add_angle_infos(std::vector<Asked>& all) {
    constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                       VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER,
                                       VKROPE_ANGLES_COS_SIN_CACHE};
    std::vector<Sections> turns = {{}, {.axes = 2, .pairs = {8, 8}}, {.axes = 2, .pairs = {1, 2}}};
    for (std::uint32_t axes = 3; axes <= max_axes; ++axes) {
        turns.push_back({.axes = axes, .pairs = {1}});
    }
    turns.push_back({.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {4, 3, 3}});
    turns.push_back({.order = VKROPE_SECTIONS_INTERLEAVED,
                     .axes = 4,
                     .pairs = {3, 2, 2, 2},
                     .leftover_axis = 3});
    for (const auto& width : widths) {
        for (const AngleSource source : sources) {
            for (const Element element : elements) {  // of the tensors, or of the tables
                for (const Sections& sections : turns) {
                    KernelInfo info = info_of(width, element == VKROPE_BF16 ? VKROPE_F16 : element);
                    info.angles = source;
                    if (source == VKROPE_ANGLES_COS_SIN_CACHE) info.table = element;
                    info.sections = sections;
                    info.positions = sections.axes == 0 ? VKROPE_POSITIONS_IDS
                                                        : VKROPE_POSITIONS_AXIS_IDS;
                    for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                        for (const Pairing pairing : pairings) {
                            info.mapping = mapping;
                            info.pairing = pairing;
                            info.tensor[Q] = info.tensor[K] =
                                info_of(width, element == VKROPE_BF16 ? VKROPE_F16 : element)
                                    .tensor[Q];
                            all.push_back({.info = info});
                            info.tensor[Q] = info.tensor[K] =
                                info_of(width, element == VKROPE_F16 ? VKROPE_F32 : VKROPE_F16)
                                    .tensor[Q];
                            all.push_back({.info = info});
                        }
                    }
                }
            }
        }
    }
}

/// Phases, sums over axes, head groups, and angles of channels.
void add_turn_infos(std::vector<Asked>& all) {
    constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                       VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER};
    for (const auto& width : widths) {
        for (const Element element : {VKROPE_F32, VKROPE_F16}) {
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                for (const Pairing pairing : pairings) {
                    KernelInfo info = info_of(width, element);
                    info.mapping = mapping;
                    info.pairing = pairing;
                    info.phase = true;
                    for (const AngleSource source : sources) {
                        info.angles = source;
                        info.positions = VKROPE_POSITIONS_IDS;
                        info.sections = {};
                        all.push_back({.info = info});
                        info.positions = VKROPE_POSITIONS_AXIS_IDS;
                        info.sections = {.axes = 2, .pairs = {1, 2}};
                        all.push_back({.info = info});
                    }
                    info.angles = VKROPE_ANGLES_COMPUTED;
                    info.sections = {.order = VKROPE_SECTIONS_SUM, .axes = max_axes};
                    for (const bool phase : {false, true}) {
                        info.phase = phase;
                        all.push_back({.info = info});
                    }
                    info.positions = VKROPE_POSITIONS_IDS;
                    info.sections = {};
                    info.head_groups = 2;
                    for (const bool phase : {false, true}) {
                        for (const bool scatter : {false, true}) {
                            info.phase = phase;
                            info.scatter_kv = scatter;
                            all.push_back({.info = info});
                        }
                    }
                    info = info_of(width, element);
                    info.mapping = mapping;
                    info.pairing = pairing;
                    info.positions = VKROPE_POSITIONS_IDS;
                    info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
                    info.channel_angles = true;
                    for (const Element table : elements) {
                        info.table = table;
                        all.push_back({.info = info});
                    }
                }
            }
        }
    }
}

void add_pair_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element element : {VKROPE_F32, VKROPE_F16}) {
            for (const Pairing in : pairings) {
                for (const Pairing out : pairings) {
                    for (std::uint32_t windows = 1; windows <= max_windows; ++windows) {
                        KernelInfo info = info_of(width, element);
                        info.pairing = in;
                        info.pairing_out = out;
                        info.mapping = VKROPE_MAPPING_CPU;
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

/// More chunks than a workgroup has lanes, in a batch; one chunk per lane with all heads.
void add_chunk_infos(std::vector<Asked>& all) {
    constexpr std::uint32_t long_row[] = {262, 278, 8}, one_chunk[] = {2, 2, 0};
    KernelInfo info = info_of(long_row, VKROPE_F16);
    info.mapping = VKROPE_MAPPING_GPU;
    all.push_back({.info = info});
    info = info_of(long_row, VKROPE_F32);
    info.mapping = VKROPE_MAPPING_GPU;
    info.tensor[Q].heads = info.tensor[K].heads = 16;
    all.push_back({.info = info});
    info = info_of(one_chunk, VKROPE_F32);
    info.mapping = VKROPE_MAPPING_CPU;
    all.push_back({.info = info});
}

void add_token_infos(std::vector<Asked>& all) {
    for (const auto& width : widths) {
        for (const Element element : {VKROPE_F32, VKROPE_F16}) {
            for (const PositionSource positions :
                 {VKROPE_POSITIONS_IMPLICIT, VKROPE_POSITIONS_IDS}) {
                for (const AngleSource source :
                     {VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE,
                      VKROPE_ANGLES_DIRECT_BUFFER}) {
                    for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                        KernelInfo info = info_of(width, element);
                        info.positions = positions;
                        info.angles = source;
                        info.mapping = mapping;
                        all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                        info.scatter_kv = true;
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
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        for (const auto& of : {widths, whole}) {
            for (std::uint32_t i = 0; i < std::size(widths); ++i) {
                for (const Element element : {VKROPE_F32, VKROPE_F16}) {
                    KernelInfo info = with_v(info_of(of[i], element));
                    info.mapping = mapping;
                    all.push_back({.info = info});
                    all.push_back({.info = info, .limits = {.storage_buffers = 4}});
                    info.scatter_kv = true;
                    all.push_back({.info = info});
                }
            }
            for (const std::uint32_t heads : {7u, 16u}) {  // fewer than all lanes, and as many
                for (const bool has_q : {false, true}) {
                    KernelInfo info = with_v(info_of(of[0], VKROPE_F32));
                    info.mapping = mapping;
                    info.tensor[K].heads = info.tensor[V].heads = heads;
                    info.tensor[Q].heads = has_q ? heads : 0;
                    info.tensor[Q] = has_q ? info.tensor[Q] : TensorInfo{};
                    all.push_back({.info = info});
                }
            }
        }
        for (const Element in : elements) {
            for (const Element out : elements) {
                for (const Conversion conversion :
                     {VKROPE_CONVERSION_INTEGER, VKROPE_CONVERSION_NATIVE}) {
                    KernelInfo info = with_v(info_of(widths[0], VKROPE_F32));
                    info.mapping = mapping;
                    info.conversion = conversion;
                    info.tensor[V].in = in;
                    info.tensor[V].out = out;
                    all.push_back({.info = info});
                }
            }
        }
    }
}

}  // namespace

Aspects all_aspects(DeviceUnderTest& device) {
    std::vector<Asked> all;
    add_element_infos(all);
    add_angle_infos(all);
    add_turn_infos(all);
    add_pair_infos(all);
    add_chunk_infos(all);
    add_token_infos(all);
    add_value_infos(all);
    Aspects aspects;
    for (const Asked& asked : all) {
        const Kernel& kernel = *device.kernel_for(asked.info, asked.limits);
        for (const Part& part : kernel.part) {
            for (std::uint32_t i = 0; i < part.pipeline_count; ++i) {
                Use use = use_of(kernel, part, kernel.pipelines[part.first_pipeline + i]);
                add_aspects(use, aspects);
                if (output_pairing(asked.info) == asked.info.pairing) {
                    use.q_in_place = use.info.tensor[Q].in == use.info.tensor[Q].out;
                    use.k_in_place = use.info.tensor[K].in == use.info.tensor[K].out &&
                                     !use.info.scatter_kv;
                    add_aspects(use, aspects);
                }
            }
        }
    }
    return aspects;
}

}  // namespace vkrope::conformance
