// SPDX-License-Identifier: MIT
// The rows of one use of a pipeline.
#include "variants.hpp"

#include <algorithm>

#include "conformance/builtin/trial.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

// A new constant belongs into a row of add_aspects(), and into a loop of all_aspects(). Those of
// ops are not in the list yet: the group ops/* of the suite runs a choice of them; cases and device
// tests run second_parameters.
static_assert(shader::constant_count == 113);

std::string unit_of(const Geometry& geometry) {
    return fmt::format("units of {}", geometry.unit_elements);
}

const char* access_of(const Geometry& geometry) {
    return geometry.access == shader::access_wide   ? "wide"
           : geometry.access == shader::access_word ? "word"
                                                    : "narrow";
}

void add_chunks(const Use& use, Aspects& aspects) {
    const Geometry& geometry = use.geometry;
    const bool all = geometry.q_batch == 0,
               several = std::max(geometry.q_batch, geometry.k_batch) > 1;
    const std::string how = fmt::format("a lane of {}, {}, {}",
                                        all       ? "all heads"
                                        : several ? "several heads"
                                                  : "one head",
                                        access_of(geometry), unit_of(geometry));
    aspects.insert("chunks  rotating: " + how);
    const std::uint32_t chunks = use.info.rotary_dim / (2 * geometry.unit_elements);
    aspects.insert(fmt::format("chunks  {} of a lane of {}, a workgroup of {}",
                               chunks > geometry.chunk_lanes ? "several" : "one",
                               all ? "all heads" : "a batch",
                               geometry.group_tokens == 1 ? "one token" : "several tokens"));
    const auto copies = [&use](const TensorInfo& width, bool used, bool in_place) {
        return used && !in_place && width.head_dim > use.info.rotary_dim;
    };
    if (copies(use.info.tensor[Q], use.q, use.q_in_place) ||
        copies(use.info.tensor[K], use.k, use.k_in_place)) {
        aspects.insert("chunks  copying: " + how);
    }
}

/// Whether a lane that has a chunk of K also has one of V.
bool beside_k(const Use& use) {
    const Geometry& geometry = use.geometry;
    return geometry.q_batch != 0 && geometry.chunks_together == 1 &&
           use.info.tensor[V].head_dim == use.info.rotary_dim &&
           use.info.rotary_dim == 2 * geometry.unit_elements * geometry.chunk_lanes;
}

void add_moves_of_v(const Use& use, Aspects& aspects) {
    const KernelInfo& info = use.info;
    const Geometry& geometry = use.geometry;
    const char* pages = info.scatter_kv ? ", to pages" : "";
    const char* lane = geometry.k_batch == 0   ? "all heads"
                       : geometry.k_batch == 1 ? "one head"
                                               : "several heads";
    const std::string how = fmt::format("{}, {}", access_of(geometry), unit_of(geometry));
    const auto elements_as = [&](const char* where, const TensorInfo& width) {
        aspects.insert(fmt::format("V  {}, {} to {}, conversion {}", where, name_of(width.in),
                                   name_of(width.out), use.conversion));
    };
    if (use.v_joins) {
        const char* where = beside_k(use) ? "beside a chunk of K" : "copied after K";
        aspects.insert(fmt::format("V  {}: {}", where, how));
        aspects.insert(fmt::format("V  {}: a lane of {}", where, lane));
        aspects.insert(
            fmt::format("V  {}{}{}", where, geometry.k_batch == 0 ? " of all heads" : "", pages));
        elements_as("with K", info.tensor[V]);
    }
    if (use.v_alone && use.apart) {
        aspects.insert(fmt::format("V  alone, as the only tensor: a lane of {}, {}", lane,
                                   access_of(geometry)));
        elements_as("alone", info.tensor[Q]);
    } else if (use.v_alone) {
        aspects.insert(fmt::format("V  alone, as K: a lane of {}, {}", lane, how));
        aspects.insert(fmt::format("V  alone, as K: a lane of {}{}", lane, pages));
        elements_as("alone", info.tensor[K]);
    }
}

void add_accesses(const Use& use, Aspects& aspects) {
    const auto add = [&](const TensorInfo& width, const char* tensor, bool used, bool in_place) {
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
    add(use.info.tensor[Q], use.apart ? "the only tensor" : "Q of two tensors", use.q,
        use.q_in_place);
    add(use.info.tensor[K], "K of two tensors", use.k, use.k_in_place);
    if (use.info.scatter_kv && use.k) {
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
    const bool sequential = sections.order == VKROPE_SECTIONS_SEQUENTIAL,
               summed = sections.order == VKROPE_SECTIONS_SUM;
    const bool callers = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    const bool interleaved = info.pairing == VKROPE_INTERLEAVED &&
                             output_pairing(info) == info.pairing;
    const bool apart = use.geometry.units_apart && interleaved && use.geometry.unit_elements > 1;
    const std::uint32_t run = apart ? use.geometry.unit_elements / 2 : use.geometry.unit_elements;
    const bool of_axis = sections.axes == 0 || summed || (sequential && bits % run == 0);
    constexpr const char* sources[] = {"default", "factored", "computed",
                                       "texture", "buffer",   "caller's"};
    aspects.insert(
        fmt::format("angles  {}{}: {}, {}", sources[static_cast<std::size_t>(info.angles)],
                    callers ? std::string(" ") + name_of(info.table) : "",
                    !callers && of_axis ? "one a run" : "one a pair", unit_of(use.geometry)));
    if (info.phase) {
        const std::string source = fmt::format("phase  {}", sources[std::size_t(info.angles)]);
        aspects.insert(of_axis ? fmt::format("{}: one a run, {}", source, unit_of(use.geometry))
                               : source + ": one a pair");
    }
    if (info.channel_angles) {
        aspects.insert(fmt::format("channels  {}, {}: {}", name_of(info.table),
                                   name_of(info.pairing), unit_of(use.geometry)));
    }
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
                                   summed        ? info.phase ? "summed, with a phase" : "summed"
                                   : !sequential ? "interleaved"
                                   : of_axis     ? "whole runs"
                                                 : "within runs",
                                   unit_of(use.geometry)));
        const bool interleaves = !sequential && !summed;
        if (interleaves || sections.axes == max_axes) {  // fewer axes give the same code
            aspects.insert(fmt::format("axes  {} {}", sections.axes,
                                       summed       ? "summed"
                                       : sequential ? "in sequence"
                                                    : "interleaved"));
        }
    }
    aspects.insert(fmt::format("pairs  {} to {}: {}", name_of(info.pairing),
                               name_of(output_pairing(info)), unit_of(use.geometry)));
}

void add_tokens(const Use& use, Aspects& aspects) {
    const KernelInfo& info = use.info;
    aspects.insert(fmt::format(
        "tokens  {}, {}{}{}", info.positions == VKROPE_POSITIONS_IMPLICIT ? "counted" : "ids",
        use.apart ? "one tensor" : "two tensors", use.counts ? ", counter" : ", no counter",
        info.scatter_kv ? ", slots" : ""));
    if (head_groups_of(info) != 1) {
        const Geometry& geometry = use.geometry;
        aspects.insert(fmt::format("tokens  head groups, a lane of {}{}{}",
                                   geometry.q_batch == 0 ? "all heads" : "a batch",
                                   info.phase ? ", phases" : "", info.scatter_kv ? ", slots" : ""));
    }
}

}  // namespace

void add_aspects(const Use& use, Aspects& aspects) {
    add_moves_of_v(use, aspects);
    if (use.v_alone) {
        return;  // nothing is rotated
    }
    add_chunks(use, aspects);
    add_accesses(use, aspects);
    add_angles(use, aspects);
    add_tokens(use, aspects);
}

Use use_of(const Kernel& kernel, const Part& part, const Pipeline& pipeline) {
    const bool alone = &part == &kernel.part[V];
    return {.info = part.info,
            .geometry = pipeline.geometry,
            .apart = kernel.separate_dispatches,
            .counts = kernel.binds.has(shader::binding_status),
            .conversion = kernel.conversion,
            .q = part.info.tensor[Q].head_dim != 0,
            .k = part.info.tensor[K].head_dim != 0,
            .q_in_place = false,
            .k_in_place = false,
            .v_joins = !alone && part.info.tensor[V].head_dim != 0,
            .v_alone = alone};
}

}  // namespace vkrope::conformance
