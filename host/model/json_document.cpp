// SPDX-License-Identifier: MIT
#include "model/json_document.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/import_error.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

constexpr std::size_t longest_shown = 40;

std::string printable(std::string text) {
    for (char& c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

// Reads the events of a document and rejects documents that json::parse would accept silently.
class StrictReader : public json::json_sax_t {
   public:
    bool null() override { return count(); }
    bool boolean(bool) override { return count(); }
    bool number_integer(json::number_integer_t) override { return count(); }
    bool number_unsigned(json::number_unsigned_t) override { return count(); }
    bool number_float(json::number_float_t, const json::string_t&) override { return count(); }
    bool string(json::string_t&) override { return count(); }
    bool binary(json::binary_t&) override { return count(); }

    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }

    bool key(json::string_t& name) override {
        if (!keys_.back().insert(name).second) {
            invalid_data("not usable JSON: the key \"{}\" is given twice in one object",
                         shown_key(name));
        }
        return true;
    }

    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& exception) override {
        std::string what = printable(exception.what());
        what.erase(0, what.find("] ") + 2);  // removes the parser's prefix "[json.exception.…] "
        invalid_data("not valid JSON: {}", what);
    }

   private:
    bool count() {
        if (++values_ > max_json_values)
            invalid_data("not usable JSON: more than {} values", max_json_values);
        return true;
    }

    bool enter() {
        count();
        if (keys_.size() == max_json_depth)
            invalid_data("not usable JSON: nested more than {} deep", max_json_depth);
        keys_.emplace_back();
        return true;
    }

    bool leave() {
        keys_.pop_back();
        return true;
    }

    std::vector<std::set<std::string>> keys_;  // keys of each open object; empty for arrays
    std::size_t values_ = 0;
};

// Text with null in place of each non-finite float, and the index and value of each such float.
struct WithoutLiterals {
    std::string text;
    std::vector<std::pair<std::size_t, double>> floats;
};

WithoutLiterals without_literals(std::string_view text) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::pair<std::string_view, double> literals[] = {
        {"NaN", std::numeric_limits<double>::quiet_NaN()},
        {"Infinity", infinity},
        {"-Infinity", -infinity}};
    WithoutLiterals result;
    bool in_string = false;
    std::size_t nulls = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        std::size_t length = 1;
        if (in_string) {
            length = rest[0] == '\\' && rest.size() > 1 ? 2 : 1;
            in_string = rest[0] != '"';
        } else if (rest[0] == '"') {
            in_string = true;
        } else if (rest.substr(0, 4) == "null") {
            ++nulls;
            length = 4;
        } else {
            for (const auto& [literal, value] : literals) {
                if (rest.substr(0, literal.size()) == literal) {
                    result.floats.push_back({nulls++, value});
                    result.text += "null";
                    at += literal.size();
                    length = 0;
                    break;
                }
            }
        }
        result.text += text.substr(at, length);
        at += length;
    }
    return result;
}

// Returns the document with the floats restored in place of these nulls.
json with_floats(const WithoutLiterals& source) {
    std::size_t nulls = 0, next = 0;
    return json::parse(source.text, [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::value && value.is_null()) {
            if (next < source.floats.size() && source.floats[next].first == nulls)
                value = source.floats[next++].second;
            ++nulls;
        }
        return true;
    });
}

}  // namespace

json parse_json(std::string_view text) {
    if (text.size() > max_json_bytes) {
        invalid_data("not usable JSON: it has {} bytes, but may have at most {}", text.size(),
                     max_json_bytes);
    }
    if (text.find('\0') != text.npos)  // the parser would stop there and ignore the rest
        invalid_data("not valid JSON: there is a byte of value 0 at {}", text.find('\0'));
    StrictReader reader;
    if (text.find("NaN") == text.npos && text.find("Infinity") == text.npos) {
        json::sax_parse(text, &reader);
        return json::parse(text);
    }
    const WithoutLiterals source = without_literals(text);
    json::sax_parse(source.text, &reader);
    return with_floats(source);
}

bool is_set(const json& value) {
    return !(value.is_null() || value == false || value == 0 ||
             (value.is_structured() && value.empty()));
}

std::string shown(const json& value) {
    if (value.is_structured()) return value.is_object() ? "an object" : "an array";
    if (value.is_number_float() &&
        !std::isfinite(value.get<double>())) {  // dump() would write null
        const double number = value.get<double>();
        return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    }
    // Cuts a long string before escaping it, because escaping may turn one byte into six.
    const std::string* text = value.get_ptr<const json::string_t*>();
    const json beginning = text != nullptr && text->size() > 2 * longest_shown
                               ? json(text->substr(0, 2 * longest_shown))
                               : json();
    std::string result = (beginning.is_null() ? value : beginning)
                             .dump(-1, ' ', true, json::error_handler_t::replace);
    if (result.size() > longest_shown) result = result.substr(0, longest_shown) + "...";
    return result;
}

std::string shown_key(const std::string& key) {
    return printable(key.size() > longest_shown ? key.substr(0, longest_shown) + "..." : key);
}

}  // namespace vkrope
