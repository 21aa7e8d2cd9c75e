// SPDX-License-Identifier: MIT
// Errors of the C interface use the names of C. The C++ tiers make the sentences; host/c/status.cpp
// has a table of those that name something else in C. This test keeps the table complete: every
// sentence of these tiers, read from their source, with a name that the C++ headers declare and
// vkrope.h does not, must be in the table; and every entry must be such a sentence.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace {

using Words = std::set<std::string>;

std::string content_of(const std::filesystem::path& file) {
    std::ifstream stream(file);
    REQUIRE_MESSAGE(stream.good(), file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Code without comments, and its string literals. Adjacent literals are one, and a conversion of a
/// number is a #.
struct Source {
    std::string code;
    std::vector<std::string> literals;
};

/// Replaces each conversion of an integer in a format by #.
std::string with_numbers_as_hashes(const std::string& format) {
    std::string text;
    for (std::size_t at = 0; at < format.size(); ++at) {
        const std::size_t conversion = format[at] == '%' ? format.find_first_not_of("hlzjt", at + 1)
                                                         : format.npos;
        const bool integer = conversion != format.npos &&
                             std::string("dioux").find(format[conversion]) != std::string::npos;
        text += integer ? '#' : format[at];
        if (integer) at = conversion;
    }
    return text;
}

Source read(const std::string& text) {
    Source source;
    bool adjacent = false;  // to the previous literal
    const auto skip_to = [&text](std::size_t at, const char* end) {
        const std::size_t found = text.find(end, at);
        return found == text.npos ? text.size() : found + std::string(end).size();
    };
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (text.compare(at, 2, "//") == 0) {
            at = text.find('\n', at) == text.npos ? text.size() : text.find('\n', at);
        } else if (text.compare(at, 2, "/*") == 0) {
            at = skip_to(at, "*/");
        } else if (text.compare(at, 8, "#include") == 0) {
            at = skip_to(at, "\n");
        } else if (text.compare(at, 3, "'\"'") == 0 || text.compare(at, 4, "'\\\"'") == 0) {
            at = skip_to(at + 2, "'");
        } else if (c == '"') {
            if (!adjacent) source.literals.emplace_back();
            for (++at; at < text.size() && text[at] != '"'; ++at) {
                if (text[at] == '\\') source.literals.back() += text[at++];
                source.literals.back() += text[at];
            }
            ++at;
            adjacent = true;
        } else if (adjacent && text.compare(at, 3, "PRI") == 0) {
            source.literals.back() += 'u';  // after a %
            while (std::isalnum(static_cast<unsigned char>(text[at]))) ++at;
        } else {
            adjacent = adjacent && std::isspace(static_cast<unsigned char>(c));
            source.code += c;
            ++at;
        }
    }
    for (std::string& literal : source.literals) literal = with_numbers_as_hashes(literal);
    return source;
}

bool in_name(char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
}

/// The names in `text` for which counts(begin, end) is true.
template <class Counts>
Words names_of(const std::string& text, const Counts& counts) {
    Words names;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
        for (end = begin; end < text.size() && in_name(text[end]);) ++end;
        const bool name = end != begin && !std::isdigit(static_cast<unsigned char>(text[begin]));
        if (name && counts(begin, end)) names.insert(text.substr(begin, end - begin));
    }
    return names;
}

Words names_of(const std::string& text) {
    return names_of(text, [](std::size_t, std::size_t) { return true; });
}

const std::filesystem::path host = VKROPE_TEST_SOURCE "/host";

/// Names that C spells differently or does not have: all names, and those of fields.
struct Foreign {
    Words names, fields;
};

Foreign foreign_to_c() {
    const Words c = names_of(read(content_of(host / "include/vkrope/vkrope.h")).code);
    REQUIRE(c.count("attention_factor") == 1);
    Foreign foreign;
    for (const char* header :
         {"types", "frequencies", "rotation_from", "positions", "kernel", "runtime"}) {
        const std::string code =
            read(content_of(host / "include/vkrope" / (std::string(header) + ".hpp"))).code;
        foreign.names.merge(names_of(code));
        foreign.fields.merge(
            names_of(code, [&code](std::size_t, std::size_t end) {  // as in `bool int64 = false;`
                const std::size_t next = code.find_first_not_of(" \n", end);
                return next != code.npos &&
                       std::string(",;={").find(code[next]) != std::string::npos;
            }));
    }
    foreign.names.erase("vkrope");  // the namespace; in sentences it is the library
    std::erase_if(foreign.names, [&](const std::string& name) { return c.count(name) != 0; });
    std::erase_if(foreign.fields,
                  [&](const std::string& name) { return foreign.names.count(name) == 0; });
    return foreign;
}

/// Whether a literal has a name that C does not have. A lower-case word may be English: it is a
/// name after a dot or an arrow, at the beginning before "is" or "has", or alone, as an argument of
/// %s.
bool is_foreign(const std::string& literal, const Foreign& foreign) {
    if (foreign.fields.count(literal) != 0) return true;
    if (literal.find(' ') == literal.npos) return false;
    const Words words = names_of(literal);
    const Words fields = names_of(literal, [&literal](std::size_t begin, std::size_t end) {
        if (begin == 0)
            return literal.compare(end, 4, " is ") == 0 || literal.compare(end, 5, " has ") == 0;
        return literal[begin - 1] == '.' || literal[begin - 1] == '>';
    });
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        const bool no_english = word.find_first_of("_ABCDEFGHIJKLMNOPQRSTUVWXYZ") != word.npos;
        return foreign.names.count(word) != 0 &&
               (no_english || (fields.count(word) != 0 && foreign.fields.count(word) != 0));
    });
}

/// Sentences with such a name. Sources named scaling* are left out: they speak of function
/// parameters. C functions have parameters with the same names; the other functions are called only
/// for model files, and then their sentences speak of keys.
Words foreign_sentences(const Foreign& foreign) {
    Words sentences;
    for (const char* tier : {"kernel", "frequencies", "runtime"}) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(host / tier)) {
            if (entry.is_directory()) continue;
            if (entry.path().filename().string().starts_with("scaling") ||
                entry.path().filename() == "CMakeLists.txt")
                continue;
            for (const std::string& literal : read(content_of(entry.path())).literals) {
                if (is_foreign(literal, foreign)) sentences.insert(literal);
            }
        }
    }
    return sentences;
}

}  // namespace

TEST_CASE(
    "C: every sentence that names what C spells differently is in the table, and nothing else is") {
    const Foreign foreign = foreign_to_c();
    for (const char* name : {"AngleSource", "DeviceFeature", "plan_angles"}) {
        CHECK_MESSAGE(foreign.names.count(name) == 1, name);
    }
    const Words sentences = foreign_sentences(foreign);
    CHECK(sentences.count("source is #: it must be an AngleSource") == 1);
    const std::string source = content_of(host / "c/status.cpp");
    const std::size_t begin = source.find("renamed[] = {"), end = source.find("\n};", begin);
    REQUIRE(begin != source.npos);
    const std::vector<std::string> table = read(source.substr(begin, end - begin)).literals;
    REQUIRE(table.size() % 2 == 0);  // sentences of C++ and of C alternate
    for (const std::string& sentence : sentences) {
        CHECK_MESSAGE(std::find(table.begin(), table.end(), sentence) != table.end(),
                      "not in host/c/status.cpp: ", sentence);
    }
    for (std::size_t i = 0; i < table.size(); i += 2) {
        CHECK_MESSAGE(sentences.count(table[i]) == 1, "no such sentence: ", table[i]);
        CHECK_MESSAGE(!is_foreign(table[i + 1], foreign), "not C's words: ", table[i + 1]);
        CHECK(std::count(table[i].begin(), table[i].end(), '#') ==
              std::count(table[i + 1].begin(), table[i + 1].end(), '#'));
    }
}

TEST_CASE("C: the test above notices a sentence with a name that C spells differently") {
    const Foreign foreign = foreign_to_c();
    for (const char* literal :
         {"source is 3: it must be an AngleSource", "sections are not those of plan_angles"}) {
        CHECK_MESSAGE(is_foreign(literal, foreign), literal);
    }
    for (const char* literal : {"rotation.rotates is false", "a layer that rotates has 3",
                                "positions.int64 is given", "tokens is 3"}) {
        CHECK_MESSAGE(!is_foreign(literal, foreign), literal);
    }
    CHECK(read("f(\"a %u b\"  /* c */\n  \"d %\" PRIu64 \" e\"); // \"g\"\nh(\"i\", \"j\");")
              .literals == std::vector<std::string>{"a # b"
                                                    "d # e",
                                                    "i", "j"});
}
