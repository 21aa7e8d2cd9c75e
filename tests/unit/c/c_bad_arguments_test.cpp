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
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;

TEST_CASE("C: arrays without a size are read only where their count is the rule's") {
    vkrope_error error;
    vkrope_angle_table_layout plan = {};
    const auto refuses = [&](const vkrope_rope_params& rotation, const char* words) {
        check_refused(vkrope_plan_angles(&rotation, VKROPE_ANGLES_COMPUTED, 4, 0, &plan, &error),
                      error, words);
    };
    auto rotation = four_channels();
    rotation.inv_freq_count = 16;  // a count of bytes by mistake
    refuses(rotation, "rotation.inv_freq_count 16");
    rotation = four_channels();
    rotation.inv_freq = nullptr;
    refuses(rotation, "rotation.inv_freq null");
    rotation = four_channels();
    rotation.phase_count = 2;
    refuses(rotation, "rotation.phase null");
    double inv_freq[4] = {}, phase[2] = {};
    vkrope_grid_axis axis = {};
    axis.count = 2;
    check_refused(vkrope_fold_grid(&axis, 1, inv_freq, phase, &rotation, &error), error,
                  "rotation.phase null");
    vkrope_ggml_rope rope = {};
    rope.head_dim = rope.n_dims = 8;
    check_refused(vkrope_rope_params_from_ggml(&rope, inv_freq, 3, &rotation, &error), error,
                  "count 3 4");
    rotation = four_channels();
    axis.origin = 1;
    check_refused(vkrope_fold_grid(&axis, 1, inv_freq, nullptr, &rotation, &error), error,
                  "phase null");
    REQUIRE(vkrope_fold_grid(&axis, 1, inv_freq, phase, &rotation, &error) == VKROPE_SUCCESS);
    CHECK(rotation.inv_freq == inv_freq);
    CHECK(rotation.phase == phase);
    CHECK(rotation.phase_count == 2);
    CHECK(phase[1] == 0.01);
    rotation = four_channels();
    rotation.sections.axes = 3;
    rotation.sections.order = VKROPE_SECTIONS_INTERLEAVED;
    rotation.sections.pairs[0] = rotation.sections.pairs[1] = 1;
    rotation.sections.leftover_axis = 500;
    vkrope_grid_axis three[3] = {axis, axis, axis};
    rotation.sections.pairs[1] = 0, rotation.sections.pairs[2] = 1;
    check_refused(vkrope_fold_grid(three, 3, inv_freq, phase, &rotation, &error), error,
                  "rotation.sections 500 3");
    rotation = four_channels();
    rotation.rotary_dim = 1u << 31;
    check_refused(vkrope_fold_grid(&axis, 1, inv_freq, phase, &rotation, &error), error,
                  "rotation.rotary_dim 2147483648");
    const double divisors[] = {2, 4};
    check_refused(vkrope_scale_divisors(inv_freq, 2, divisors, 1, &error), error, "divisors 1 2");
}

TEST_CASE("C: null where an object must be is an error, and nothing to destroy") {
    vkrope_error error;
    vkrope_angle_table_layout planned = {};
    vkrope_grid_axis axis = {};
    vkrope_kernel_info of_kernel = {};
    check_refused(vkrope_plan_angles(nullptr, VKROPE_ANGLES_COMPUTED, 4, 0, &planned, &error),
                  error, "rotation null");
    check_refused(
        vkrope_get_kernel_info(nullptr, &planned, nullptr, nullptr, nullptr, &of_kernel, &error),
        error, "rotation null");
    check_refused(vkrope_frame_axis(5, 24, 30, nullptr, &error), error, "axis null");
    check_refused(vkrope_rope_params_from_ggml(nullptr, nullptr, 0, nullptr, &error), error,
                  "rope null");
    check_refused(vkrope_xpos_cos_sin(nullptr, nullptr, VK_TRUE, 0, 1, nullptr, nullptr, &error),
                  error, "rotation null");
    CHECK(vkrope_grid_tokens(nullptr, 2) == 0);
    CHECK(vkrope_grid_tokens(&axis, 9) == 0);
    CHECK(vkrope_axis_of(nullptr, 63) == 0);
    CHECK(vkrope_row_channels(nullptr, 0) == 0);
    CHECK(vkrope_default_inv_freq(1, 2, nullptr, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_scale_linear(nullptr, 1, 1, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_get_queue(nullptr, nullptr) == VK_NULL_HANDLE);
    CHECK(vkrope_device_get_info(nullptr) == nullptr);
    CHECK(vkrope_device_get_ref(nullptr) == nullptr);
    CHECK(vkrope_angle_table_get(nullptr) == nullptr);
    std::uint32_t count = 1;
    CHECK(vkrope_select_device(nullptr, 1, "0", &count, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_select_device(nullptr, 0, "0", &count, &error) == VKROPE_ERROR_NO_DEVICE);
    check_refused(vkrope_device_submit(nullptr, nullptr, nullptr, nullptr, &error), error,
                  "device null");
    check_refused(vkrope_device_save_pipeline_cache(nullptr, &error), error, "device null");
    CHECK(vkrope_buffer_upload(nullptr, nullptr, 0, 0, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_host_rotation_run(nullptr, nullptr, nullptr, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(vkrope_device_list_get(nullptr, &count) == nullptr);
    CHECK(count == 0);
    CHECK(vkrope_host_rotation_bytes(nullptr, VKROPE_Q) == 0);
    CHECK(vkrope_buffer_whole(nullptr).buffer == VK_NULL_HANDLE);
    vkrope_model_destroy(nullptr);
    vkrope_kernel_destroy(nullptr);
    vkrope_arena_destroy(nullptr);
    vkrope_arena_reset(nullptr);
    vkrope_buffer_destroy(nullptr);
    vkrope_angle_table_destroy(nullptr);
    vkrope_host_rotation_destroy(nullptr);
    vkrope_device_list_destroy(nullptr);
    vkrope_device_destroy(nullptr);
}

namespace {

/// A kernel's, whose rules are checked before any function of the device is looked up.
struct KernelArguments {
    vkrope_device_ref device = vkrope_device_ref{};
    vkrope_kernel_info info = vkrope_kernel_info{};

    KernelArguments() {
        device.instance = reinterpret_cast<VkInstance>(std::uintptr_t{1});
        device.physical = reinterpret_cast<VkPhysicalDevice>(std::uintptr_t{1});
        device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
        device.get_instance_proc_addr = no_functions;
        info.pairing = VKROPE_HALF_SPLIT;
        info.rotary_dim = 4;
        info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
        info.tensor[VKROPE_Q].head_dim = info.tensor[VKROPE_V].head_dim = 4;
    }
};

// Calls with numbers that are not enumerators.
template <class Enum, class Call>
void refuses_numbers(const char* name, Call&& call) {
    for (const std::uint32_t number : no_enumerators) {
        Enum value = {};
        put(value, number);
        vkrope_error error;
        INFO(name << " " << number);
        CHECK(call(value, &error) != VKROPE_SUCCESS);
        check_names(error.what, name + (" " + std::to_string(number)));
    }
}

}  // namespace

// Under the undefined-behaviour sanitizer this also shows that none of these numbers is treated as
// an enumerator on the way.
TEST_CASE("C: numbers that are not enumerators are refused, and named") {
    vkrope_angle_table_layout plan = {};
    refuses_numbers<vkrope_pairing>(
        "rotation.pairing", [&](const vkrope_pairing& pairing, vkrope_error* error) {
            auto of = four_channels();
            of.pairing = pairing;
            REQUIRE(vkrope_plan_angles(&of, VKROPE_ANGLES_COMPUTED, 4, 0, &plan, nullptr) ==
                    VKROPE_SUCCESS);
            vkrope_kernel_info made = {};
            const vkrope_element q = VKROPE_F32;
            return vkrope_get_kernel_info(&of, &plan, &q, nullptr, nullptr, &made, error);
        });
    refuses_numbers<vkrope_angle_precision>(
        "rotation.precision", [&](const vkrope_angle_precision& product, vkrope_error* error) {
            auto of = four_channels();
            of.precision = product;
            return vkrope_plan_angles(&of, VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, error);
        });
    refuses_numbers<vkrope_section_order>(
        "rotation.sections.order", [&](const vkrope_section_order& order, vkrope_error* error) {
            auto of = four_channels();
            of.sections.axes = 2;
            of.sections.order = order;
            return vkrope_plan_angles(&of, VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, error);
        });
    const vkrope_rope_params rotation = four_channels();
    REQUIRE(vkrope_plan_angles(&rotation, VKROPE_ANGLES_DIRECT_BUFFER, 4, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    refuses_numbers<vkrope_angle_source>(
        "source", [&](const vkrope_angle_source& source, vkrope_error* error) {
            return as_in_c(vkrope_plan_angles)(&rotation, number_in(source), 4, 16, &plan, error);
        });
    refuses_numbers<vkrope_element>("element",
                                    [&](const vkrope_element& element, vkrope_error* error) {
                                        return as_in_c(vkrope_plan_cos_sin_cache)(
                                            2, 4, 2, number_in(element), VK_FALSE, &plan, error);
                                    });
    refuses_numbers<vkrope_angle_source>(
        "layout.source", [&](const vkrope_angle_source& source, vkrope_error* error) {
            vkrope_angle_table_layout other = plan;
            other.source = source;
            float memory[16];
            return vkrope_fill_angles(&rotation, &other, memory, sizeof memory, error);
        });

    // Enumerators of a kernel.
    KernelArguments of;
    auto& [device, info] = of;
    const auto field = [&](const char* name, auto& place) {
        using Enum = std::remove_reference_t<decltype(place)>;
        const Enum before = place;
        refuses_numbers<Enum>(name, [&](const Enum& value, vkrope_error* error) {
            place = value;
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
    field("tensor[0].in", info.tensor[VKROPE_Q].in);
    field("tensor[0].out", info.tensor[VKROPE_Q].out);
    field("tensor[2].in", info.tensor[VKROPE_V].in);
    field("tensor[2].out", info.tensor[VKROPE_V].out);
    field("pairing_out", info.pairing_out);
}

TEST_CASE("C: what the caller wrote is quoted as it is, whatever it looks like") {
    vkrope_model_query query = {};
    query.by_layer = VK_TRUE;
    query.layer = 2;
    vkrope_error error;
    vkrope_model* none = nullptr;
    for (const std::string path :
         {"rotation.no_rope is set: a layer without RoPE has no angle table",
          "source is 9: it must be a vkrope_angle_source",
          "source is cos_sin_cache: use vkrope_plan_cos_sin_cache for a cache of your own cos and "
          "sin",
          "layer is 2: the model has only 4 layers", "positions.int64 ",
          "device.enabled is 0x1f: it must hold only bits of vkrope_device_features"}) {
        CHECK(vkrope_model_from_gguf_file(path.c_str(), &query, &none, &error) ==
              VKROPE_ERROR_INVALID_DATA);
        CHECK(std::string(error.what).find(path) != std::string::npos);
        vkrope_model_query other = {};
        other.tower = path.c_str();
        const std::string config =
            R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})";
        CHECK(vkrope_model_from_hf_config(config.data(), config.size(), &other, &none, &error) ==
              VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(std::string(error.what).find(path.substr(0, 20)) != std::string::npos);
    }
}
