// SPDX-License-Identifier: MIT
// Tier "model" for C.
#include "vkrope/model.hpp"

#include <climits>
#include <string>
#include <string_view>

#include "c/handles.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

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

Status hand_over(Result<Rotation>&& imported, vkrope_rotation** rotation) {
    if (!imported) return imported.status;
    *rotation = wrap(std::move(imported.value)).release();
    return {};
}

}  // namespace

vkrope_result vkrope_rotation_from_hf_config(const char* json, size_t bytes,
                                             const vkrope_model_query* query,
                                             vkrope_rotation** rotation, vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(json, "json"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        return hand_over(from_hf_config({json, bytes}, asked), rotation);
    });
}

vkrope_result vkrope_rotation_from_gguf(uint64_t file_bytes, vkrope_read_at read, void* user,
                                        const vkrope_model_query* query, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (!read) return vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT, "read is null");
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        const auto bound = [=](std::uint64_t offset, void* to, std::size_t bytes) {
            return read(user, offset, to, bytes);
        };
        return hand_over(from_gguf(file_bytes, bound, asked), rotation);
    });
}

vkrope_result vkrope_rotation_from_gguf_file(const char* path, const vkrope_model_query* query,
                                             vkrope_rotation** rotation, vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(path, "path"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        return hand_over(from_gguf_file(path, asked), rotation);
    });
}
