// SPDX-License-Identifier: MIT
#include "conformance/cases/tolerance.hpp"

namespace vkrope::conformance {
namespace {

constexpr const char* scale_names[] = {"q_scales", "k_scales", "v_scales"};

std::optional<double> read_off_by_one(std::optional<Fields> codes) {
    if (!codes) {
        return std::nullopt;
    }
    const double share = codes->required_number("off_by_one");
    if (share < 0 || share > 1) {
        wrong_file("{} is {}: it must be a share, 0 to 1", codes->name_of("off_by_one"), share);
    }
    codes->done();
    return share;
}

}  // namespace

std::optional<Tolerance> read_tolerance(std::optional<Fields> fields,
                                        std::optional<Fields> beside) {
    if (!fields) {
        return std::nullopt;
    }
    Tolerance tolerance;
    tolerance.atol = fields->number("atol").value_or(0);
    tolerance.rtol = fields->number("rtol").value_or(0);
    tolerance.off_by_one = read_off_by_one(fields->object("codes"));
    auto own_files = fields->object("atol_files");
    if (auto& files = own_files ? own_files : beside) {
        for (const TensorIndex which : every_tensor) {
            tolerance.atol_files[which] = files->optional_file(tensor_names[which]);
            tolerance.scale_atol_files[which] = files->optional_file(scale_names[which]);
        }
        files->done();
    } else if (!tolerance.off_by_one) {
        fields->required_number("atol");
    }
    fields->done();
    if (tolerance.atol < 0 || tolerance.rtol < 0) {
        wrong_file("{} is below 0", fields->name_of(tolerance.atol < 0 ? "atol" : "rtol"));
    }
    return tolerance;
}

}  // namespace vkrope::conformance
