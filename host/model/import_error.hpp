// SPDX-License-Identifier: MIT
// Defines the exception with which importers fail from any depth, and the only function that
// catches it: it never leaves the tier. Formats errors and warnings.
#pragma once

#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

struct ImportError {
    Status status;
};

// Returns a sentence with each {} replaced by a value.
template <class... Values>
struct Sentence {
    consteval Sentence(const char* sentence) : text(sentence) {
        std::size_t places = 0;
        for (const char* c = sentence; *c != 0; ++c) places += c[0] == '{' && c[1] == '}';
        if (places != sizeof...(Values)) throw "a sentence needs one {} for each value";
    }
    const char* text;
};

template <class... Values>
using SentenceFor = Sentence<std::type_identity_t<Values>...>;

// Returns a number as text, with at most this many significant digits.
inline std::string shown_number(double value, int digits = 9) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
}

template <class Value>
std::string value_text(const Value& value) {
    if constexpr (std::is_floating_point_v<Value>)
        return shown_number(value, 6);
    else if constexpr (std::is_integral_v<Value>)
        return std::to_string(value);
    else
        return std::string(value);
}

inline std::string filled(std::string sentence, std::initializer_list<std::string> values) {
    std::size_t at = 0;
    for (const std::string& value : values) {
        at = sentence.find("{}", at);
        sentence.replace(at, 2, value);
        at += value.size();
    }
    return sentence;
}

template <class... Values>
std::string sentence(SentenceFor<Values...> of, const Values&... values) {
    return filled(of.text, {value_text(values)...});
}

[[noreturn]] inline void fail(ErrorCode code, const std::string& what) {
    throw ImportError{error(code, "%s", what.c_str())};
}

template <class... Values>
[[noreturn]] void invalid_data(SentenceFor<Values...> of, const Values&... values) {
    fail(VKROPE_ERROR_INVALID_DATA, sentence<Values...>(of, values...));
}

template <class... Values>
[[noreturn]] void not_supported(SentenceFor<Values...> of, const Values&... values) {
    fail(VKROPE_ERROR_NOT_SUPPORTED, sentence<Values...>(of, values...));
}

// Fails because the query selects something that the model does not have.
template <class... Values>
[[noreturn]] void invalid_argument(SentenceFor<Values...> of, const Values&... values) {
    fail(VKROPE_ERROR_INVALID_ARGUMENT, sentence<Values...>(of, values...));
}

// Assumptions and ignored values, for RopeParams::warnings.
using Warnings = std::vector<std::string>;

template <class... Values>
void warn(Warnings& warnings, SentenceFor<Values...> of, const Values&... values) {
    warnings.push_back(sentence<Values...>(of, values...));
}

template <class... Values>
void warn(RopeParams& rotation, SentenceFor<Values...> of, const Values&... values) {
    rotation.warnings.push_back(sentence<Values...>(of, values...));
}

// Fails with the message of a formula that rejects the value of `name`.
inline void require(const Status& status, const std::string& name) {
    if (!status) invalid_data("{}: {}", name, status.what);
}

// Runs `work`, which reads `what`, and returns its status.
template <class Work>
Status status_of(const char* what, Work&& work) {
    try {
        work();
        return {};
    } catch (const ImportError& failure) {
        return failure.status;
    } catch (const std::bad_alloc&) {
        return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "out of memory while reading %s", what);
    } catch (const std::exception& exception) {
        return error(VKROPE_ERROR_INVALID_DATA, "cannot read %s: %s", what, exception.what());
    }
}

}  // namespace vkrope
