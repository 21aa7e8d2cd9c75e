// SPDX-License-Identifier: MIT
// Rules for norms, biases, clip and scale.
#include <cmath>

#include "kernel/resolve/rules.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

constexpr std::uint32_t max_norm_head_dim = 4096;
constexpr float least_eps = 1e-20f, most_eps = 1;

bool is_set(const Norm& norm) noexcept {
    return norm.span != NormSpan::head || norm.place != NormPlace::before || norm.eps != 0 ||
           norm.weight != ParameterShape::none || norm.weight_offset != 0 ||
           norm.bias != ParameterShape::none || norm.round_between;
}

Status check_shape(const char* tensor, const char* field, ParameterShape shape,
                   std::uint32_t heads) noexcept {
    if (shape > ParameterShape::head_channel)
        return error(Code::invalid_argument, "%s_finish.%s is %u: no such shape", tensor, field,
                     unsigned(shape));
    if (shape != ParameterShape::head_channel || heads != 0) return {};
    return error(Code::invalid_argument, "%s_finish.%s is head_channel: %s_heads must be above 0",
                 tensor, field, tensor);
}

Status check_norm(const char* tensor, const Norm& norm, std::uint32_t head_dim,
                  std::uint32_t heads) noexcept {
    if (norm.kind > NormKind::layer)
        return error(Code::invalid_argument, "%s_finish.norm.kind is %u: no such norm", tensor,
                     unsigned(norm.kind));
    if (norm.kind == NormKind::none) {
        if (!is_set(norm)) return {};
        return error(Code::invalid_argument,
                     "%s_finish.norm.kind is none: its other fields must have their defaults",
                     tensor);
    }
    if (norm.span > NormSpan::token)
        return error(Code::invalid_argument, "%s_finish.norm.span is %u: no such span", tensor,
                     unsigned(norm.span));
    if (norm.place > NormPlace::after)
        return error(Code::invalid_argument, "%s_finish.norm.place is %u: no such place", tensor,
                     unsigned(norm.place));
    if (!(norm.eps >= least_eps && norm.eps <= most_eps))
        return error(Code::invalid_argument, "%s_finish.norm.eps is %g: it must be 1e-20 to 1",
                     tensor, double(norm.eps));
    if (Status s = check_shape(tensor, "norm.weight", norm.weight, heads); !s) return s;
    if (Status s = check_shape(tensor, "norm.bias", norm.bias, heads); !s) return s;
    if (norm.weight_offset > 1)
        return error(Code::invalid_argument,
                     "%s_finish.norm.weight_offset is %u: it must be 0 or 1", tensor,
                     norm.weight_offset);
    if (norm.weight_offset != 0 && norm.weight == ParameterShape::none)
        return error(Code::invalid_argument,
                     "%s_finish.norm.weight_offset is 1: norm.weight is none", tensor);
    if (norm.bias != ParameterShape::none && norm.kind != NormKind::layer)
        return error(Code::invalid_argument,
                     "%s_finish.norm.bias is %u: only a layer norm has a bias", tensor,
                     unsigned(norm.bias));
    if (norm.span == NormSpan::token && heads == 0)
        return error(Code::invalid_argument,
                     "%s_finish.norm.span is token: %s_heads must be above 0", tensor, tensor);
    if (head_dim > max_norm_head_dim)
        return error(Code::not_supported, "%s.head_dim is %u: a norm takes at most %u channels",
                     tensor, head_dim, max_norm_head_dim);
    return {};
}

Status check_finish(const char* tensor, const Finish& finish, std::uint32_t head_dim,
                    std::uint32_t heads) noexcept {
    if (head_dim == 0 && has_finish(finish))
        return error(Code::invalid_argument, "%s_finish is given: %s.head_dim is 0, there is no %s",
                     tensor, tensor, tensor);
    if (Status s = check_shape(tensor, "bias", finish.bias, heads); !s) return s;
    if (Status s = check_norm(tensor, finish.norm, head_dim, heads); !s) return s;
    if (!(finish.clip >= 0) || std::isinf(finish.clip))
        return error(Code::invalid_argument,
                     "%s_finish.clip is %g: it must be finite and not negative", tensor,
                     double(finish.clip));
    if (!std::isfinite(finish.scale) || finish.scale == 0)
        return error(Code::invalid_argument, "%s_finish.scale is %g: it must be finite and not 0",
                     tensor, double(finish.scale));
    if (finish.scale_call && tensor[0] != 'q')
        return error(Code::invalid_argument, "%s_finish.scale_call is true: only Q has a q_scale",
                     tensor);
    return {};
}

}  // namespace

bool has_finish(const Finish& finish) noexcept {
    return finish.bias != ParameterShape::none || finish.norm.kind != NormKind::none ||
           is_set(finish.norm) || finish.clip != 0 || finish.scale != 1 || finish.scale_call ||
           finish.scale_tokens;
}

bool has_finish(const KernelInfo& info) noexcept {
    return has_finish(info.q_finish) || has_finish(info.k_finish) || has_finish(info.v_finish);
}

Status check_finish(const KernelInfo& info) noexcept {
    if (Status s = check_finish("q", info.q_finish, info.q.head_dim, info.q_heads); !s) return s;
    if (Status s = check_finish("k", info.k_finish, info.k.head_dim, info.k_heads); !s) return s;
    if (Status s = check_finish("v", info.v_finish, info.v.head_dim, info.v_heads); !s) return s;
    if (!has_finish(info)) return {};
    return error(Code::not_supported, "q_finish, k_finish and v_finish: not in this version");
}

}  // namespace vkrope
