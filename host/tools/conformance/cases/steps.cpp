// SPDX-License-Identifier: MIT
#include "conformance/cases/steps.hpp"

#include <bit>

#include "cli/ops_text.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

enum class ScaleSpan { row };
constexpr tools::Choice<ScaleSpan> scale_spans[] = {{"row", ScaleSpan::row}};

NormCase read_norm(Fields fields) {
    NormCase norm;
    norm.kind = meaning(fields.text("kind"), fields.name_of("kind"), tools::norm_kinds);
    norm.span = meaning(fields.text("span"), fields.name_of("span"), tools::norm_spans);
    norm.place = meaning(fields.text("place"), fields.name_of("place"), tools::norm_places);
    norm.eps = fields.required_number("eps");
    norm.weight = fields.optional_file("weight");
    norm.bias = fields.optional_file("bias");
    if (const auto dtype = fields.optional_text("weight_dtype")) {
        norm.weight_dtype = meaning(*dtype, fields.name_of("weight_dtype"), tools::elements);
    }
    norm.weight_offset = static_cast<std::uint32_t>(
        fields.integer("weight_offset", 0, 1).value_or(0));
    fields.done();
    return norm;
}

CacheOutputCase read_cache(Fields fields) {
    CacheOutputCase cache;
    fields.required("slots");
    cache.slots = *fields.integers_or_file("slots");
    for (const std::int64_t dimension :
         fields.required_integers("shape", 0, std::int64_t{1} << 31)) {
        cache.shape.push_back(static_cast<std::uint64_t>(dimension));
    }
    cache.layout = fields.text("layout");
    cache.page_size = static_cast<std::uint64_t>(
        fields.required_integer("page_size", 1, std::int64_t{1} << 31));
    cache.initial = fields.file("initial");
    fields.done();
    return cache;
}

StoreScaleCase read_store_scale(Fields fields) {
    const nlohmann::json* given = fields.find("given");
    const bool made = fields.find("made") != nullptr;
    if ((given != nullptr) == made) {
        wrong_file("{} and {}: one of them must be there, not both", fields.name_of("given"),
                   fields.name_of("made"));
    }
    StoreScaleCase scale;
    if (made) {
        meaning(fields.text("made"), fields.name_of("made"), scale_spans);
        const double floor = fields.number("floor").value_or(0);
        if (floor < 0) {
            wrong_file("{} is {}: it must not be below 0", fields.name_of("floor"), floor);
        }
        scale = MadeScaleCase{floor, fields.truth("power_of_two").value_or(false)};
    } else if (given->is_string()) {
        scale = GivenScaleCase(fields.file("given"));
    } else {
        scale = GivenScaleCase(fields.required_number("given"));
    }
    fields.done();
    return scale;
}

/// Checks what two keys say together of one tensor.
void check_store(const char* name, const StepsCase& of) {
    const bool alone = of.out && is_quantised(*of.out) && block_channels(*of.out) == 1;
    if (of.store_scale && !alone) {
        wrong_file("store_scale.{}: only e4m3fn, e5m2 and int8 have a scale, and out_dtype.{} {}",
                   name, name,
                   of.out ? fmt::format("is {}", tools::word_for(tools::stored_elements, *of.out))
                          : "is not given");
    }
}

/// The file of the second set for each tensor that the object `key` names; it stands for the file
/// `first`.
template <class First>
void read_second(Fields& set, const char* key, OfEachTensor<StepsCase>& steps,
                 std::string StepsCase::*second, const First& first) {
    auto object = set.object(key);
    if (!object) {
        return;
    }
    for (const TensorIndex which : every_tensor) {
        const char* name = tensor_names[which];
        if (object->find(name) == nullptr) {
            continue;
        }
        if (first(steps[which]).empty()) {
            wrong_file("{}: there is no first one", object->name_of(name));
        }
        steps[which].*second = object->file(name);
    }
    object->done();
}

void read_second_set(Fields set, OfEachTensor<StepsCase>& steps) {
    const auto tokens = static_cast<std::uint32_t>(
        set.required_integer("first_tokens", 1, std::int64_t{1} << 31));
    for (StepsCase& of : steps) {
        of.first_set_tokens = tokens;
    }
    const auto of_norm = [](std::string NormCase::*file) {
        return [file](const StepsCase& of) { return of.norm ? (*of.norm).*file : std::string(); };
    };
    read_second(set, "bias", steps, &StepsCase::second_bias,
                [](const StepsCase& of) { return of.bias; });
    read_second(set, "weight", steps, &StepsCase::second_weight, of_norm(&NormCase::weight));
    read_second(set, "norm_bias", steps, &StepsCase::second_norm_bias, of_norm(&NormCase::bias));
    set.done();
}

/// Calls read(object, name, steps) for each tensor that the object `key` names.
template <class Read>
void for_each_tensor(Fields& root, const char* key, OfEachTensor<StepsCase>& steps,
                     const OfEachTensor<bool>& present, const Read& read) {
    auto object = root.object(key);
    if (!object) {
        return;
    }
    for (const TensorIndex which : every_tensor) {
        const char* name = tensor_names[which];
        if (object->find(name) == nullptr) {
            continue;
        }
        if (!present[which]) {
            wrong_file("{} has no tensor of that name", object->name_of(name));
        }
        read(*object, name, steps[which]);
    }
    object->done();
}

}  // namespace

OfEachTensor<StepsCase> read_steps(Fields& root, const OfEachTensor<bool>& present) {
    OfEachTensor<StepsCase> steps;
    const auto each = [&](const char* key, const auto& read) {
        for_each_tensor(root, key, steps, present, read);
    };
    each("hadamard", [](Fields& fields, const char* name, StepsCase& of) {
        const std::int64_t block = fields.required_integer(name, 1, std::int64_t{1} << 31);
        if (!std::has_single_bit(static_cast<std::uint64_t>(block))) {
            wrong_file("{} is {}: it must be a power of two", fields.name_of(name), block);
        }
        of.hadamard = static_cast<std::uint64_t>(block);
    });
    each("out_dtype", [](Fields& fields, const char* name, StepsCase& of) {
        of.out = meaning(fields.text(name), fields.name_of(name), tools::stored_elements);
    });
    each("store_scale", [](Fields& fields, const char* name, StepsCase& of) {
        of.store_scale = read_store_scale(fields.required_object(name));
    });
    each("bias",
         [](Fields& fields, const char* name, StepsCase& of) { of.bias = fields.file(name); });
    each("norm", [](Fields& fields, const char* name, StepsCase& of) {
        of.norm = read_norm(fields.required_object(name));
    });
    each("scale", [](Fields& fields, const char* name, StepsCase& of) {
        of.scale = fields.required_number(name);
    });
    each("scale_tokens", [](Fields& fields, const char* name, StepsCase& of) {
        of.scale_tokens = fields.file(name);
    });
    each("cache", [](Fields& fields, const char* name, StepsCase& of) {
        if (std::string_view(name) == "q") {
            unsupported("{}: the library writes K and V into a cache", fields.name_of(name));
        }
        of.cache = read_cache(fields.required_object(name));
    });
    if (const auto clip = root.number("clip")) {
        if (*clip <= 0) {
            wrong_file("clip is {}: it must be above 0", *clip);
        }
        for (StepsCase& of : steps) {
            of.clip = *clip;
        }
    }
    if (auto set = root.object("second_set")) {
        read_second_set(*std::move(set), steps);
    }
    for (const TensorIndex which : every_tensor) {
        check_store(tensor_names[which], steps[which]);
    }
    return steps;
}

}  // namespace vkrope::conformance
