// SPDX-License-Identifier: MIT
// Reading the keys of one architecture, checked. What breaks a rule is an error that names key,
// value, type and rule.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/gguf_file.hpp"

namespace vkrope {

/// A key that is there, by its whole name.
struct GgufField {
    std::string name;
    const GgufValue* value = nullptr;

    explicit operator bool() const { return value != nullptr; }
};

class GgufFields {
   public:
    GgufFields(const GgufFile& file, std::string architecture)
        : file_(file), prefix_(std::move(architecture) + ".") {}

    /// The key "<architecture>.<name>"; empty where the file does not have it.
    GgufField find(const char* name);

    /// As find(), or an error that says what needs it.
    GgufField required(const char* name, const char* because);

    /// The keys that begin like this are another layer's.
    void pass_over(const char* beginning);

    /// Of those that begin with "<architecture>.rope.", the ones that nobody has asked for.
    std::vector<std::string> ignored() const;

   private:
    const GgufFile& file_;
    const std::string prefix_;
    std::set<std::string> asked_for_;
};

/// Adds the warning of a key that is missing and what stands in for it; `because` is the end of the
/// sentence.
void warn_of_assumed(const GgufField& field, double value, const std::string& because,
                     std::vector<std::string>& warnings);

double finite_number(const GgufField& field);
double positive_number(const GgufField& field);
std::uint64_t whole_number(const GgufField& field, std::uint64_t low, std::uint64_t high);
bool truth(const GgufField& field);
std::string text(const GgufField& field);

/// Whole numbers, one or a list of at least one.
std::vector<std::uint64_t> whole_numbers(const GgufField& field, std::uint64_t low,
                                         std::uint64_t high);

}  // namespace vkrope
