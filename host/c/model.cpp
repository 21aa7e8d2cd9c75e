// SPDX-License-Identifier: MIT
// Tier "model" for C.
#include "vkrope/model.hpp"

#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "c/guard.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

struct vkrope_model {
    RopeParams of;
    std::vector<const char*> warnings;  // of.warnings, in the form of vkrope_rope_params
    vkrope_rope_params params;          // a view of both
};

namespace {

Status read_query(const vkrope_model_query* from, ModelQuery& query) {
    const vkrope_model_query c = from ? *from : vkrope_model_query{};
    if (c.layer && *c.layer > INT_MAX)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "query.layer is %u: it must be below 2^31",
                     *c.layer);
    if (c.layer && c.layer_type && *c.layer_type) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "query.layer is %u and query.layer_type is given; set only one of them",
                     *c.layer);
    }
    if (c.layer_type) query.layer_type = c.layer_type;
    if (c.tower) query.tower = c.tower;
    if (c.layer) query.layer = int(*c.layer);
    if (c.pairing > VKROPE_INTERLEAVED)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "query.pairing is %u: it must be a vkrope_pairing", unsigned(c.pairing));
    query.pairing = c.pairing;
    query.seq_len = c.seq_len;
    return {};
}

Status hand_over(Result<RopeParams>&& imported, vkrope_model** model) {
    if (!imported) return imported.status;
    auto made = std::make_unique<vkrope_model>();
    made->of = std::move(imported.value);
    for (const std::string& warning : made->of.warnings) made->warnings.push_back(warning.c_str());
    made->params = made->of.view();
    made->params.warnings = made->warnings.data();
    made->params.warning_count = made->warnings.size();
    *model = made.release();
    return {};
}

}  // namespace

vkrope_result vkrope_model_from_hf_config(const char* json, size_t bytes,
                                          const vkrope_model_query* query, vkrope_model** model,
                                          vkrope_error* error) {
    return making(model, "model", error, [&]() -> Status {
        if (Status s = not_null(json, "json"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        return hand_over(from_hf_config({json, bytes}, asked), model);
    });
}

vkrope_result vkrope_model_from_gguf(uint64_t file_bytes, vkrope_read_at read, void* user,
                                     const vkrope_model_query* query, vkrope_model** model,
                                     vkrope_error* error) {
    return making(model, "model", error, [&]() -> Status {
        if (!read) return vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT, "read is null");
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        const auto bound = [=](std::uint64_t offset, void* to, std::size_t bytes) {
            return read(user, offset, to, bytes);
        };
        return hand_over(from_gguf(file_bytes, bound, asked), model);
    });
}

vkrope_result vkrope_model_from_gguf_file(const char* path, const vkrope_model_query* query,
                                          vkrope_model** model, vkrope_error* error) {
    return making(model, "model", error, [&]() -> Status {
        if (Status s = not_null(path, "path"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        return hand_over(from_gguf_file(path, asked), model);
    });
}

const vkrope_rope_params* vkrope_model_get_params(const vkrope_model* model) {
    return model ? &model->params : nullptr;
}

void vkrope_model_destroy(vkrope_model* model) {
    delete model;
}
