// SPDX-License-Identifier: MIT
#include "model/hf/rotary_dim.hpp"

#include <algorithm>
#include <cmath>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {
namespace {

Field share_of_head(const Source& source, std::vector<std::string>& warnings) {
    if (Field own = source.by_type() ? partial_rotary_factor({source.section.scope()}) : Field()) {
        warn_unless_of_a_type(source, own, {"partial_rotary_factor"}, "partial_rotary_factor",
                              warnings);
        return own;
    }
    return partial_rotary_factor(source.both());
}

double portion(const Field& factor) {
    const double value = positive_number(factor);
    if (value > 1) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be at most 1", factor.name.c_str(),
             shown(*factor.value).c_str());
    }
    return value;
}

/// int(head_dim * factor), as transformers computes it.
std::uint32_t partial(std::uint32_t head_dim, const Field& factor) {
    return std::uint32_t(head_dim * portion(factor));
}

void require_valid(const RotaryDim& window, const Head& head, const Field& field) {
    const std::uint32_t value = window.rotary_dim;
    if (value >= 2 && value <= head.head_dim && value % 2 == 0) {
        return;
    }
    const std::string reason = field ? field.name + " is " + shown(*field.value) + ": "
                                     : std::string();
    fail(VKROPE_ERROR_INVALID_DATA, "%srotary_dim becomes %u: it must be even, 2 to head_dim, which is %u",
         reason.c_str(), value, head.head_dim);
}

/// The shares of a head that the file states, of any layer type.
std::vector<double> shares_of(const Source& source, const Field& factor) {
    std::vector<double> shares = source.shares;
    if (factor) {
        shares.push_back(portion(factor));
    }
    for (const auto& [type, section] : source.sections.by_type) {
        if (const Field own = partial_rotary_factor({section.scope()})) {
            shares.push_back(portion(own));
        }
    }
    return shares;
}

/// Whether `width` channels are one of `shares` of a row that some layer of the file has: of this
/// layer, of a head of another kind of layer, or of values.
bool explained(const Source& source, std::uint32_t row, const std::vector<double>& shares,
               std::uint64_t width) {
    std::vector<double> rows = {double(row)};
    for (const char* name : {"head_dim", "global_head_dim", "swa_head_dim", "qk_head_dim",
                             "linear_head_dim", "linear_key_head_dim", "v_head_dim"}) {
        const Field field = find_first(source.top, {name});
        if (field && field.value->is_number()) rows.push_back(field.value->get<double>());
    }
    const auto explains = [&](double share) {
        return std::any_of(rows.begin(), rows.end(), [&](double channels) {
            return std::lround(share * channels) == long(width);
        });
    };
    return std::any_of(shares.begin(), shares.end(), explains);
}

/// Latent attention rotates all of qk_rope_head_dim. A given width must be that, and a share that
/// of some row; in a model with other kinds of layers both may be of those.
void agree_with_latent(const Source& source, const Field& given, const Field& factor,
                       const Head& head, RotaryDim& window, std::vector<std::string>& warnings) {
    window.turning_pairs = window.rotary_dim / 2;
    const std::uint32_t row = head.q_rotary_offset + head.head_dim;
    const auto ignore = [&](const Field& field, const std::string& because) {
        warnings.push_back("ignored key " + stated(field) + ": " + because);
    };
    if (given && whole_number(given, 2, max_head_dim) != window.rotary_dim) {
        if (!source.mixed && !explained(source, row, shares_of(source, factor),
                                        whole_number(given, 2, max_head_dim))) {
            fail(VKROPE_ERROR_INVALID_DATA,
                 "%s is %s but qk_rope_head_dim, whose channels are all rotated, is %u: they must "
                 "agree",
                 given.name.c_str(), shown(*given.value).c_str(), window.rotary_dim);
        }
        ignore(given, "qk_rope_head_dim is what turns in layers with latent attention");
    }
    if (!factor || *factor.value == 1) {
        return;
    }
    const bool of_row = std::lround(portion(factor) * row) == long(window.rotary_dim);
    if (!of_row && !source.mixed && !explained(source, row, {portion(factor)}, window.rotary_dim)) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "%s is %s but qk_rope_head_dim, whose channels are all rotated, is %u, in query "
             "rows of %u: they must agree",
             factor.name.c_str(), shown(*factor.value).c_str(), window.rotary_dim, row);
    }
    ignore(factor, of_row ? "it says of a query row of " + std::to_string(row) +
                                " what qk_rope_head_dim does"
                          : "it is of other rows than those with latent attention");
}

/// The window of a proportional rotation is the whole head; its slower pairs do not rotate.
void agree_with_proportional(const Field& given, const Field& factor, const Head& head,
                             RotaryDim& window, std::vector<std::string>& warnings) {
    window.share = factor ? portion(factor) : 1;
    window.turning_pairs = std::uint32_t(head.head_dim * window.share) / 2;
    if (window.turning_pairs == 0) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it rotates no pair of a head_dim of %u",
             factor.name.c_str(), shown(*factor.value).c_str(), head.head_dim);
    }
    if (!given) {
        return;
    }
    const std::uint64_t width = whole_number(given, 2, max_head_dim);
    if (width != 2 * window.turning_pairs && width != head.head_dim) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "%s is %llu but rope_type proportional turns %u channels in a window of %u: they "
             "must agree",
             given.name.c_str(), static_cast<unsigned long long>(width), 2 * window.turning_pairs,
             head.head_dim);
    }
    warnings.push_back("ignored key " + given.name + ": rope_type proportional does not use it");
}

std::uint32_t assumed_rotary_dim(const Source& source, const Head& head,
                                 std::vector<std::string>& warnings) {
    if (source.model.type.rotary_dim != 0) {
        warnings.push_back(source.model.assumed("rotary_dim", source.model.type.rotary_dim));
        return source.model.type.rotary_dim;
    }
    if (source.model.type.partial_rotary_factor != 1) {
        warnings.push_back(
            source.model.assumed("partial_rotary_factor", source.model.type.partial_rotary_factor));
    }
    return std::uint32_t(head.head_dim * source.model.type.partial_rotary_factor);
}

}  // namespace

RotaryDim read_rotary_dim(const Source& source, const Head& head, const std::string& rope_type,
                          std::vector<std::string>& warnings) {
    RotaryDim window;
    const nlohmann::json listed = source.share.value_or(0);
    const Field single = source.share ? find_first(source.both(), {"partial_rotary_factor"})
                                      : Field();
    if (single && std::find(source.shares.begin(), source.shares.end(), portion(single)) ==
                      source.shares.end()) {
        warnings.push_back("ignored key " + stated(single) +
                           ": partial_rotary_factors is read, which has no such share");
    }
    const Field factor = source.share ? Field{"partial_rotary_factors[]", &listed}
                                      : share_of_head(source, warnings);
    const Field given = source.model.type.tail_window
                            ? find(source.top, {"qk_rope_head_dim"})
                            : find(source.top, {"rotary_dim", "attn_rotary_emb"});
    if (head.latent || rope_type == "proportional") {
        window.rotary_dim = head.head_dim;
        require_valid(window, head, {});
        head.latent ? agree_with_latent(source, given, factor, head, window, warnings)
                    : agree_with_proportional(given, factor, head, window, warnings);
        return window;
    }
    if (given) {
        window.rotary_dim = std::uint32_t(whole_number(given, 2, max_head_dim));
    }
    if (given && !factor) {
        require_valid(window, head, given);
    }
    if (factor) {
        const std::uint32_t product = partial(head.head_dim, factor);
        if (given && product != window.rotary_dim) {
            if (!explained(source, head.head_dim, shares_of(source, factor), window.rotary_dim)) {
                fail(VKROPE_ERROR_INVALID_DATA, "%s is %u but %s asks for %u: they must agree",
                     given.name.c_str(), window.rotary_dim, factor.name.c_str(), product);
            }
            warnings.push_back("ignored key " + stated(given) + ": it is of other layers; " +
                               factor.name + " is read");
        }
        window.rotary_dim = product;
        require_valid(window, head, factor);
    }
    if (!given && !factor) {
        window.rotary_dim = assumed_rotary_dim(source, head, warnings);
        require_valid(window, head, {});
    }
    window.turning_pairs = window.rotary_dim / 2;
    return window;
}

}  // namespace vkrope
