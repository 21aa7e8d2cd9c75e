// SPDX-License-Identifier: MIT
// vkrope.h and the C++ headers document the same thing in the same words, but for the names that a
// word has in each language. Both texts are read from the headers; a difference must be in the
// table here, with its reason. A comment that only one of them has is not compared: vkrope.h
// documents every name, the C++ headers those that do not speak for themselves.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "c_spelling.hpp"

namespace {

// Type, or type::member, or function -> why its comments differ.
const Table other_words = {
    {"Status", "C++ functions return it, C functions fill it"},
    {"Rotation::warnings", "C counts them in warning_count"},
    {"DeviceInfo", "strings of C belong to the list or the device"},
    {"HostRun::first_position", "C says with `moves` that it is given"},
};

/// Words of C -> words of C++.
Table vocabulary(const Header& c) {
    Table words;
    for (const char* file : cpp_headers) {
        const Header cpp = read_header(file);
        for (const DeclaredType& type : cpp.types) {
            const DeclaredType* in_c = find_type(c, c_type(type.name));
            if (!in_c || type.name == "Result") continue;  // Code is vkrope_result
            words[in_c->name] = type.name;
            if (type.kind != "enum") continue;
            for (const Declared& each : type.members) {
                if (const Declared* found = find_enumerator(*in_c, type.name, each.name))
                    words[found->name] = each.name;
            }
        }
    }
    for (const auto& [cpp, in_c] : functions_in_c)
        words["vkrope_" + in_c] = cpp.find(':') == cpp.npos ? cpp : cpp.substr(cpp.find(':') + 2);
    words["VKROPE_MAX_AXES"] = "max_axes";
    words["vkrope_arena"] = "DescriptorArena";
    words["vkrope_host_rotation"] = "HostRotation";
    return words;
}

const char* const enums =
    "(Code|Pairing|Element|AngleSource|AnglePrecision|PositionSource|"
    "SectionOrder|Direction|Gain|Mapping|Conversion|NormKind|NormSpan|"
    "NormPlace|ParameterShape|StoreScale|ScaleLayout|QueryScaling|Layout|"
    "DeviceFeature)::";

/// A comment without what belongs to its language.
std::string neutral(std::string text, const Table& words) {
    const auto drop = [&](const char* what, const char* by = "") {
        text = std::regex_replace(text, std::regex(what), by);
    };
    drop(" \\(\\w+\\.hpp\\)");  // where C++ declares the word before it
    drop(enums);
    drop(R"(\b(\w+)\(\))", "$1");
    drop("->", ".");
    drop(R"( ?Has no size: it never changes\.)");
    drop("[.]$");
    const std::regex word(R"(#?\b(vkrope_|VKROPE_)\w+)");
    std::string result;
    std::size_t last = 0;
    for (std::sregex_iterator each(text.begin(), text.end(), word), end; each != end; ++each) {
        const std::size_t at = std::size_t(each->position());
        result += text.substr(last, at - last);
        std::string name = each->str();
        if (name[0] == '#') name.erase(0, 1);
        const auto found = words.find(name);
        result += found != words.end() ? found->second : name.substr(7);
        last = at + std::size_t(each->length());
    }
    return result + text.substr(last);
}

/// Without what an absent value means, which each language says in its own way: 0 and null are the
/// defaults of C.
std::string without_default(std::string text) {
    text = std::regex_replace(text, std::regex("^(0|[Nn]ull|[Ee]mpty): ([^;.]|[.][0-9])*[;.] ?"),
                              "");
    text = std::regex_replace(text, std::regex("; (0|-1|null|empty): ([^;.]|[.][0-9])*"), "");
    if (!text.empty()) text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

bool same(const std::string& cpp, const std::string& c) {
    return cpp == c || without_default(cpp) == without_default(c);
}

std::string first_sentence(const std::string& text) {
    std::smatch stop;
    const bool found = std::regex_search(text, stop, std::regex(R"([.:](?=\s|$)|\n)"));
    return found ? text.substr(0, std::size_t(stop.position())) : text;
}

}  // namespace

TEST_CASE("C: vkrope.h and the C++ headers document the same thing in the same words") {
    const Header c = read_header("vkrope.h");
    const Table words = vocabulary(c);
    std::set<std::string> differ;
    int compared = 0;
    const auto compare = [&](const std::string& name, const std::string& in_cpp,
                             const std::string& in_c) {
        if (in_cpp.empty() || in_c.empty()) return;
        ++compared;
        const std::string one = neutral(in_cpp, words), other = neutral(in_c, words);
        if (same(one, other)) return;
        differ.insert(name);
        CHECK_MESSAGE(other_words.count(name) == 1, name, "\n  C++: ", one, "\n  C:   ", other);
    };
    for (const char* file : cpp_headers) {
        const Header cpp = read_header(file);
        for (const DeclaredType& type : cpp.types) {
            const DeclaredType* in_c = find_type(c, c_type(type.name));
            if (!in_c || type.name == "Result") continue;  // Code is vkrope_result
            compare(type.name, type.comment, in_c->comment);
            for (const Declared& each : type.members) {
                const Declared* found = type.kind == "enum"
                                            ? find_enumerator(*in_c, type.name, each.name)
                                            : find_member(*in_c, each.name);
                // Names after the first one of a declaration have "as" the first in C.
                if (found && each.first)
                    compare(type.name + "::" + each.name, each.comment, found->comment);
            }
        }
        std::set<std::string> overloads;
        for (const Declared& function : cpp.functions) {
            if (!overloads.insert(function.name).second) continue;
            const auto renamed = functions_in_c.find(function.name);
            const std::string& wanted = renamed == functions_in_c.end() ? function.name
                                                                        : renamed->second;
            for (const Declared& each : c.functions) {
                if (each.name == "vkrope_" + wanted)
                    compare(function.name, first_sentence(function.comment),
                            first_sentence(each.comment));
            }
        }
    }
    CHECK(compared > 250);
    for (const auto& [name, reason] : other_words)
        CHECK_MESSAGE(differ.count(name) == 1, name, ": the comments are the same");
}
