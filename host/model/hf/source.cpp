// SPDX-License-Identifier: MIT
#include "model/hf/source.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "model/hf/readers.hpp"
#include "model/key_words.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// Changes the class for models that differ although they share a model_type.
void tell_variants_apart(ModelClass& found, const Scope& config, const Scopes& top) {
    // The smallest DeepSeek models have Llama's attention.
    if (found.type.latent.qk_rope_head_dim != 0 && without_latent_attention(top))
        found.type = *find_model_type("deepseek");
    if (found.name == "baichuan") {
        const Field hidden = find({config}, {"hidden_size"});
        if (hidden && *hidden.value == 5120)
            not_supported("hidden_size is 5120: Baichuan's 13B models use ALiBi, not RoPE");
    }
}

// Returns the objects to search. DBRX and MPT have their numbers in attn_config.
Scopes lookups(const Scope& config) {
    Scopes scopes = {config};
    if (const Field inner = find_first({config}, {"attn_config"});
        inner && inner.value->is_object())
        scopes.push_back(inside(config, inner));
    return scopes;
}

// Returns the section of a DeepSeek V4 layer; rope_parameters may have one for each of two rope
// types. The model's code omits YaRN's magnitude. huggingface/transformers#45910 and
// sgl-project/sglang#30920 are about the layers.
ScalingSection compressed_section(const Source& source) {
    const bool sliding = source.layer.type == sliding_attention;
    const char* name = sliding ? "main" : "compress";
    const ScalingSection* found = source.sections.of(name);
    if (found == nullptr) {
        invalid_data("rope_parameters has no entry {}, which layers of type {} have", name,
                     shown_key(source.layer.type));
    }
    if (sliding && !source.by_type()) return found->without_scaling();
    ScalingSection section = *found;
    if (scaling_type(section) == "yarn" && !section.object.contains("attention_factor"))
        section.object["attention_factor"] = 1;
    return section;
}

// Returns whether the scaling is for other types of layers: Step 3.5's yarn_only_types.
bool scaled_elsewhere(const Source& source) {
    if (source.type.layers.rule != LayerRule::scaled_on_listed) return false;
    const Field types = find_first(source.top, {"yarn_only_types"});
    if (scaling_type(source.sections.all) == "default") return false;
    if (!types || !types.value->is_array()) {
        invalid_data("yarn_only_types is {}: it must list the layer types that are scaled",
                     types ? shown(types).c_str() : "missing");
    }
    return std::find(types.value->begin(), types.value->end(), source.layer.type) ==
           types.value->end();
}

ScalingSection section_of_layer(const Source& source) {
    if (source.type.layers.rule == LayerRule::compressed) return compressed_section(source);
    const ScalingSection* found = source.sections.of(source.layer.type);
    if (found == nullptr && source.layer.rotates) {
        invalid_data("rope_parameters has no entry for layer type {}",
                     shown_key(source.layer.type));
    }
    const bool unscaled = !source.by_type() && !source.layer.is_full() &&
                          (source.type.layers.rule == LayerRule::local_base ||
                           source.type.layers.rule == LayerRule::scaled_on_full ||
                           has_local_base(source.top));
    if (found != nullptr && !source.by_type() && scaled_elsewhere(source))
        return found->without_scaling();
    return found == nullptr ? ScalingSection() : unscaled ? found->without_scaling() : *found;
}

// Keys for which a file may have a list of one number per layer instead of one number.
// read_layers() reads the lists of bases and shares.
constexpr auto listed_keys = names(
    "attention_head_dim", "global_head_dim", "global_rope_theta", "head_dim",
    "hidden_size_per_head", "kv_channels", "kv_lora_rank", "local_rope_theta", "n_head", "n_heads",
    "num_attention_heads", "num_key_value_heads", "num_kv_heads", "partial_rotary_factor",
    "qk_nope_head_dim", "qk_rope_head_dim", "rope_base", "rope_embedding_base",
    "rope_local_base_freq", "rope_pct", "rope_percent", "rotary_base", "rotary_dim",
    "rotary_emb_base", "rotary_emb_fraction", "rotary_pct", "rotary_percent", "rotary_percentage",
    "swa_head_dim", "swa_rope_theta");

constexpr auto q_head_keys = names("n_head", "n_heads", "num_attention_heads");

// Does the same as take_listed() for the keys of a section.
void take_listed_of_section(Source& source, const Layers& layers, const Query& query) {
    for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
        const auto entry = source.section.object.find(key);
        if (entry == source.section.object.end() || !entry->is_array()) continue;
        const LayerNumbers numbers = listed_numbers({source.section.name + "." + key, &*entry},
                                                    layers);
        if (contains(share_names, key)) source.shares = numbers.values;
        *entry = json_number(layers.common(numbers, query, source.layer).value_or(0));
    }
}

// Replaces lists of one number per layer by the number of the selected layers. Removes head counts
// that differ, if head_dim does not need them.
void take_listed(Source& source, const Layers& layers, const Query& query) {
    std::shared_ptr<json> copy;
    for (const std::string_view name : listed_keys) {
        const char* key = name.data();
        const Field field = find_first({source.config}, {key});
        if (!field || !field.value->is_array()) continue;
        const bool of_q = contains(q_head_keys, name);
        const bool needed = of_q &&
                            !find_first({source.config}, {"head_dim", "attention_head_dim",
                                                          "kv_channels", "qk_rope_head_dim"});
        const std::optional<double> number = layers.common(
            listed_numbers(field, layers), query, source.layer,
            (of_q || name.starts_with("num_")) && !needed);
        if (!copy) copy = std::make_shared<json>(*source.config.object);
        if (!number)
            copy->erase(key);
        else
            (*copy)[key] = json_number(*number);
        if (contains(share_names, name)) source.shares = listed_numbers(field, layers).values;
    }
    if (copy) {
        source.of_layer = copy;
        source.config.object = copy.get();
        source.top = lookups(source.config);
    }
}

// Returns a name without case, separators and the suffixes of classes of transformers, so that
// Qwen2MoeForCausalLM is qwen2_moe.
std::string bare(std::string name) {
    for (const std::string_view suffix : {"For", "LMHead", "Model"}) {
        const std::size_t at = name.rfind(suffix), next = at + suffix.size();
        const bool ends = next == name.size() || (name[next] >= 'A' && name[next] <= 'Z');
        if (at != name.npos && at != 0 && ends) name.resize(at);
    }
    std::string letters;
    for (const std::string& word : words_of(name)) letters += word;
    return letters;
}

// Reads the model_type of the language model, or else of the whole document, or else what
// `architectures` names. Fails for classes whose rotation is not supported.
//
// config  the language model's own object
// top     the objects with its numbers
ModelClass model_class(const Scope& whole, const Scope& config, const Scopes& top,
                       Warnings& warnings) {
    ModelClass found;
    Field field = find({config}, {"model_type"});
    if (!field || (text(field).empty() && config.object != whole.object)) {
        // The document has the class of its text model.
        field = find({whole}, {"model_type"});
    }
    const Field architectures = find_first({config, whole}, {"architectures"});
    std::string name = field ? text(field) : "";
    if (!field && architectures && architectures.value->is_array()) {
        field = architectures;
        name = named_by_architecture(architectures, model_type_names());
    }
    if (name.empty() && (!field || field.name == architectures.name)) {
        warnings.push_back(
            "model_type is missing: assuming the defaults and pairing of llama; "
            "whether Q and K have norms is not known");
        return found;
    }
    if (const char* reason = unsupported_model_type(name)) {
        not_supported("{}: {}",
                      field.value->is_string() ? stated(field) : field.name + " names " + name,
                      reason);
    }
    if (const ModelType* row = find_model_type(name)) {
        found.type = *row;
        found.name = row->name;
        tell_variants_apart(found, config, top);
        return found;
    }
    found.unknown = field;
    warn(warnings,
         "model_type {} is unknown: assuming the defaults and pairing of llama; whether Q and K "
         "have norms is not known",
         shown(field));
    return found;
}

bool is_base(const std::string& key, Base which) {
    bool base = key == "rope_freq_constant", rope = false, local = false, layers = false;
    for (const std::string& word : words_of(key)) {
        local = local || contains(names("local", "sliding", "swa"), word);
        base = base || word == "theta" || word == "base";
        rope = rope || contains(names("local", "rope", "rotary", "sliding", "swa", "theta"), word);
        layers = layers || word == "layer" || word == "layers";
        if (!contains(names("", "attention", "attn", "base", "constant", "emb", "embedding", "freq",
                            "frequency", "full", "global", "layer", "layers", "local", "rope",
                            "rotary", "sliding", "swa", "theta", "window"),
                      word))
            return false;
    }
    return base && (rope || key == "rope_freq_constant") && local == (which == Base::local) &&
           (local || !layers);
}

}  // namespace

std::string named_by_architecture(const Field& architectures,
                                  const std::vector<std::string_view>& types) {
    if (!architectures || !architectures.value->is_array()) return {};
    std::map<std::string, std::string> known;  // a hostile file has many architectures
    for (const std::string_view type : types) known.emplace(bare(std::string(type)), type);
    for (const json& entry : *architectures.value) {
        const auto found = known.find(entry.is_string() ? bare(entry.get<std::string>()) : "");
        if (found != known.end()) return found->second;
    }
    return {};
}

Scopes Source::both() const {
    Scopes scopes = top;
    scopes.push_back(section.scope());
    return scopes;
}

std::string ModelClass::shown_type() const {
    return type.name != nullptr ? type.name : unknown ? shown(unknown) : "(missing)";
}

std::string ModelClass::assumed(const char* field, double value) const {
    return std::string(field) + " is missing: assuming " + shown_number(value) +
           ", the default of " + name;
}

bool without_latent_attention(const Scopes& top) {
    const Field latent = find(top, {"use_mla"});
    return latent && !truth(latent);
}

std::vector<std::string> base_names(const Scopes& scopes, Base which) {
    std::vector<std::string> found;
    for (const Scope& scope : scopes) {
        for (const auto& [key, value] : scope.object->items())
            if (is_base(key, which)) found.push_back(key);
    }
    return found;
}

Field find_base(const Scopes& scopes, Base which) {
    const Keys names(base_names(scopes, which));
    if (which == Base::local) return find(scopes, names);
    return find_unless_of(Keys(base_names(scopes, Base::local)), scopes, names);
}

Source find_source(const Scope& whole, const Scope& config, const Query& query,
                   Warnings& warnings) {
    Source source;
    source.config = config;
    source.top = lookups(config);
    static_cast<ModelClass&>(source) = model_class(whole, config, source.top, warnings);
    const ModelType& model = source.type;
    source.sections = scaling_sections(config, model, warnings);
    for (const auto& [type, section] : source.sections.by_type)
        require_known_scaling(model, section);  // reports an unknown type first
    if (!source.by_type()) require_known_scaling(model, source.sections.all);
    refuse_unsupported_keys(source.top, model);
    refuse_without_rope(source, source.top, source.sections.all);
    refuse_scaling_of_attention(source.top);
    // DeepSeek V4's sections belong to kinds of rotation, not to types of layers.
    const Layers layers = read_layers(config, model,
                                      model.layers.rule == LayerRule::compressed
                                          ? std::vector<std::string>()
                                          : source.sections.types());
    source.layer = layers.choose(query, warnings);
    source.base = layers.common(layers.bases, query, source.layer);
    source.share = layers.common(layers.shares, query, source.layer);
    source.shares = layers.shares.values;
    source.mixed = layers.has_other_types(source.layer) ||
                   source.config.object->contains("layer_group_size");  // Ling 2.5
    take_listed(source, layers, query);
    source.section = section_of_layer(source);
    take_listed_of_section(source, layers, query);
    return source;
}

bool has_local_base(const Scopes& top) {
    return bool(find_base(top, Base::local));
}

void warn_unless_of_a_type(const Source& source, const Field& own, const Keys& names,
                           const char* in_section, Warnings& warnings) {
    for (const std::string& name : names.names) {
        const Field other = find_first(source.top, Keys(std::vector<std::string>{name}));
        const bool known = std::any_of(
            source.sections.by_type.begin(), source.sections.by_type.end(), [&](const auto& type) {
                const Field field = other ? find_first({type.second.scope()}, {in_section})
                                          : Field();
                return field && *field.value == *other.value;
            });
        if (other && !known)
            warn(warnings, "{}{} is read, which is {}", ignored(other), own.name, shown(own));
    }
}

}  // namespace vkrope
