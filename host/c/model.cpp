// SPDX-License-Identifier: MIT
// Tier "model" for C.
#include "vkrope/model.hpp"

#include <climits>

#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

Status read_query(const vkrope_model_query* from, ModelQuery& query) {
    vkrope_model_query c;
    if (Status s = read_optional(from, "query", c); !s) return s;
    if (c.layer_number > INT_MAX) return error(Code::invalid_argument, "query.layer_number is %u: no model has it", c.layer_number);
    if (c.layer_type) query.layer_type = c.layer_type;
    if (c.tower) query.tower = c.tower;
    query.layer = int(c.layer_number) - 1;
    query.seq_len = c.seq_len;
    return {};
}

}  // namespace

vkrope_result vkrope_rotation_from_hf_config(const char* json, size_t bytes, const vkrope_model_query* query,
                                             vkrope_rotation** rotation, vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(json, "json"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        Result<Rotation> imported = from_hf_config({json, bytes}, asked);
        if (!imported) return imported.status;
        *rotation = wrap(std::move(imported.value)).release();
        return {};
    });
}
