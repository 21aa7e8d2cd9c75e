// SPDX-License-Identifier: MIT
// Tier "model" for C.
#include "vkrope/model.hpp"

#include <climits>
#include <string>
#include <string_view>

#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

Status read_query(const vkrope_model_query* from, ModelQuery& query) {
    vkrope_model_query c;
    if (Status s = read_optional(from, "query", c); !s) return s;
    if (c.layer_number > INT_MAX)
        return error(Code::invalid_argument, "query.layer_number is %u: no model has it",
                     c.layer_number);
    if (c.layer_number != 0 && c.layer_type && *c.layer_type) {
        return error(Code::invalid_argument,
                     "query.layer_number is %u and query.layer_type is given: only one of them can "
                     "be asked for",
                     c.layer_number);
    }
    if (c.layer_type) query.layer_type = c.layer_type;
    if (c.tower) query.tower = c.tower;
    query.layer = int(c.layer_number) - 1;
    query.seq_len = c.seq_len;
    return {};
}

// Layers count from 1 in C and from 0 in the C++ message. The whole message is compared: one with
// the same beginning may contain a file name.
Status in_words_of_c(const Status& status, const ModelQuery& query) {
    const std::string start = "layer is " + std::to_string(query.layer) + ": the model has ";
    const std::string_view what = status.what;
    if (query.layer < 0 || !what.starts_with(start)) return status;
    const std::string_view layers = what.substr(start.size());
    if (layers.size() > 20 || layers.find_first_not_of("0123456789") != layers.npos) return status;
    return error(status.code, "query.layer_number is %d: the model has %s", query.layer + 1,
                 status.what + start.size());
}

Status hand_out(Result<Rotation>&& imported, const ModelQuery& query, vkrope_rotation** rotation) {
    if (!imported) return in_words_of_c(imported.status, query);
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
        return hand_out(from_hf_config({json, bytes}, asked), asked, rotation);
    });
}

vkrope_result vkrope_rotation_from_gguf(uint64_t file_bytes, vkrope_read_at read, void* user,
                                        const vkrope_model_query* query, vkrope_rotation** rotation,
                                        vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (!read) return vkrope::error(Code::invalid_argument, "read is null");
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        const auto bound = [=](std::uint64_t offset, void* to, std::size_t bytes) {
            return read(user, offset, to, bytes);
        };
        return hand_out(from_gguf(file_bytes, bound, asked), asked, rotation);
    });
}

vkrope_result vkrope_rotation_from_gguf_file(const char* path, const vkrope_model_query* query,
                                             vkrope_rotation** rotation, vkrope_error* error) {
    return making(rotation, "rotation", error, [&]() -> Status {
        if (Status s = not_null(path, "path"); !s) return s;
        ModelQuery asked;
        if (Status s = read_query(query, asked); !s) return s;
        return hand_out(from_gguf_file(path, asked), asked, rotation);
    });
}
