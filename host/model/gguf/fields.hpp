// SPDX-License-Identifier: MIT
// Finds the keys of one architecture, and remembers which.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "model/gguf/file.hpp"
#include "model/key_words.hpp"

namespace vkrope {

/// A key that nobody has asked for although its name says something.
struct GgufUnread {
    Field field;
    Says says = Says::nothing;
};

class GgufFields {
   public:
    GgufFields(const GgufFile& file, std::string architecture)
        : file_(file), prefix_(std::move(architecture) + ".") {}

    /// The key "<architecture>.<name>"; empty if the file does not have it.
    Field find(const char* name);

    /// Like find(), but fails if the key is missing; `because` says what needs it.
    Field required(const char* name, const char* because);

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
void warn_of_assumed(const Field& field, double value, const std::string& because,
                     Warnings& warnings);

}  // namespace vkrope
