// SPDX-License-Identifier: MIT
#include "io/npy_dict.hpp"

#include <fmt/format.h>

#include <charconv>

namespace vkrope::npy {
namespace {

class DictParser {
   public:
    explicit DictParser(std::string_view text) : text_(text) {}

    Dict parse() {
        Dict dict;
        bool have_descr = false, have_order = false, have_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = string_literal("a key");
            expect(':');
            if (key == "descr") {
                once(have_descr, key);
                dict.descr = string_literal("descr");
            } else if (key == "fortran_order") {
                once(have_order, key);
                dict.fortran_order = boolean();
            } else if (key == "shape") {
                once(have_shape, key);
                dict.shape = tuple();
            } else {
                throw Error(fmt::format(
                    "the header has the key '{}'; it may have descr, fortran_order and shape",
                    key));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!have_descr || !have_order || !have_shape) {
            throw Error(fmt::format("the header lacks the key {}", !have_descr   ? "descr"
                                                                   : !have_order ? "fortran_order"
                                                                                 : "shape"));
        }
        skip_space();
        if (at_ != text_.size()) throw Error("the header goes on after its dict");
        return dict;
    }

   private:
    static void once(bool& seen, const std::string& key) {
        if (seen) throw Error(fmt::format("the header has the key {} twice", key));
        seen = true;
    }

    void skip_space() {
        while (at_ < text_.size() &&
               std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }

    bool accept(char wanted) {
        skip_space();
        if (at_ < text_.size() && text_[at_] == wanted) {
            ++at_;
            return true;
        }
        return false;
    }

    void expect(char wanted) {
        if (!accept(wanted)) {
            throw Error(fmt::format(
                "the header is not a dict as numpy writes it: '{}' is missing at byte {}", wanted,
                at_));
        }
    }

    std::string string_literal(const char* what) {
        skip_space();
        const char quote = at_ < text_.size() ? text_[at_] : '\0';
        if (quote != '\'' && quote != '"') {
            throw Error(fmt::format(
                "the header is not a dict as numpy writes it: {} must be a string, at byte {}",
                what, at_));
        }
        const std::size_t begin = at_ + 1;
        const std::size_t end = text_.find(quote, begin);
        const std::string_view content = text_.substr(
            begin, end == std::string_view::npos ? end : end - begin);
        if (end == std::string_view::npos ||
            content.find_first_of("\\\n") != std::string_view::npos) {
            throw Error(fmt::format(
                "the header has a string that does not end, or has escapes, at byte {}", at_));
        }
        at_ = end + 1;
        return std::string(content);
    }

    bool boolean() {
        skip_space();
        for (const bool value : {false, true}) {
            const std::string_view word = value ? "True" : "False";
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return value;
            }
        }
        throw Error(
            fmt::format("fortran_order must be True or False, at byte {} of the header", at_));
    }

    std::vector<std::uint64_t> tuple() {
        std::vector<std::uint64_t> values;
        bool comma = true;
        if (!accept('('))
            throw Error(fmt::format("shape must be a tuple, at byte {} of the header", at_));
        while (!accept(')')) {
            if (!comma) {
                throw Error(
                    fmt::format("shape is not a tuple of numbers, at byte {} of the header", at_));
            }
            if (values.size() == max_rank)
                throw Error(fmt::format("shape has more than {} dimensions", max_rank));
            values.push_back(number());
            comma = accept(',');
        }
        if (values.size() == 1 && !comma)
            throw Error("shape is a number in parentheses, not a tuple");
        return values;
    }

    std::uint64_t number() {
        skip_space();
        std::uint64_t value = 0;
        const char* begin = text_.data() + at_;
        const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
        const auto digits = std::size_t(end - begin);
        if (problem == std::errc::result_out_of_range)
            throw Error("shape has a dimension of 2^64 or more");
        if (problem != std::errc() || (digits > 1 && *begin == '0')) {
            throw Error(
                fmt::format("shape has a dimension that is not a decimal number above or equal to "
                            "0, at byte {} of the header",
                            at_));
        }
        at_ += digits;
        return value;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

Dict parse_dict(std::string_view text) {
    return DictParser(text).parse();
}

}  // namespace vkrope::npy
