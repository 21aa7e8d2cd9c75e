// SPDX-License-Identifier: MIT
// vkrope.h offers everything that the C++ headers offer, under the same names. The functions and
// fields are read from the headers; a difference must be in a table here, with its reason.
#include <doctest/doctest.h>

#include <regex>
#include <set>
#include <string>

#include "c_spelling.hpp"

namespace {

using Words = std::set<std::string>;

/// The text from `open` to the brace that closes it.
std::string body(const std::string& text, std::size_t open) {
    int depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        if (text[at] == '{') ++depth;
        if (text[at] == '}' && --depth == 0) return text.substr(open + 1, at - open - 1);
    }
    return "";
}

/// Without what stands in braces or parentheses, and with ';' for the body of a function.
std::string outside_braces(const std::string& text) {
    std::string result;
    int braces = 0, parentheses = 0;
    for (const char c : text) {
        if (c == '(' && braces == 0) ++parentheses;
        if (c == '{' && parentheses == 0) ++braces;
        if (braces == 0 && parentheses == 0) result += c;
        if (c == ')' && braces == 0 && --parentheses == 0) result += "()";
        if (c == '}' && parentheses == 0 && --braces == 0) result += ';';
    }
    return result;
}

Words functions_of_c(const std::string& text) {
    Words functions;
    const std::regex name(R"(\bvkrope_\w+(?=\s*\())");
    for (std::sregex_iterator each(text.begin(), text.end(), name), end; each != end; ++each)
        functions.insert(each->str().substr(7));
    return functions;
}

/// Free functions, and public methods as Class::method.
Words functions_of_cpp(const std::string& text) {
    Words functions;
    const std::regex name(R"(([A-Za-z_]\w*)\s*\(\))");
    const auto collect = [&](const std::string& code, const std::string& prefix) {
        for (std::sregex_iterator each(code.begin(), code.end(), name), end; each != end; ++each)
            functions.insert(prefix + (*each)[1].str());
        functions.erase("size_t");  // the result of a std::function
    };
    const std::size_t space = text.find("namespace vkrope {");
    collect(outside_braces(body(text, text.find('{', space))), "");
    const std::regex type(R"(class (\w+) \{)");
    for (std::sregex_iterator each(text.begin(), text.end(), type), end; each != end; ++each) {
        std::string inside = body(text, text.find('{', std::size_t(each->position())));
        inside = inside.substr(0, inside.find("private:"));
        const std::string name_of_class = (*each)[1];
        collect(outside_braces(inside), name_of_class + "::");
        functions.erase(name_of_class + "::" + name_of_class);  // constructors
        functions.erase(name_of_class + "::impl");              // for the library itself
    }
    return functions;
}

// C++ functions that C does not have -> why.
const Table functions_without_c = {
    {"own", "owners are of C++"},
    {"same_format", "C compares the fields of two vkrope_head_format"},
    {"is_made", "C compares with VKROPE_STORE_SCALE_MADE: scales that are made come last"},
    {"select_device", "vkrope_device_options::select does it"},
    {"HostRotation::buffers", "an application with buffers of its own calls vkrope_record"},
    {"HostRotation::angle_plan", "same reason as HostRotation::buffers"},
    {"Buffer::handle", "vkrope_buffer_whole gives the handle"},
};

// C++ types that C does not have -> why.
const Table types_without_c = {
    {"Result", "a function of C returns vkrope_result and takes a pointer to the value"},
    {"Destroyer", "owners are of C++"},
    {"Message", "the arguments of vkrope_message_callback"},
    {"Buffers", "the result of HostRotation::buffers"},
};

// Enumerations that C does not have -> why.
const Table enums_without_c = {
    {"TensorIndex", "C has a field for each of Q, K and V"},
};

// Enumerators that only C has -> why. Those that end in _MAX_ENUM widen their type.
const Table enumerators_without_cpp = {
    {"VKROPE_ERROR_INTERNAL", "a C++ exception that reached the boundary of C"},
};

// Fields that C spells differently, or has not -> why. A few arrays are flat in C.
const Table fields_in_c = {
    {"Rotation::finish", "vkrope_rotation_get_finish gives it"},
    {"AnglePlan::sections", "section_order, axes, section_pairs, leftover_axis: a plan is copied"},
    {"TensorInfo::heads", "vkrope_kernel_info has q_heads, k_heads and v_heads"},
    {"TensorInfo::ops", "vkrope_kernel_info has q_finish, k_finish and v_finish"},
};

// Arrays for Q, K and V -> what stands behind q, k and v in the names of the three fields of C.
const Table arrays_of_tensors = {
    {"KernelInfo::tensor", ""},
    {"ParameterPlan::tensor", ""},
    {"ParameterSources::tensor", ""},
    {"Call::in", "_in"},
    {"Call::out", "_out"},
    {"Call::scale_tokens", "_scale_tokens"},
    {"Call::scales_out", "_scales_out"},
};

}  // namespace

TEST_CASE("C: every function of the C++ headers is in vkrope.h, or has a reason not to be") {
    const Words c = functions_of_c(header_text(headers + "vkrope.h"));
    REQUIRE(c.count("kernel_create") == 1);
    Words known;
    for (const char* file : {"types.hpp", "frequencies.hpp", "rotation_from.hpp", "positions.hpp",
                             "kernel.hpp", "runtime.hpp", "model.hpp"}) {
        known.merge(functions_of_cpp(header_text(headers + file)));
    }
    REQUIRE(known.count("record") == 1);
    REQUIRE(known.count("AngleTable::reach") == 1);
    for (const std::string& name : known) {
        if (functions_without_c.count(name) != 0) continue;
        const auto renamed = functions_in_c.find(name);
        const std::string& wanted = renamed == functions_in_c.end() ? name : renamed->second;
        CHECK_MESSAGE(c.count(wanted) == 1, name, ": no vkrope_", wanted);
    }
    for (const Table& table : {functions_in_c, functions_without_c}) {
        for (const auto& [name, other] : table)
            CHECK_MESSAGE(known.count(name) == 1, name, ": the C++ headers have no such function");
    }
}

TEST_CASE("C: every field of the C++ structs is in vkrope.h, or has a reason not to be") {
    const std::vector<DeclaredType> c = read_header("vkrope.h");
    Words seen;
    int compared = 0;
    for (const char* file : cpp_headers) {
        for (const DeclaredType& type : read_header(file)) {
            if (type.kind != "struct") continue;
            if (types_without_c.count(type.name) != 0) {
                seen.insert(type.name);
                continue;
            }
            const DeclaredType* in_c = find_type(c, c_type(type.name));
            CHECK_MESSAGE(in_c, type.name, ": no ", c_type(type.name));
            if (!in_c) continue;
            CHECK_MESSAGE(!type.members.empty(), type.name);
            for (const std::string& field : type.members) {
                const std::string name = type.name + "::" + field;
                const auto array = arrays_of_tensors.find(name);
                if (array != arrays_of_tensors.end()) {
                    seen.insert(name);
                    for (const char* tensor : {"q", "k", "v"})
                        CHECK_MESSAGE(find_member(*in_c, tensor + array->second), name,
                                      ": C has none for ", tensor);
                } else if (fields_in_c.count(name) != 0) {
                    seen.insert(name);
                    CHECK_MESSAGE(!find_member(*in_c, field), name, ": C has it");
                } else {
                    CHECK_MESSAGE(find_member(*in_c, field), name, ": C has no such field");
                }
                ++compared;
            }
        }
    }
    CHECK(compared > 200);
    for (const Table& table : {fields_in_c, types_without_c, arrays_of_tensors}) {
        for (const auto& [name, reason] : table)
            CHECK_MESSAGE(seen.count(name) == 1, name, ": the C++ headers have no such thing");
    }
}

TEST_CASE("C: vkrope.h and the C++ headers have the same enumerators") {
    const std::vector<DeclaredType> c = read_header("vkrope.h");
    Words seen, known_enums, skipped;
    for (const char* file : cpp_headers) {
        for (const DeclaredType& type : read_header(file)) {
            if (type.kind != "enum") continue;
            if (enums_without_c.count(type.name) != 0) {
                skipped.insert(type.name);
                continue;
            }
            const DeclaredType* in_c = find_type(c, c_type(type.name));
            CHECK_MESSAGE(in_c, type.name, ": no ", c_type(type.name));
            if (!in_c) continue;
            known_enums.insert(in_c->name);
            CHECK_MESSAGE(type.members.size() >= 2, type.name);
            for (const std::string& each : type.members) {
                const std::string* found = find_enumerator(*in_c, type.name, each);
                CHECK_MESSAGE(found, type.name, "::", each, ": C has no such enumerator");
                if (found) seen.insert(*found);
            }
        }
    }
    CHECK(seen.size() > 50);
    for (const auto& [name, reason] : enums_without_c)
        CHECK_MESSAGE(skipped.count(name) == 1, name, ": the C++ headers have no such enumeration");
    for (const DeclaredType& type : c) {
        if (type.kind != "enum") continue;
        CHECK_MESSAGE(known_enums.count(type.name) == 1, type.name, ": no enum of C++");
        for (const std::string& each : type.members) {
            if (each.find("_MAX_ENUM") != std::string::npos) continue;
            if (enumerators_without_cpp.count(each) != 0) seen.insert(each);
            CHECK_MESSAGE(seen.count(each) == 1, each, ": no enumerator of C++");
        }
    }
    for (const auto& [name, reason] : enumerators_without_cpp)
        CHECK_MESSAGE(seen.count(name) == 1, name, ": vkrope.h has no such enumerator");
}
