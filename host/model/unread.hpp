// SPDX-License-Identifier: MIT
// The one rule for keys of a model file that no other rule looked for: a key that may change angles
// is an error, one that may change scores, layers or norms a warning.
#pragma once

#include <set>
#include <string>

#include "model/field.hpp"

namespace vkrope {

// What is known of the model whose unread keys are judged.
struct ReadModel {
    std::string name;          // in messages, such as "model_type llama"
    bool known = true;         // it is a class of a table, so that its layers are known
    bool rotates = true;       // the layer has RoPE; else no key changes its angles
    bool layer_asked = false;  // the query selects a layer or a type of layers
    bool scaled = false;       // some scaling was read
    bool has_norms = false;    // norms of Q and K were read
    // What the owner of the file can do about a key of angles, before "give the name to ...".
    const char* instead = "state a scaling in rope_parameters and set this to null, or ";
};

class UnreadKeys {
   public:
    UnreadKeys(ReadModel model, Warnings& warnings)
        : model_(std::move(model)), warnings_(warnings) {}

    // Judges a key. Fails with not_supported, and names the key and a remedy, if the key may
    // change the angles. Returns whether the values inside it need not be judged any more.
    //
    // key      the last part of the field's name
    // in_rope  the key is in an object that was read for the angles, such as rope_scaling
    bool judge(const Field& field, const std::string& key, bool in_rope = false);

    // Returns whether some key indicates norms of Q and K that were not read.
    bool says_norms() const { return says_norms_; }

   private:
    void warn(const Field& field, const std::string& because);
    void layers(const Field& field, bool scaled_ones);
    void norms(const Field& field);

    const ReadModel model_;
    Warnings& warnings_;
    bool says_norms_ = false;
    std::set<std::string> named_;
};

// Fails with not_supported if the key turns RoPE off, in the model or in some layers, or another
// kind of position embedding on.
void refuse_switch(const Field& field, const std::string& key);

// Returns whether a value states nothing: null, false, 0, 1, empty, or the default by name.
bool is_plain(const json& value);

// Returns whether a value is a section like rope_scaling, or the name of a scaling.
bool says_a_scaling(const json& value);

}  // namespace vkrope
