// SPDX-License-Identifier: MIT
#include "conformance/cases/steps.hpp"

#include <bit>

#include "base/meaning.hpp"
#include "cli/ops_text.hpp"

namespace vkrope::conformance {
namespace {

enum class ScaleSpan { row };
constexpr tools::Choice<ScaleSpan> scale_spans[] = {{"row", ScaleSpan::row}};

void read_norm(Fields fields, StepsCase& of, Norm& norm) {
    norm.kind = meaning(fields.text("kind"), fields.name_of("kind"), tools::norm_kinds);
    norm.span = meaning(fields.text("span"), fields.name_of("span"), tools::norm_spans);
    norm.place = meaning(fields.text("place"), fields.name_of("place"), tools::norm_places);
    norm.eps = static_cast<float>(fields.required_number("eps"));
    of.files.weight = fields.optional_file("weight");
    of.files.norm_bias = fields.optional_file("bias");
    if (const auto dtype = fields.optional_text("weight_dtype")) {
        of.weight_dtype = meaning(*dtype, fields.name_of("weight_dtype"), tools::elements);
    }
    norm.weight_offset = static_cast<std::uint32_t>(
        fields.integer("weight_offset", 0, 1).value_or(0));
    fields.done();
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

void read_store_scale(Fields fields, StepsCase& of, Ops& ops) {
    const nlohmann::json* given = fields.find("given");
    const bool made = fields.find("made") != nullptr;
    if ((given != nullptr) == made) {
        wrong_file("{} and {}: one of them must be there, not both", fields.name_of("given"),
                   fields.name_of("made"));
    }
    if (made) {
        meaning(fields.text("made"), fields.name_of("made"), scale_spans);
        const double floor = fields.number("floor").value_or(0);
        if (floor < 0) {
            wrong_file("{} is {}: it must not be below 0", fields.name_of("floor"), floor);
        }
        ops.scale_floor = static_cast<float>(floor);
        ops.store_scale = fields.truth("power_of_two").value_or(false)
                              ? VKROPE_STORE_SCALE_MADE_POWER_OF_TWO
                              : VKROPE_STORE_SCALE_MADE;
    } else if (given->is_string()) {
        ops.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
        of.store_scale_file = fields.file("given");
    } else {
        ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
        of.store_scale = static_cast<float>(fields.required_number("given"));
    }
    fields.done();
}

/// Checks that the keys store_scale and out_dtype of one tensor fit together.
void check_store(const char* name, const StepsCase& of, const Ops& ops) {
    const bool alone = of.out && is_quantised(*of.out) && block_channels(*of.out) == 1;
    if (ops.store_scale != VKROPE_STORE_SCALE_NONE && !alone) {
        wrong_file("store_scale.{}: only e4m3fn, e5m2 and int8 have a scale, and out_dtype.{} {}",
                   name, name,
                   of.out ? fmt::format("is {}", tools::word_for(tools::stored_elements, *of.out))
                          : "is not given");
    }
}

}  // namespace

OfEachTensor<StepsCase> read_steps(Fields& root, const OfEachTensor<bool>& present,
                                   verify::Operation& operation) {
    OfEachTensor<StepsCase> steps;
    // Calls read(object, name, steps, ops) for each tensor named in the object `key`.
    const auto each = [&](const char* key, const auto& read) {
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
            read(*object, name, steps[which], operation.info.tensor[which].ops);
        }
        object->done();
    };
    each("hadamard", [](Fields& fields, const char* name, StepsCase&, Ops& ops) {
        const std::int64_t block = fields.required_integer(name, 1, std::int64_t{1} << 31);
        if (!std::has_single_bit(static_cast<std::uint64_t>(block))) {
            wrong_file("{} is {}: it must be a power of two", fields.name_of(name), block);
        }
        ops.hadamard = block > 1 ? static_cast<std::uint32_t>(block) : 0;
    });
    each("out_dtype", [](Fields& fields, const char* name, StepsCase& of, Ops&) {
        of.out = meaning(fields.text(name), fields.name_of(name), tools::stored_elements);
    });
    each("store_scale", [](Fields& fields, const char* name, StepsCase& of, Ops& ops) {
        read_store_scale(fields.required_object(name), of, ops);
    });
    each("bias", [](Fields& fields, const char* name, StepsCase& of, Ops&) {
        of.files.bias = fields.file(name);
    });
    each("norm", [](Fields& fields, const char* name, StepsCase& of, Ops& ops) {
        read_norm(fields.required_object(name), of, ops.norm);
    });
    each("scale", [](Fields& fields, const char* name, StepsCase&, Ops& ops) {
        ops.scale = static_cast<float>(fields.required_number(name));
    });
    each("scale_tokens", [](Fields& fields, const char* name, StepsCase& of, Ops&) {
        of.scale_tokens = fields.file(name);
    });
    each("cache", [](Fields& fields, const char* name, StepsCase& of, Ops&) {
        if (std::string_view(name) == "q") {
            unsupported("{}: the library writes K and V into a cache", fields.name_of(name));
        }
        of.cache = read_cache(fields.required_object(name));
    });
    if (const auto clip = root.number("clip")) {
        if (*clip <= 0) {
            wrong_file("clip is {}: it must be above 0", *clip);
        }
        for (TensorInfo& tensor : operation.info.tensor) {
            tensor.ops.clip = static_cast<float>(*clip);
        }
    }
    for (const TensorIndex which : every_tensor) {
        check_store(tensor_names[which], steps[which], operation.info.tensor[which].ops);
    }
    return steps;
}

}  // namespace vkrope::conformance
