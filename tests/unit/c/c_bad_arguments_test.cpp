// SPDX-License-Identifier: MIT
// The C interface refuses what is not valid, and names it as C has it.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "c_rotation.hpp"
#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

using namespace vkrope::test;

TEST_CASE("C: arrays without a size are believed only where their count is the rule's") {
    vkrope_error error;
    vkrope_rotation* rotation = nullptr;
    auto info = four_channels();
    info.inv_freq_count = 16;  // a count of bytes by mistake
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.inv_freq_count is 16"));
    info = four_channels();
    info.inv_freq = nullptr;
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.inv_freq is null"));
    const char* const hole[] = {"first", nullptr};
    info = four_channels();
    info.warnings = hole;
    info.warning_count = 2;
    CHECK(vkrope_rotation_create(&info, &rotation, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.warnings[1]"));
    CHECK(rotation == nullptr);
}

TEST_CASE("C: null where an object must be is an error, and nothing to destroy") {
    vkrope_error error;
    auto info = sized<vkrope_rotation_info>();
    CHECK(vkrope_rotation_create(nullptr, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation is null"));
    CHECK(vkrope_rotation_get_info(nullptr, &info, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_default_inv_freq(1, 2, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_scale_linear(nullptr, 1, 1, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_get_queue(nullptr, nullptr, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_submit(nullptr, nullptr, nullptr, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "device is null"));
    CHECK(vkrope_device_save_pipeline_cache(nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "device is null"));
    CHECK(vkrope_buffer_upload(nullptr, nullptr, 0, 0, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_host_rotation_run(nullptr, VKROPE_DIRECTION_FORWARD, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_list_count(nullptr) == 0);
    CHECK(vkrope_host_rotation_q_bytes(nullptr) == 0);
    CHECK(vkrope_buffer_whole(nullptr).buffer == VK_NULL_HANDLE);
    vkrope_rotation_destroy(nullptr);
    vkrope_kernel_destroy(nullptr);
    vkrope_arena_destroy(nullptr);
    vkrope_arena_reset(nullptr);
    vkrope_buffer_destroy(nullptr);
    vkrope_angle_table_destroy(nullptr);
    vkrope_host_rotation_destroy(nullptr);
    vkrope_device_list_destroy(nullptr);
    vkrope_device_destroy(nullptr);
}

TEST_CASE("C: structs within structs are checked under their own names") {
    vkrope_error error;
    vkrope_tensor tensor = {};
    auto call = sized<vkrope_call>();
    call.k_out = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.k_out.struct_size is 0"));
    vkrope_angle_plan plan = {};
    auto angles = sized<vkrope_angles>();
    angles.plan = &plan;
    call.k_out = nullptr;
    call.v_in = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.v_in.struct_size is 0"));
    call.v_in = nullptr;
    call.v_out = &tensor;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.v_out.struct_size is 0"));
    call.v_out = nullptr;
    call.angles = &angles;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "call.angles.plan.struct_size is 0"));
    call.angles = nullptr;
    CHECK(vkrope_record(nullptr, nullptr, &call, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "commands is null"));

    vkrope_kernel* kernel = nullptr;
    vkrope_head_format width = {};
    const auto device = sized<vkrope_device_ref>();
    auto info = sized<vkrope_kernel_info>();
    info.q = &width;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.q.struct_size is 0"));
    info.q = nullptr;
    info.v = &width;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "info.v.struct_size is 0"));
    info.v = nullptr;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(kernel == nullptr);
}

namespace {

// Calls with numbers that are not enumerators.
template <class Enum, class Call>
void refuses_numbers(const char* name, Call&& call) {
    for (const std::uint32_t number : no_enumerators) {
        Enum value = {};
        put(value, number);
        vkrope_error error;
        INFO(name << " " << number);
        CHECK(call(value, &error) != VKROPE_SUCCESS);
        CHECK(says(error, name));
        CHECK(says(error, std::to_string(number).c_str()));
    }
}

}  // namespace

// Under the undefined-behaviour sanitizer this also shows that none of these numbers is treated as
// an enumerator on the way.
TEST_CASE("C: numbers that are not enumerators are refused, and named") {
    refuses_numbers<vkrope_pairing>("info.pairing",
                                    [](const vkrope_pairing& pairing, vkrope_error* error) {
                                        auto info = four_channels();
                                        std::memcpy(&info.pairing, &pairing, sizeof pairing);
                                        vkrope_rotation* rotation = nullptr;
                                        return vkrope_rotation_create(&info, &rotation, error);
                                    });
    refuses_numbers<vkrope_angle_precision>(
        "info.precision", [](const vkrope_angle_precision& product, vkrope_error* error) {
            auto info = four_channels();
            std::memcpy(&info.precision, &product, sizeof product);
            vkrope_rotation* rotation = nullptr;
            return vkrope_rotation_create(&info, &rotation, error);
        });
    refuses_numbers<vkrope_section_order>(
        "info.sections.order", [](const vkrope_section_order& order, vkrope_error* error) {
            auto info = four_channels();
            auto sections = sized<vkrope_sections>();
            sections.axes = 2;
            std::memcpy(&sections.order, &order, sizeof order);
            info.sections = &sections;
            vkrope_rotation* rotation = nullptr;
            return vkrope_rotation_create(&info, &rotation, error);
        });
    const OwnedRotation rotation = rotation_of(four_channels());
    auto plan = sized<vkrope_angle_plan>();
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    refuses_numbers<vkrope_angle_source>("source", [&](const vkrope_angle_source& source,
                                                       vkrope_error* error) {
        return as_in_c(vkrope_plan_angles)(rotation.get(), number_in(source), 4, 16, &plan, error);
    });
    refuses_numbers<vkrope_element>("element",
                                    [&](const vkrope_element& element, vkrope_error* error) {
                                        return as_in_c(vkrope_plan_cos_sin_cache)(
                                            2, 4, 2, number_in(element), VK_FALSE, &plan, error);
                                    });
    refuses_numbers<vkrope_angle_source>(
        "plan.source", [&](const vkrope_angle_source& source, vkrope_error* error) {
            vkrope_angle_plan other = plan;
            std::memcpy(&other.source, &source, sizeof source);
            float memory[16];
            return vkrope_fill_angles(rotation.get(), &other, memory, sizeof memory, error);
        });

    // Enumerators of a kernel: these rules are checked before any function of the device is looked
    // up.
    auto device = sized<vkrope_device_ref>();
    device.instance = reinterpret_cast<VkInstance>(std::uintptr_t{1});
    device.physical = reinterpret_cast<VkPhysicalDevice>(std::uintptr_t{1});
    device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
    device.get_instance_proc_addr = no_functions;
    auto width = sized<vkrope_head_format>();
    width.head_dim = 4;
    vkrope_head_format values = width;
    auto info = sized<vkrope_kernel_info>();
    info.rotary_dim = 4;
    info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    info.q = &width;
    info.v = &values;
    const auto field = [&](const char* name, auto& place) {
        using Enum = std::remove_reference_t<decltype(place)>;
        const Enum before = place;
        refuses_numbers<Enum>(name, [&](const Enum& value, vkrope_error* error) {
            std::memcpy(&place, &value, sizeof value);
            vkrope_kernel* kernel = nullptr;
            return vkrope_kernel_create(&device, &info, &kernel, error);
        });
        place = before;
    };
    field("pairing", info.pairing);
    field("angles", info.angles);
    field("positions", info.positions);
    field("mapping", info.mapping);
    field("table", info.table);
    field("conversion", info.conversion);
    field("q.in", width.in);
    field("q.out", width.out);
    field("v.in", values.in);
    field("v.out", values.out);
    vkrope_pairing pairing_out = VKROPE_PAIRING_HALF_SPLIT;
    info.pairing_out = &pairing_out;
    field("pairing_out", pairing_out);

    // 0 is a number of the enum, but only vkrope_plan_angles knows what it stands for.
    info.angles = VKROPE_ANGLES_BY_DEFAULT;
    vkrope_kernel* kernel = nullptr;
    vkrope_error error;
    CHECK(vkrope_kernel_create(&device, &info, &kernel, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error,
               "angles is VKROPE_ANGLES_BY_DEFAULT: it must be vkrope_angle_plan::source, which "
               "vkrope_plan_angles chose"));
}

TEST_CASE("C: errors name the fields that C has") {
    auto unrotated = four_channels();
    const VkBool32 no = VK_FALSE;
    unrotated.rotates = &no;
    const OwnedRotation rotation = rotation_of(unrotated);
    auto plan = sized<vkrope_angle_plan>();
    vkrope_error error;
    CHECK(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "rotation.rotates is false"));
    auto in_floats = four_channels();
    in_floats.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    const OwnedRotation floats = rotation_of(in_floats);
    CHECK(vkrope_plan_angles(floats.get(), VKROPE_ANGLES_COMPUTED, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error,
               "rotation.precision is VKROPE_ANGLE_PRECISION_FLOAT32: source must be "
               "VKROPE_ANGLES_DIRECT_TEXTURE"));

    const std::string config =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1,
           "num_hidden_layers": 4,
        "max_position_embeddings": 2048, "rope_theta": 10000.0})";
    auto query = sized<vkrope_model_query>();
    std::uint32_t layer = 4;
    query.layer = &layer;
    vkrope_rotation* read = nullptr;
    CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &read, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "layer is 4: the model has only 4 layers"));
    query.layer_type = "full_attention";
    CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &query, &read, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(says(error, "query.layer is 4 and query.layer_type is given; set only one of them"));

    auto calling = four_channels();
    const OwnedRotation four = rotation_of(calling);
    CHECK(vkrope_plan_angles(four.get(), VKROPE_ANGLES_COS_SIN_CACHE, 4, 0, &plan, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what) ==
          "source is VKROPE_ANGLES_COS_SIN_CACHE: use vkrope_plan_cos_sin_cache for a cache of "
          "your own cos and sin");
    REQUIRE(vkrope_plan_angles(four.get(), VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    plan.bytes = 12;
    float memory[16];
    CHECK(vkrope_fill_angles(four.get(), &plan, memory, sizeof memory, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what) ==
          "plan.bytes is 12: it must be the size that vkrope_plan_angles returned for 4 positions");
}

TEST_CASE("C: what the caller wrote is quoted as it is, whatever it looks like") {
    auto query = sized<vkrope_model_query>();
    const std::uint32_t layer = 2;
    query.layer = &layer;
    vkrope_error error;
    vkrope_rotation* none = nullptr;
    for (const std::string path :
         {"rotation.rotates is false: a layer without RoPE has no angle table",
          "source is 9: it must be an AngleSource",
          "source is cos_sin_cache: use plan_cos_sin_cache for a cache of your own cos and sin",
          "layer is 2: the model has only 4 layers", "positions.int64 ",
          "device.enabled is 0x1f: it must hold only bits of DeviceFeature"}) {
        CHECK(vkrope_rotation_from_gguf_file(path.c_str(), &query, &none, &error) ==
              VKROPE_ERROR_INVALID_DATA);
        CHECK(std::string(error.what) == path + " does not exist");
        auto other = sized<vkrope_model_query>();
        other.tower = path.c_str();
        const std::string config =
            R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})";
        CHECK(vkrope_rotation_from_hf_config(config.data(), config.size(), &other, &none, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(says(error, path.substr(0, 20).c_str()));
    }
}
