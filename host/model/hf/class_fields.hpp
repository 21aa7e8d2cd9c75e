// SPDX-License-Identifier: MIT
// Reads the fields of a class that has defaults, and the width of a head from sizes.
#pragma once

#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/query.hpp"

namespace vkrope {

inline constexpr std::uint64_t max_size = 1 << 24;  // of any size in the files of these classes

// A size, and how messages state it, such as "dim is 5120".
struct Size {
    std::uint64_t value = 0;
    std::string said;
};

inline Size size_of(const Field& field) {
    return {whole_number(field, 1, max_size), stated(field)};
}

// Returns the width of a head.
inline Size quotient(const Size& width, const Size& heads) {
    const std::string said = width.said + " and " + heads.said;
    if (width.value % heads.value != 0)
        invalid_data("{}: their quotient, head_dim, must be whole", said);
    const std::uint64_t head_dim = width.value / heads.value;
    return {head_dim, said + ", which makes head_dim " + std::to_string(head_dim)};
}

// Returns the width of a head that is stated, computed, or both; neither: 0.
inline Size agreed(const Field& stated, const Size& computed) {
    Size own = stated ? size_of(stated) : computed;
    if (computed.value != 0 && own.value != computed.value)
        invalid_data("{} but {}: they must agree", own.said, computed.said);
    return own;
}

// Returns a width that rotates. Fails unless it is a multiple of `unit`, at least `least`.
inline std::uint32_t rotated(const Size& width, std::uint64_t unit, std::uint64_t least) {
    if (width.value % unit != 0 || width.value < least || width.value > max_head_dim) {
        invalid_data("{}: it must be a multiple of {}, from {} to {}", width.said, unit, least,
                     max_head_dim);
    }
    return std::uint32_t(width.value);
}

// Returns the scope of a field that must be an object.
inline Scope object(const Scope& outer, const Field& field) {
    if (!field.value->is_object()) refuse(field, "an object");
    return inside(outer, field);
}

// Fails if the query selects a layer of a model whose layers all have the same RoPE.
inline void require_no_layer(const Query& query, const std::string& model) {
    if (query.layer >= 0 || !query.layer_type.empty())
        invalid_argument("{}: its layers all have the same RoPE", model);
}

// Reads the fields of an object, and warns of each default that it assumes.
struct ClassFields {
    Scope scope;
    std::string owner;  // the class, in messages
    Warnings& warnings;
    std::string prefix = {};  // of its keys; they may also be without it

    std::string key(const char* name) const { return scope.prefix + prefix + name; }

    Field find(const Keys& keys) const {
        Keys own = keys;
        for (std::string& name : own.names) name.insert(0, prefix);
        const Field field = vkrope::find({scope}, own);
        return field ? field : vkrope::find({scope}, keys);
    }

    void assume(const char* name, const std::string& value) {
        warn(warnings, "{} is missing: assuming {}, the default of {}", key(name), value, owner);
    }

    // Returns a size; if the file has none, `otherwise`, unless that is 0.
    Size size(const char* name, std::uint64_t otherwise) {
        if (const Field field = find({name})) return size_of(field);
        if (otherwise == 0) invalid_data("{} is missing", key(name));
        assume(name, std::to_string(otherwise));
        return {otherwise, key(name) + " is " + std::to_string(otherwise)};
    }

    double positive(const char* name, double otherwise) {
        if (const Field field = find({name})) return positive_number(field);
        assume(name, shown_number(otherwise));
        return otherwise;
    }

    // Returns the elements of a list of `low` to `high` numbers; if the file has none, those of
    // `otherwise`, which must outlive them.
    std::vector<Field> list(const char* name, const json& otherwise, std::size_t low,
                            std::size_t high) {
        const Field field = find({name});
        if (!field) assume(name, otherwise.dump());
        return elements(field ? field : Field{key(name), &otherwise}, low, high);
    }
};

}  // namespace vkrope
