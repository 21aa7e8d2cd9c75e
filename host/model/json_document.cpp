// SPDX-License-Identifier: MIT
#include "model/json_document.hpp"

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "model/import_error.hpp"

namespace vkrope {
namespace {

using nlohmann::json;

constexpr std::size_t longest_shown = 40;

std::string printable(std::string text) {
    for (char& c : text) {
        if (c < ' ' || c > '~') {
            c = '?';
        }
    }
    return text;
}

/// Looks at the events of a document and refuses what json::parse would accept silently.
class StrictReader : public json::json_sax_t {
   public:
    explicit StrictReader(std::string_view text) : text_(text) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(json::number_integer_t) override { return true; }
    bool number_unsigned(json::number_unsigned_t) override { return true; }
    bool number_float(json::number_float_t, const json::string_t&) override { return true; }
    bool string(json::string_t&) override { return true; }
    bool binary(json::binary_t&) override { return true; }

    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }

    bool key(json::string_t& name) override {
        last_key_ = name;
        if (!keys_.back().insert(name).second) {
            fail(Code::invalid_data, "not usable JSON: the key \"%s\" is given twice in one object", shown_key(name).c_str());
        }
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& exception) override {
        // What Python's json module writes for a float that is not finite, and JSON has no word for: it may fail a letter later.
        for (const std::string_view literal : {"NaN", "Infinity"}) {
            const std::size_t at = text_.rfind(literal, position);
            if (at != std::string_view::npos && at + literal.size() >= position) {
                fail(Code::invalid_data, "%s is %s: must be a finite number", shown_key(last_key_).c_str(), literal.data());
            }
        }
        std::string what = printable(exception.what());
        what.erase(0, what.find("] ") + 2);  // the parser's own "[json.exception.…] "
        fail(Code::invalid_data, "not valid JSON: %s", what.c_str());
    }

   private:
    bool enter() {
        if (keys_.size() == max_json_depth) {
            fail(Code::invalid_data, "not usable JSON: nested more than %zu deep", max_json_depth);
        }
        keys_.emplace_back();
        return true;
    }

    bool leave() {
        keys_.pop_back();
        return true;
    }

    std::string_view text_;
    std::string last_key_;
    std::vector<std::set<std::string>> keys_;  // of each object that is open; empty for arrays
};

}  // namespace

json parse_json(std::string_view text) {
    if (text.find('\0') != text.npos) {  // where the parser would stop, whatever follows
        fail(Code::invalid_data, "not valid JSON: there is a byte of value 0 at %llu",
             static_cast<unsigned long long>(text.find('\0')));
    }
    StrictReader reader(text);
    json::sax_parse(text, &reader);
    return json::parse(text);
}

bool is_set(const json& value) {
    return !(value.is_null() || value == false || value == 0 || (value.is_structured() && value.empty()));
}

std::string shown(const json& value) {
    if (value.is_structured()) {
        return value.is_object() ? "an object" : "an array";
    }
    std::string result = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (result.size() > longest_shown) {
        result = result.substr(0, longest_shown) + "...";
    }
    return result;
}

std::string shown_key(const std::string& key) {
    return printable(key.size() > longest_shown ? key.substr(0, longest_shown) + "..." : key);
}

std::string shown_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

}  // namespace vkrope
