// SPDX-License-Identifier: MIT
// Implements the functions of vkrope.h that read a model. The shared library compiles it again.
#include <memory>
#include <string>
#include <vector>

#include "base/no_throw.hpp"
#include "model/gguf/model.hpp"
#include "model/hf/config.hpp"

using namespace vkrope;

struct vkrope_model {
    RopeParams of;
    std::vector<const char*> warnings;  // of.warnings, as pointers for vkrope_rope_params
    vkrope_rope_params params;          // a view of both

    explicit vkrope_model(RopeParams&& read) : of(std::move(read)), params(of.view()) {
        for (const std::string& warning : of.warnings) warnings.push_back(warning.c_str());
        params.warnings = warnings.data();
        params.warning_count = warnings.size();
    }
};

namespace {

Result<std::unique_ptr<vkrope_model>> model_of(Result<RopeParams>&& read) {
    if (!read) return {read.status, {}};
    return {{}, std::make_unique<vkrope_model>(std::move(read.value))};
}

ModelQuery or_default(const vkrope_model_query* query) {
    return query ? *query : ModelQuery{};
}

}  // namespace

vkrope_result vkrope_model_from_hf_config(const char* json, size_t bytes,
                                          const vkrope_model_query* query, vkrope_model** model,
                                          vkrope_error* failure) {
    return make_all(
        model, "model", failure,
        [&]() -> Result<std::unique_ptr<vkrope_model>> {
            if (Status s = not_null(json, "json"); !s) return {s, {}};
            return model_of(HfConfig({json, bytes}).rotation(or_default(query)));
        });
}

vkrope_result vkrope_model_from_gguf(uint64_t file_bytes, vkrope_read_at read, void* user,
                                     const vkrope_model_query* query, vkrope_model** model,
                                     vkrope_error* failure) {
    return make_all(
        model, "model", failure,
        [&]() -> Result<std::unique_ptr<vkrope_model>> {
            if (!read) return {error(VKROPE_ERROR_INVALID_ARGUMENT, "read is null"), {}};
            const auto bound = [=](std::uint64_t offset, void* to, std::size_t bytes) {
                return read(user, offset, to, bytes);
            };
            return model_of(GgufModel(file_bytes, bound).rotation(or_default(query)));
        });
}

vkrope_result vkrope_model_from_gguf_file(const char* path, const vkrope_model_query* query,
                                          vkrope_model** model, vkrope_error* failure) {
    return make_all(
        model, "model", failure,
        [&]() -> Result<std::unique_ptr<vkrope_model>> {
            if (Status s = not_null(path, "path"); !s) return {s, {}};
            return model_of(GgufModel(path).rotation(or_default(query)));
        });
}

const vkrope_rope_params* vkrope_model_get_params(const vkrope_model* model) {
    return model ? &model->params : nullptr;
}

void vkrope_model_destroy(vkrope_model* model) {
    delete model;
}
