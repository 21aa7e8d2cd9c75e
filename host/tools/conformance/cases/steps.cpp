// SPDX-License-Identifier: MIT
#include "conformance/cases/steps.hpp"

#include <cmath>

#include "shell/finish_text.hpp"

namespace vkrope::conformance {
namespace {

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
    each("hadamard", [](Fields& fields, const char* name, StepsCase&) {
        unsupported("{}: this version has no Hadamard step", fields.name_of(name));
    });
    each("out_dtype", [](Fields& fields, const char* name, StepsCase& of) {
        const std::string dtype = fields.text(name);
        for (const char* quantised :
             {"e4m3fn", "e5m2", "int8", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"}) {
            if (dtype == quantised) {
                unsupported("{} '{}': this version stores f32, f16 and bf16, nothing quantised",
                            fields.name_of(name), dtype);
            }
        }
        of.out = meaning(dtype, fields.name_of(name), tools::elements);
    });
    each("store_scale", [](Fields& fields, const char* name, StepsCase&) {
        wrong_file("{} without a quantised out_dtype", fields.name_of(name));
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
    return steps;
}

}  // namespace vkrope::conformance
