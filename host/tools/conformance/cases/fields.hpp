// SPDX-License-Identifier: MIT
// Reads the objects of a case.json field by field: a value of the wrong kind is an error, and a key
// that no reader asks for is unsupported.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cli/words.hpp"
#include "conformance/suite.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// Integers in the document, or the name of the .npy file that contains them.
using Integers = std::variant<std::vector<std::int64_t>, std::string>;

class Fields {
   public:
    /// `name` is "" for the whole document, and "angles" for the field "angles" of the document.
    Fields(const nlohmann::json& object, std::string name);

    /// Returns null if the key is absent or its value is null, which mean the same in this format.
    const nlohmann::json* find(const char* key);

    const nlohmann::json& required(const char* key);
    std::optional<Fields> object(const char* key);
    Fields required_object(const char* key);

    std::string text(const char* key);
    std::optional<std::string> optional_text(const char* key);
    std::optional<double> number(const char* key);
    double required_number(const char* key);
    std::optional<std::int64_t> integer(const char* key, std::int64_t low, std::int64_t high);
    std::int64_t required_integer(const char* key, std::int64_t low, std::int64_t high);
    std::optional<bool> truth(const char* key);
    std::optional<std::vector<std::int64_t>> integers(const char* key, std::int64_t low,
                                                      std::int64_t high);
    std::vector<std::int64_t> required_integers(const char* key, std::int64_t low,
                                                std::int64_t high);
    std::optional<std::vector<double>> numbers(const char* key);

    /// Return the checked name of a file in the folder of the case; optional_file: empty if absent.
    std::string file(const char* key);
    std::string optional_file(const char* key);
    /// Returns a list in the document, or the name of the file with the list.
    std::optional<Integers> integers_or_file(const char* key);

    /// Skips a field that only people or other programs use.
    void skip(const char* key) { asked_for_.insert(key); }

    /// Throws Refusal if a key has not been read. Must be called last.
    void done() const;

    /// Returns the full name, "angles.base", for error messages.
    std::string name_of(const std::string& key) const;

   private:
    const nlohmann::json* object_;
    std::string name_;
    std::set<std::string> asked_for_;
};

/// Returns a text in the form that error messages show: printable and short.
std::string shown_text(const std::string& text);

/// Checks a relative path: the path must stay below its folder and use file names that any system
/// accepts.
std::string checked_path(const std::string& path, const std::string& name);

/// Returns the meaning of `text`, a word of the format. Throws Refusal: a word that is not in the
/// table is unsupported.
template <class T, std::size_t count>
T meaning(const std::string& text, const std::string& name,
          const tools::Choice<T> (&words)[count]) {
    for (const tools::Choice<T>& word : words) {
        if (text == word.word) {
            return word.value;
        }
    }
    unsupported("{} '{}'", name, shown_text(text));
}

}  // namespace vkrope::conformance
