// SPDX-License-Identifier: MIT
// Reads and checks the keys of one architecture. An error names key, value, type and rule.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/gguf/file.hpp"
#include "model/key_words.hpp"

namespace vkrope {

/// A key that is present, with its full name.
struct GgufField {
    std::string name;
    const GgufValue* value = nullptr;

    explicit operator bool() const { return value != nullptr; }
    bool is_list() const { return value != nullptr && value->is_list(); }
};

/// A key that nobody has asked for although its name says something.
struct GgufUnread {
    GgufField field;
    Says says = Says::nothing;
};

class GgufFields {
   public:
    GgufFields(const GgufFile& file, std::string architecture)
        : file_(file), prefix_(std::move(architecture) + ".") {}

    /// The key "<architecture>.<name>"; empty if the file does not have it.
    GgufField find(const char* name);

    /// Like find(), but fails if the key is missing; `because` says what needs it.
    GgufField required(const char* name, const char* because);

    /// Marks keys with this beginning as read, since they belong to another layer.
    void pass_over(const char* beginning);

    /// Keys of the architecture that say something of RoPE, a scaling, layers or norms, and that
    /// nobody has asked for.
    std::vector<GgufUnread> unread() const;

   private:
    const GgufFile& file_;
    const std::string prefix_;
    std::set<std::string> asked_for_;
};

/// Warns that a key is missing and which value is assumed; `because` is the end of the sentence.
void warn_of_assumed(const GgufField& field, double value, const std::string& because,
                     std::vector<std::string>& warnings);

/// A value for messages.
std::string shown(const GgufField& field);

/// False for false, 0 and empty lists, by which a file turns a feature off.
bool is_set(const GgufField& field);

double finite_number(const GgufField& field);
double positive_number(const GgufField& field);
std::uint64_t whole_number(const GgufField& field, std::uint64_t low, std::uint64_t high);
bool truth(const GgufField& field);
std::string text(const GgufField& field);

/// One whole number, or a list of at least one.
std::vector<std::uint64_t> whole_numbers(const GgufField& field, std::uint64_t low,
                                         std::uint64_t high);

/// A list of at least one number, each finite and at least 0.
std::vector<double> list_of_numbers(const GgufField& field);

}  // namespace vkrope
