// SPDX-License-Identifier: MIT
// Structs and enums of a public header with their members. Reads the C and C++ of
// host/include/vkrope, no more.
#pragma once

#include <doctest/doctest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

struct DeclaredType {
    std::string kind;  ///< struct, class or enum
    std::string name;
    std::vector<std::string> members;
};

/// The text of a header without comments and directives.
inline std::string header_text(const std::string& path) {
    std::ifstream stream(path);
    REQUIRE_MESSAGE(stream.good(), path);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    text = std::regex_replace(text, std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"), "");
    return std::regex_replace(text, std::regex("//[^\n]*|\n *#([^\n]*\\\\\n)*[^\n]*"), "");
}

class HeaderReader {
   public:
    explicit HeaderReader(const std::string& path) : text_(header_text(path)) {}

    std::vector<DeclaredType> read() {
        block(nullptr);
        return types_;
    }

   private:
    /// Reads declarations up to the brace that closes the block of `type`, null for a namespace.
    void block(DeclaredType* type) {
        std::string statement;
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            const bool ends = c == ';' || (c == ',' && type && type->kind == "enum");
            if (c == '}') {
                if (type && type->kind == "enum") end(statement, type);
                return;
            }
            if (c == '{')
                open(statement, type);
            else if (c == '(')
                statement += '(' + parentheses() + ')';
            else if (ends)
                end(statement, type);
            else
                statement += c;
        }
    }

    void open(std::string& statement, DeclaredType* type) {
        static const std::regex declares(
            R"((struct|class|enum)( class| \[\[nodiscard\]\])? (\w+)( : [\w:]+)?\s*$)");
        std::smatch match;
        if (std::regex_search(statement, match, declares)) {
            DeclaredType inner{match[1], match[3], {}};
            block(&inner);
            types_.push_back(inner);
            statement = text_[at_] == ';' ? "" : "typedef ";  // C: the name follows
        } else if (statement.find('(') == statement.npos && !type &&
                   statement.find('=') == statement.npos) {
            statement.clear();  // a namespace, or extern "C"
            block(nullptr);
        } else {
            int depth = 1;
            for (; depth != 0; ++at_) depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
            // The body of a function ends its declaration; an initialiser does not.
            const std::size_t first = text_.find_first_not_of(" \n", at_);
            if (statement.find('(') != statement.npos && text_[first] != ';') end(statement, type);
        }
    }

    std::string parentheses() {
        std::string inside;
        for (int depth = 1; at_ < text_.size(); ++at_) {
            depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
            if (depth == 0) break;
            inside += text_[at_];
        }
        ++at_;
        return inside;
    }

    /// Adds the members that `statement` declares, and clears it.
    static void end(std::string& statement, DeclaredType* type) {
        static const std::regex name(R"(([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$)");
        std::string code;
        code.swap(statement);
        for (const char* other : {"typedef", "using", "friend", "static", "("}) {
            if (!type || code.find(other) != code.npos) return;
        }
        code = std::regex_replace(code, std::regex(R"(=[^,;]*)"), "");
        const std::regex part("[^,]+");
        for (std::sregex_iterator one(code.begin(), code.end(), part), none; one != none; ++one) {
            const std::string declared = one->str();
            std::smatch match;
            if (std::regex_search(declared, match, name)) type->members.push_back(match[1]);
        }
    }

    std::string text_;
    std::size_t at_ = 0;
    std::vector<DeclaredType> types_;
};
