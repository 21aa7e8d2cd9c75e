// SPDX-License-Identifier: MIT
// How C spells the names of the C++ headers: struct AnglePlan is vkrope_angle_plan, and a few have
// another name.
#pragma once

#include <cctype>
#include <map>
#include <string>

#include "header_text.hpp"

using Table = std::map<std::string, std::string>;

inline const char* const cpp_headers[] = {"types.hpp",     "frequencies.hpp", "rotation_from.hpp",
                                          "positions.hpp", "kernel.hpp",      "runtime.hpp",
                                          "model.hpp"};

inline const std::string headers = VKROPE_TEST_SOURCE "/host/include/vkrope/";

inline std::vector<DeclaredType> read_header(const std::string& name) {
    return HeaderReader(headers + name).read();
}

// C++ function -> C function.
inline const Table functions_in_c = {
    {"create", "kernel_create"},
    {"create_positions", "position_kernel_create"},
    {"create_arena", "arena_create"},
    {"destroy", "kernel_destroy"},
    {"reset", "arena_reset"},
    {"requirements", "get_requirements"},
    {"dispatches", "get_dispatches"},
    {"boundary", "get_boundary"},
    {"angle_image_info", "get_angle_image_info"},
    {"angle_view_info", "get_angle_view_info"},
    {"angle_lines", "get_angle_lines"},
    {"kernel_info", "rotation_get_kernel_info"},
    {"Device::save_pipeline_cache", "device_save_pipeline_cache"},
    {"fold_grid", "rotation_fold_grid"},
    {"from_hf_config", "rotation_from_hf_config"},
    {"from_gguf", "rotation_from_gguf"},
    {"from_gguf_file", "rotation_from_gguf_file"},
    {"devices", "device_list_create"},
    {"Device::open", "device_open"},
    {"Device::info", "device_get_info"},
    {"Device::ref", "device_get_ref"},
    {"Device::queue", "device_get_queue"},
    {"Device::queue_family", "device_get_queue"},
    {"Device::submit", "device_submit"},
    {"Buffer::make", "buffer_create"},
    {"Buffer::upload", "buffer_upload"},
    {"Buffer::download", "buffer_download"},
    {"Buffer::whole", "buffer_whole"},
    {"AngleTable::make", "angle_table_create"},
    {"AngleTable::reach", "angle_table_reach"},
    {"AngleTable::angles", "angle_table_get"},
    {"AngleTable::plan", "angle_table_get"},
    {"HostRotation::make", "host_rotation_create"},
    {"HostRotation::upload", "host_rotation_upload"},
    {"HostRotation::download", "host_rotation_download"},
    {"HostRotation::run", "host_rotation_run"},
    {"HostRotation::q_bytes", "host_rotation_q_bytes"},
    {"HostRotation::k_bytes", "host_rotation_k_bytes"},
    {"HostRotation::v_bytes", "host_rotation_v_bytes"},
};

// C++ type -> C type.
inline const Table types_in_c = {
    {"Code", "result"},
    {"Status", "error"},
    {"Rotation", "rotation_info"},
    {"DeviceFeature", "device_features"},
    {"LongRopeScaling", "longrope_scaling"},
    {"TensorInfo", "head_format"},
};

// C++ enumerator -> C enumerator. The others differ by a prefix.
inline const Table enumerators_in_c = {
    {"Code::ok", "VKROPE_SUCCESS"},
    {"Code::vulkan_error", "VKROPE_ERROR_VULKAN"},
};

inline std::string c_type(const std::string& cpp) {
    const auto renamed = types_in_c.find(cpp);
    if (renamed != types_in_c.end()) return "vkrope_" + renamed->second;
    std::string c = "vkrope";
    for (const char letter : cpp) {
        if (std::isupper(static_cast<unsigned char>(letter))) c += '_';
        c += char(std::tolower(static_cast<unsigned char>(letter)));
    }
    return c;
}

inline const DeclaredType* find_type(const std::vector<DeclaredType>& types,
                                     const std::string& name) {
    for (const DeclaredType& type : types) {
        if (type.name == name) return &type;
    }
    return nullptr;
}

inline const std::string* find_member(const DeclaredType& type, const std::string& name) {
    for (const std::string& member : type.members) {
        if (member == name) return &member;
    }
    return nullptr;
}

/// Enumerator of C for type::name of C++; null if there is none.
inline const std::string* find_enumerator(const DeclaredType& c, const std::string& type,
                                          const std::string& name) {
    const auto renamed = enumerators_in_c.find(type + "::" + name);
    if (renamed != enumerators_in_c.end()) return find_member(c, renamed->second);
    std::string end = "_";
    for (const char letter : name) end += char(std::toupper(static_cast<unsigned char>(letter)));
    const std::string* found = nullptr;  // the shortest: _CHANNEL also ends _HEAD_CHANNEL
    for (const std::string& each : c.members) {
        const std::size_t size = each.size();
        if (size > end.size() && each.compare(size - end.size(), size, end) == 0 &&
            (!found || size < found->size()))
            found = &each;
    }
    return found;
}
