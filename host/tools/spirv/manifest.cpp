// SPDX-License-Identifier: MIT
#include "spirv/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "kernel/constants.hpp"
#include "shell/failure.hpp"
#include "shell/words.hpp"
#include "spirv/interface_tables.hpp"
#include "spirv/paper_device.hpp"

namespace vkrope::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr Choice<std::uint32_t> accesses[] = {{"wide", shader::access_wide},
                                              {"word", shader::access_word},
                                              {"narrow", shader::access_narrow}};

Json json_of_constants(const shader::Constants& constants) {
    Json json = {{"workgroup_size", constants.workgroup_size}};
#define VKROPE_NAMED(id, name, otherwise) json[#name] = constants.name;
    VKROPE_CONSTANTS(VKROPE_NAMED)
#undef VKROPE_NAMED
    return json;
}

const char* name_of(VkDescriptorType type) {
    switch (type) {
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER: return "storage_buffer";
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER: return "uniform_buffer";
        default: return "sampled_image";
    }
}

Json json_of_bindings(const std::vector<std::uint32_t>& words) {
    Spirv module{std::make_unique<std::uint32_t[]>(words.size()), words.size()};
    std::copy(words.begin(), words.end(), module.words.get());
    BindingList list;
    check(add_bindings(module, list), Subject::device);
    Json json = Json::array();
    for (const Binding& binding : list)
        json.push_back({{"binding", binding.number},
                        {"name", named_bindings()[binding.number].name},
                        {"type", name_of(binding.type)}});
    return json;
}

Json tensors_of(const KernelInfo& info) {
    Json json = Json::array();
    if (info.q.head_dim != 0) json.push_back("q");
    if (info.k.head_dim != 0) json.push_back("k");
    if (info.v.head_dim != 0) json.push_back("v");
    return json;
}

// Heads that a workgroup takes of a tensor; 0: all.
std::uint32_t heads_of_group(const Geometry& geometry, std::uint32_t batch) {
    return geometry.head_lanes * batch;
}

Json dispatch_of(const Part& part, const Geometry& geometry, const DispatchLimits& limits) {
    return {{"tokens_per_group", geometry.group_tokens},
            {"q_heads_per_group", heads_of_group(geometry, geometry.q_batch)},
            {"k_heads_per_group", heads_of_group(geometry, geometry.k_batch)},
            {"most_tokens", max_tokens(geometry, limits)},
            {"most_heads", max_heads(part.info, geometry, limits)}};
}

// Of two pipelines with the same access, the first is for many tokens.
const char* load_of(const Kernel& kernel, std::uint32_t index) {
    const Pipeline& pipeline = kernel.pipelines[index];
    if (kernel.info.mapping == Mapping::cpu) return "any";
    const auto same = [&](std::uint32_t other) {
        return other < kernel.pipeline_count && kernel.pipelines[other].part == pipeline.part &&
               kernel.pipelines[other].geometry.access == pipeline.geometry.access;
    };
    return same(index + 1) ? "many_tokens" : index > 0 && same(index - 1) ? "few_tokens" : "any";
}

std::string bytes_of(const std::vector<std::uint32_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t)};
}

Json json_of_kernel(const NamedInfo& named, std::vector<ModuleFile>& files) {
    take_modules();
    auto created = own(create(paper_device(), named.info));
    if (!created)
        fail(ExitCode::usage, "--info: kernel '{}': {}", named.name,
             static_cast<const char*>(created.status.what));
    const std::vector<std::vector<std::uint32_t>> words = take_modules();
    const Kernel& kernel = *created.value;
    const bool counts = kernel.binds.has(shader::binding_status);
    Json modules = Json::array();
    for (std::uint32_t i = 0; i < kernel.pipeline_count; ++i) {
        const Pipeline& pipeline = kernel.pipelines[i];
        const Part& part = *pipeline.part;
        const std::string access = word_for(accesses, pipeline.geometry.access),
                          load = load_of(kernel, i);
        const std::string file = fmt::format("{}.{}{}{}.spv", named.name, access,
                                             load == "any" ? "" : "." + load,
                                             &part == &kernel.v ? ".v" : "");
        files.push_back({file, bytes_of(words.at(i))});
        modules.push_back(
            {{"file", file},
             {"access", access},
             {"load", load},
             {"tensors", tensors_of(part.info)},
             {"workgroup_size", pipeline.geometry.workgroup_size()},
             {"dispatch", dispatch_of(part, pipeline.geometry, kernel.dispatch_limits)},
             {"bindings", json_of_bindings(words.at(i))},
             {"constants",
              json_of_constants(constants_of(kernel, part, pipeline.geometry, counts))}});
    }
    return {{"name", named.name}, {"modules", modules}};
}

// The content of the binding `table`, `turns` or `texture`.
Json json_of_table(const NamedInfo& named, const TableRequest& request,
                   std::vector<ModuleFile>& files) {
    const KernelInfo& info = named.info;
    const std::string prefix = fmt::format("--info: kernel '{}': the model: ", named.name);
    if (info.angles == AngleSource::cos_sin_cache)
        fail(ExitCode::usage, "{}cos_sin_cache is a table of your own", prefix);
    const AnglePlan plan = value_of(
        plan_angles(request.rotation, info.angles, request.max_position, 4096), Subject::model_file,
        prefix);
    if (2 * plan.pairs != info.rotary_dim || plan.sections != info.sections)
        fail(ExitCode::usage, "{}rotary_dim is {} and the kernel has {}, or the sections differ",
             prefix, 2 * plan.pairs, info.rotary_dim);
    std::string content(plan.bytes, '\0');
    check(fill_angles(request.rotation, plan, content.data(), content.size()), Subject::model_file,
          prefix);
    const std::string file = named.name + ".angles.bin";
    files.push_back({file, std::move(content)});
    const bool buffer = info.angles == AngleSource::direct_buffer;
    return {{"file", file},
            {"bytes", plan.bytes},
            {"width", plan.extent.width},
            {"height", plan.extent.height},
            {"format", plan.format},
            {"push",
             {{"table_rows", plan.rows},
              {"table_stride", buffer ? 2 * plan.pairs : plan.fold_log2},
              {"table_texels", buffer ? 0 : plan.row_texels}}}};
}

Json json_of(std::span<const NamedNumber> numbers, const char* value) {
    Json json = Json::array();
    for (const NamedNumber& one : numbers)
        json.push_back({{"name", one.name}, {value, one.value}, {"meaning", one.meaning}});
    return json;
}

Json json_of_interface() {
    Json members = Json::array(), bindings = Json::array();
    for (const PushMember& member : push_members())
        members.push_back({{"name", member.name},
                           {"offset", member.offset},
                           {"type", member.type},
                           {"meaning", member.meaning}});
    for (const NamedBinding& binding : named_bindings())
        bindings.push_back(
            {{"binding", binding.number}, {"name", binding.name}, {"meaning", binding.meaning}});
    return {{"environment", "vulkan1.1"},
            {"entry_point", "main"},
            {"descriptor_set", 0},
            {"bindings", bindings},
            {"push_constants",
             {{"bytes", sizeof(shader::Push)},
              {"members", members},
              {"offsets", json_of(push_offsets(), "byte")},
              {"flags", json_of(push_flags(), "value")}}},
            {"access",
             {{"wide", "every offset, stride and row of a tensor is a multiple of 16 bytes"},
              {"word", "or of 4 bytes"},
              {"narrow", "anything"}}},
            {"load",
             {{"many_tokens", "if it has at least 65536 invocations"},
              {"few_tokens", "otherwise"},
              {"any", "always"}}},
            {"dispatch",
             {{"x", "tokens / tokens_per_group, rounded up"},
              {"y",
               "the larger of q_heads / q_heads_per_group and k_heads / k_heads_per_group, "
               "each rounded up; 1 where the divisor is 0"},
              {"z", "sequences"}}}};
}

}  // namespace

Json make_manifest(const std::vector<NamedInfo>& kernels, const std::optional<TableRequest>& tables,
                   std::vector<ModuleFile>& files) {
    Json json = {{"format", "vkrope-spirv/1"},
                 {"interface", json_of_interface()},
                 {"kernels", Json::array()}};
    for (const NamedInfo& named : kernels) {
        for (const Json& other : json["kernels"]) {
            if (other["name"] == named.name)
                fail(ExitCode::usage, "--info: two kernels have the name '{}'", named.name);
        }
        Json kernel = json_of_kernel(named, files);
        if (tables) kernel["angle_table"] = json_of_table(named, *tables, files);
        json["kernels"].push_back(std::move(kernel));
    }
    return json;
}

}  // namespace vkrope::tools
