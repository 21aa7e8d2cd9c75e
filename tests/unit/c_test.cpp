// SPDX-License-Identifier: MIT
// Checks the rules that only the C interface has: zero as the default, codes, counts of arrays,
// null and numbers that are not enumerators. The test links the shared library, which other
// languages call. vkrope.hpp calls the same functions, so the other tests also test them.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/c_numbers.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.h"

using namespace vkrope::test;

namespace {

vkrope_rope_params four_channels() {
    static const double frequencies[] = {1.0, 0.01};
    vkrope_rope_params rotation = {};
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.inv_freq = frequencies;
    rotation.inv_freq_count = 2;
    return rotation;
}

// Checks the error of a call that refused an argument.
void check_refused(vkrope_result result, const vkrope_error& error, const std::string& words) {
    CHECK(result == VKROPE_ERROR_INVALID_ARGUMENT);
    check_error(error, result, words);
}

PFN_vkVoidFunction VKAPI_PTR no_functions(VkInstance, const char*) {
    return nullptr;
}

}  // namespace

TEST_CASE("C: the header's version is the library's and the project's") {
    CHECK(vkrope_version() == VKROPE_VERSION);
    const std::string header = std::to_string(VKROPE_VERSION_MAJOR) + "." +
                               std::to_string(VKROPE_VERSION_MINOR) + "." +
                               std::to_string(VKROPE_VERSION_PATCH);
    CHECK(header == VKROPE_TEST_VERSION);
}

TEST_CASE("C: every code has its own text, and any other number has some text") {
    std::vector<std::string> seen;
    for (int code = VKROPE_SUCCESS; code >= VKROPE_ERROR_INTERNAL; --code) {
        const std::string words = vkrope_status_string(vkrope_result(code));
        CHECK(words != "unknown result");
        for (const std::string& other : seen) CHECK(words != other);
        seen.push_back(words);
    }
    CHECK(std::string(vkrope_status_string(vkrope_result(-12))) == "unknown result");
    CHECK(std::string(vkrope_status_string(vkrope_result(1))) == "unknown result");
}

TEST_CASE("C: an error is written completely, success clears it, and callers need not ask for it") {
    vkrope_error error = {VKROPE_ERROR_INTERNAL, VK_INCOMPLETE, "left by someone else"};
    double inv_freq[2];
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, &error) == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.code == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(error.vk_result == VK_SUCCESS);
    check_names(error.what, "base -1");
    CHECK(vkrope_default_inv_freq(-1.0, 4, inv_freq, nullptr) == VKROPE_ERROR_INVALID_ARGUMENT);

    CHECK(vkrope_default_inv_freq(10000.0, 4, inv_freq, &error) == VKROPE_SUCCESS);
    CHECK(error.code == VKROPE_SUCCESS);
    CHECK(std::string(error.what).empty());
}

TEST_CASE("C: without Vulkan there is no device, and no crash") {
    vkrope_error error;
    vkrope_device_options options = {};
    options.get_instance_proc_addr = no_functions;
    vkrope_device* device = nullptr;
    vkrope_device_list* list = nullptr;
    CHECK(vkrope_device_open(&options, &device, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(vkrope_device_list_create(&options, &list, &error) == VKROPE_ERROR_NO_DEVICE);
    CHECK(device == nullptr);
    CHECK(list == nullptr);
}

TEST_CASE("C: a count too large for any memory is an error") {
    double inv_freq[1] = {1};
    vkrope_error error;
    check_refused(vkrope_scale_linear(inv_freq, SIZE_MAX / 8, 2, &error), error, "count");
    CHECK(inv_freq[0] == 1);
}

TEST_CASE("C: arrays without a size are read only if the related count follows its rule") {
    vkrope_error error;
    vkrope_angle_table_layout plan = {};
    double inv_freq[4] = {}, phase[2] = {};
    vkrope_grid_axis axes[3] = {};
    for (vkrope_grid_axis& axis : axes) axis.count = 2;
    const auto refuses_plan = [&](const vkrope_rope_params& rotation, const char* words) {
        check_refused(vkrope_plan_angles(&rotation, VKROPE_ANGLES_COMPUTED, 4, 0, &plan, &error),
                      error, words);
    };
    const auto refuses_grid = [&](vkrope_rope_params rotation, std::uint32_t count, double* phases,
                                  const char* words) {
        check_refused(vkrope_fold_grid(axes, count, inv_freq, phases, &rotation, &error), error,
                      words);
    };
    auto rotation = four_channels();
    rotation.inv_freq_count = 16;  // the caller counted bytes
    refuses_plan(rotation, "rotation.inv_freq_count 16");
    rotation = four_channels();
    rotation.inv_freq = nullptr;
    refuses_plan(rotation, "rotation.inv_freq null");
    rotation = four_channels();
    rotation.phase_count = 2;
    refuses_plan(rotation, "rotation.phase null");
    refuses_grid(rotation, 1, phase, "rotation.phase null");
    rotation = four_channels();
    rotation.sections = {
        .order = VKROPE_SECTIONS_INTERLEAVED, .axes = 3, .pairs = {1, 0, 1}, .leftover_axis = 500};
    refuses_grid(rotation, 3, phase, "rotation.sections.leftover_axis 500 3");
    rotation = four_channels();
    rotation.rotary_dim = 1u << 31;
    refuses_grid(rotation, 1, phase, "rotation.rotary_dim 2147483648");
    axes[0].origin = 1;
    refuses_grid(four_channels(), 1, nullptr, "phase null");
    rotation = four_channels();
    REQUIRE(vkrope_fold_grid(axes, 1, inv_freq, phase, &rotation, &error) == VKROPE_SUCCESS);
    CHECK(rotation.inv_freq == inv_freq);
    CHECK(rotation.phase == phase);
    CHECK(rotation.phase_count == 2);
    const double divisors[] = {2, 4};
    check_refused(vkrope_scale_divisors(inv_freq, 2, divisors, 1, &error), error, "divisors 1 2");
    vkrope_ggml_rope rope = {};
    rope.head_dim = rope.n_dims = 8;
    check_refused(vkrope_rope_params_from_ggml(&rope, inv_freq, 3, &rotation, &error), error,
                  "count 3 4");
    const float one = 1;
    std::int32_t op_params[16] = {0, 8};
    for (const int word : {5, 6, 8}) std::memcpy(op_params + word, &one, sizeof one);
    check_refused(
        vkrope_rope_params_from_ggml_op(op_params, 8, nullptr, 0, inv_freq, 3, &rotation, &error),
        error, "count 3 4");
    CHECK(rotation.inv_freq_count == 2);
}

TEST_CASE("C: rules of a query, before the model is read") {
    const struct {
        vkrope_model_query query;
        const char* words;
    } rows[] = {
        {{.layer = 3}, "query.layer 3 query.by_layer 0"},
        {{.by_layer = VK_TRUE, .layer = UINT32_MAX}, "query.layer 4294967295 2^31"},
        {{.pairing = vkrope_pairing(9)}, "query.pairing 9"},
    };
    for (const auto& row : rows) {
        vkrope_model* model = nullptr;
        vkrope_error error;
        check_refused(vkrope_model_from_hf_config("{}", 2, &row.query, &model, &error), error,
                      row.words);
    }
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
    vkrope_requirements needs = {};
    vkrope_arena* arena = nullptr;
    const vkrope_call call = {};
    check_refused(vkrope_get_requirements(VK_NULL_HANDLE, VK_NULL_HANDLE, nullptr, &needs, &error),
                  error, "null");
    check_refused(vkrope_arena_create(nullptr, 1, &arena, &error), error, "null");
    check_refused(vkrope_record(VK_NULL_HANDLE, nullptr, &call, nullptr, &error), error, "null");
    check_refused(vkrope_frame_axis(5, 24, 30, nullptr, &error), error, "axis null");
    check_refused(vkrope_rope_params_from_ggml(nullptr, nullptr, 0, nullptr, &error), error,
                  "rope null");
    check_refused(
        vkrope_rope_params_from_ggml_op(nullptr, 8, nullptr, 0, nullptr, 0, nullptr, &error), error,
        "op_params null");
    check_refused(vkrope_xpos_cos_sin(nullptr, nullptr, VK_TRUE, 0, 1, nullptr, nullptr, &error),
                  error, "rotation null");
    vkrope_model* model = nullptr;
    check_refused(vkrope_model_from_hf_config(nullptr, 0, nullptr, &model, &error), error,
                  "json null");
    check_refused(vkrope_model_from_gguf(1, nullptr, nullptr, nullptr, &model, &error), error,
                  "read null");
    check_refused(vkrope_model_from_gguf_file(nullptr, nullptr, &model, &error), error,
                  "path null");
    CHECK(vkrope_model_get_params(nullptr) == nullptr);
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

// Calls a function with numbers that are not enumerators.
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

// tests/unit/kernel/create_rules_test.cpp tests those of a kernel, tests/failure/c_enum_test.cpp
// those of a call and of a device. Under the undefined-behaviour sanitizer this also shows that the
// library never treats these numbers as enumerators.
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
        "source",
        [&](const vkrope_angle_source& source, vkrope_error* error) {
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
}

TEST_CASE("C: a reader of a GGUF file that returns fewer bytes than it is asked for is an error") {
    std::string content = "GGUF";
    const vkrope_read_at read = [](void* user, std::uint64_t offset, void* to, std::size_t count) {
        return static_cast<std::string*>(user)->copy(static_cast<char*>(to), count,
                                                     std::size_t(offset));
    };
    vkrope_model* made = nullptr;
    vkrope_error error;
    CHECK(vkrope_model_from_gguf(100, read, &content, nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    CHECK(made == nullptr);
}

TEST_CASE("C: the image of a plan, and an upload that is refused before anything is recorded") {
    const vkrope_rope_params rotation = four_channels();
    vkrope_angle_table_layout plan = {};
    REQUIRE(vkrope_plan_angles(&rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 5, 16, &plan, nullptr) ==
            VKROPE_SUCCESS);
    VkImageCreateInfo image;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_get_angle_image_info(&plan, &image, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(image.format == plan.format);
    CHECK(image.extent.width == plan.extent.width);
    CHECK(image.usage == (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT));
    VkImageViewCreateInfo view;
    const auto handle = (VkImage)std::uintptr_t{5};
    REQUIRE_MESSAGE(vkrope_get_angle_view_info(&plan, handle, &view, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(view.image == handle);
    vkrope_device_ref device = {};
    device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
    device.get_instance_proc_addr = no_functions;
    vkrope_angle_upload upload = {};
    const auto commands = reinterpret_cast<VkCommandBuffer>(std::uintptr_t{1});
    const auto refuses = [&](const char* words) {
        check_refused(vkrope_record_angle_upload(commands, &device, &plan, &upload, &error), error,
                      words);
    };
    const auto some = (VkBuffer)std::uintptr_t{1};
    refuses("upload.staging.buffer null");
    upload.staging = {some, 8, plan.bytes};
    refuses("upload.staging.offset 8");
    upload.staging = {some, 16, plan.bytes - 1};
    refuses("upload.staging.range");
    upload.staging.range = VK_WHOLE_SIZE;
    refuses("upload.staging.range");
    upload.staging.range = plan.bytes;
    refuses("upload.image null");
    upload.image = handle;
    upload.first_line = plan.extent.height;
    refuses("upload.lines 0 upload.first_line 5 5");
    upload.first_line = 0;
    for (const VkDescriptorBufferInfo& buffer :
         {VkDescriptorBufferInfo{some, 0, 0}, {nullptr, 4, 0}, {nullptr, 0, 4}}) {
        upload.buffer = buffer;
        refuses("upload.buffer");
    }
    upload.buffer = {};
    refuses("get_instance_proc_addr");

    const auto refuses_image = [&] {
        check_refused(vkrope_get_angle_image_info(&plan, &image, &error), error, "layout.source");
        check_refused(vkrope_get_angle_view_info(&plan, handle, &view, &error), error,
                      "layout.source");
    };
    REQUIRE(vkrope_plan_angles(&rotation, VKROPE_ANGLES_DIRECT_BUFFER, 5, 0, &plan, nullptr) ==
            VKROPE_SUCCESS);
    refuses_image();
    refuses("upload.image");
    upload.image = {};
    refuses("upload.buffer.buffer null");
    upload.buffer = {some, 2, plan.bytes};
    refuses("upload.buffer.offset 2");
    upload.buffer = {some, 4, plan.bytes - 4};
    refuses("upload.buffer.range");
    REQUIRE(vkrope_plan_cos_sin_cache(2, 5, 0, VKROPE_F32, VK_FALSE, &plan, nullptr) ==
            VKROPE_SUCCESS);
    refuses("layout.source 5");
    refuses_image();
}
