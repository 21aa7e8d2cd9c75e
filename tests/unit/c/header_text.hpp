// SPDX-License-Identifier: MIT
// Declarations of a public header with their comments, as a reader sees them: structs and enums
// with their members, and functions. Reads the C and C++ of host/include/vkrope, no more.
#pragma once

#include <doctest/doctest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

struct Declared {
    std::string name;
    std::string comment;  ///< one line; paragraphs are separated by '\n'
    bool first = true;    ///< false: shares its declaration and comment with the name before it
};

struct DeclaredType {
    std::string kind;  ///< struct, class or enum
    std::string name;
    std::string comment;
    std::vector<Declared> members;
};

struct Header {
    std::vector<DeclaredType> types;
    std::vector<Declared> functions;
};

class HeaderReader {
   public:
    explicit HeaderReader(const std::string& path) {
        std::ifstream stream(path);
        REQUIRE_MESSAGE(stream.good(), path);
        text_.assign(std::istreambuf_iterator<char>(stream), {});
    }

    Header read() {
        block(nullptr);
        return header_;
    }

   private:
    /// Reads declarations up to the brace that closes the block of `type`, null for a namespace.
    void block(DeclaredType* type) {
        std::string statement;
        std::vector<Declared>& names = type ? type->members : header_.functions;
        while (at_ < text_.size()) {
            if (comment(names, statement) || directive()) continue;
            const char c = text_[at_++];
            const bool ends = c == ';' || (c == ',' && type && type->kind == "enum");
            if (c == '}') {
                if (type && type->kind == "enum") end(names, statement, type);
                return;
            }
            if (c == '{')
                open(statement, names, type);
            else if (c == '(')
                statement += '(' + parentheses() + ')';
            else if (ends)
                end(names, statement, type);
            else
                statement += c;
        }
    }

    void open(std::string& statement, std::vector<Declared>& names, DeclaredType* type) {
        static const std::regex declares(
            R"((struct|class|enum)( class| \[\[nodiscard\]\])? (\w+)( : [\w:]+)?\s*$)");
        std::smatch match;
        if (std::regex_search(statement, match, declares)) {
            DeclaredType inner{match[1], match[3], before_, {}};
            before_.clear();
            block(&inner);
            header_.types.push_back(inner);
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
            if (statement.find('(') != statement.npos && text_[first] != ';')
                end(names, statement, type);
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

    /// Adds what `statement` declares, and clears it.
    void end(std::vector<Declared>& names, std::string& statement, const DeclaredType* type) {
        static const std::regex function(R"((\w+)\s*\()"),
            name(R"(([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$)");
        std::string code = statement;
        statement.clear();
        ended_ = names.size();
        std::smatch match;
        const bool skipped = code.find("typedef") != code.npos || code.find("using") != code.npos ||
                             code.find("friend") != code.npos;
        if (skipped) {
        } else if (!type || code.find('(') != code.npos) {
            if (!type && std::regex_search(code, match, function))
                names.push_back({match[1], before_});
        } else if (code.find("static") == code.npos) {
            code = std::regex_replace(code, std::regex(R"(=[^,;]*)"), "");
            const std::regex part("[^,]+");
            bool first = true;
            for (std::sregex_iterator one(code.begin(), code.end(), part), none; one != none;
                 ++one) {
                const std::string declared = one->str();
                if (!std::regex_search(declared, match, name)) continue;
                names.push_back({match[1], before_, first});
                first = false;
            }
        }
        before_.clear();
    }

    bool starts(const char* with) const {
        return text_.compare(at_, std::string(with).size(), with) == 0;
    }

    bool directive() {
        if (text_[at_] != '#') return false;
        while (text_[at_] != '\n' || text_[at_ - 1] == '\\') ++at_;
        return true;
    }

    /// Reads a comment, and gives it to what it documents.
    bool comment(std::vector<Declared>& names, const std::string& statement) {
        if (!starts("//") && !starts("/*")) return false;
        const bool line = starts("//");
        const bool documents = starts("///") || (starts("/**") && !starts("/**/"));
        const bool after = starts("///<") || starts("/**<");
        std::string text;
        if (line) {
            const std::string mark = after ? "///<" : documents ? "///" : "//";
            for (;;) {
                const std::size_t stop = text_.find('\n', at_);
                text += text_.substr(at_ + mark.size(), stop - at_ - mark.size()) + '\n';
                const std::size_t next = text_.find_first_not_of(" \n", stop);
                at_ = stop;
                if (next == text_.npos || text_.compare(next, mark.size(), mark) != 0 ||
                    (!after && text_.compare(next, 4, "///<") == 0) ||
                    text_.find("\n\n", stop) == stop)
                    break;
                at_ = next;
            }
        } else {
            const std::size_t stop = text_.find("*/", at_);
            text = text_.substr(at_ + (after ? 4 : 3), stop - at_ - (after ? 4 : 3));
            text = std::regex_replace(text, std::regex("\n *\\*"), "\n");
            at_ = stop + 2;
        }
        if (!documents) return true;
        text = one_line(text);
        const bool blank = statement.find_first_not_of(" \n") == statement.npos;
        if (!after || !blank) {
            before_ = text;
        } else {
            for (std::size_t each = ended_; each < names.size(); ++each) {
                names[each].comment = text;
            }
        }
        return true;
    }

    /// Joins the lines of each paragraph.
    static std::string one_line(const std::string& text) {
        std::string line, result;
        const auto paragraph = [&] {
            const std::size_t last = result.find_last_not_of(" \n");
            result.resize(last == result.npos ? 0 : last + 1);
            if (!result.empty()) result += '\n';
        };
        for (std::size_t at = 0; at < text.size();) {
            std::size_t stop = text.find('\n', at);
            if (stop == text.npos) stop = text.size();
            line = text.substr(at, stop - at);
            at = stop + 1;
            const std::size_t begin = line.find_first_not_of(' ');
            if (begin == line.npos) {
                paragraph();
                continue;
            }
            result += line.substr(begin) + ' ';
        }
        paragraph();
        if (!result.empty()) result.pop_back();
        return std::regex_replace(result, std::regex(" +"), " ");
    }

    std::string text_;
    std::size_t at_ = 0;
    std::string before_;     ///< comment that documents the declaration to come
    std::size_t ended_ = 0;  ///< first name of the declaration that ended last
    Header header_;
};
