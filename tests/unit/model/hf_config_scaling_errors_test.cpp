// SPDX-License-Identifier: MIT
// Scalings that must not become a RopeParams: unknown ones by name, broken ones with field, value
// and rule.
#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "hf_config_refusals.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("scalings that are unknown are named, never read as default") {
    for (const char* type : {"ntk", "Linear", "spiral", ""}) {
        for (const char* key : {"type", "rope_type"}) {
            const std::string field = std::string("\"") + key + "\": \"" + type + "\"";
            check_refused({llama_with(R"("rope_theta": 1e4, "rope_scaling": {)" + field +
                                      R"(, "factor": 2.0})"),
                           std::string("rope_scaling.") + key + " " + type},
                          VKROPE_ERROR_NOT_SUPPORTED);
        }
    }
    check_refused({llama_with(R"("rope_parameters": {"rope_theta": 1e4, "rope_type": "spiral"})"),
                   "rope_parameters.rope_type"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({llama_with(
                       R"("rope_parameters": {"full_attention": {"rope_theta": 1e4,
                "rope_type": "spiral"}})"),
                   "rope_parameters.full_attention.rope_type spiral"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("formulas that share the name ntk are not taken for each other") {
    for (const char* key : {"type", "rope_type"}) {
        check_refused({llama_with(R"("rope_theta": 1e4, "rope_scaling": {"factor": 2, ")" +
                                  std::string(key) + "\": \"ntk\"}"),
                       std::string("rope_scaling.") + key + " ntk"},
                      VKROPE_ERROR_NOT_SUPPORTED);
    }
    const std::string gte =
        R"({"model_type": "new", "rope_theta": 1e4, "rope_scaling": {"type": "ntk")";
    check_refused({gte + "}}", "rope_scaling.factor"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({gte + R"(, "factor": 0.5}})", "rope_scaling.factor 0.5 rope_type 1"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused({gte + R"(, "factor": 2, "mixed_b": 0}})", "rope_scaling.mixed_b 0"},
                  VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("InternLM's rotary object, broken") {
    const auto internlm = [](const std::string& fields) {
        return R"({"model_type": "internlm", "rotary": )" + fields + "}";
    };
    check_refused({internlm(R"({"base": 1e4, "type": "spiral"})"), "rotary.type spiral"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({internlm(R"({"base": 1e4})"), "rotary.type"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({internlm(R"({"base": -1, "type": "origin"})"), "rotary.base -1"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused(
        {internlm(R"({"type": "dynamic", "scaling_factor": 0})"), "rotary.scaling_factor 0"},
        VKROPE_ERROR_INVALID_DATA);
    check_refused({internlm(R"({"base": 1e4, "type": "origin"}, "rope_theta": 1e6)"),
                   "rotary.base 10000.0 rope_theta"},
                  VKROPE_ERROR_INVALID_DATA);
    check_refused(
        {internlm(R"({"type": "origin"}, "rope_scaling": {"type": "linear", "factor": 2})"),
         "rotary rope_scaling"},
        VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("scaling parameters that are missing or out of range") {
    const auto llama3_without = [](const std::string& left_out) {
        std::string fields = R"("type": "llama3")";
        for (const char* field : {"factor", "low_freq_factor", "high_freq_factor",
                                  "original_max_position_embeddings"}) {
            if (left_out != field) {
                fields += ", \"" + std::string(field) +
                          "\": " + (field == std::string("low_freq_factor") ? "1" : "8");
            }
        }
        return llama_with(R"("rope_theta": 1e4, "rope_scaling": {)" + fields + "}");
    };
    for (const char* field :
         {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
        check_refused({llama3_without(field), std::string("rope_scaling.") + field},
                      VKROPE_ERROR_INVALID_DATA);
    }
    CHECK(from_hf_config(llama3_without("")));
    const Bad bad[] = {
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear"})"),
         "rope_scaling.factor"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 0})"),
         "rope_scaling.factor 0"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": "2"})"),
         "rope_scaling.factor 2"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": true})"),
         "rope_scaling.factor true"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"factor": 2})"),
         "rope_scaling.rope_type"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": 4})"), "rope_scaling.type 4"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": 4)"), "rope_scaling 4"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": [2])"), "rope_scaling"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn"})"),
         "rope_scaling.factor rope_type"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "dynamic"})"),
         "rope_scaling.factor"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "longrope", "factor": 2})"),
         "rope_scaling.short_factor"},
        {R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
            "rope_scaling": {"type": "yarn", "factor": 2}})",
         "max_position_embeddings"},
        {llama_with(R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": -2})"),
         "rope_scaling.factor -2"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 0})"),
         "rope_scaling.beta_fast 0"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2,
                "beta_slow": 33})"),
         "beta_fast 32 beta_slow 33"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": 1})"),
         "rope_scaling.truncate 1"},
        {llama_with(R"("rope_theta": 1, "rope_scaling": {"type": "yarn", "factor": 2})"), "base 1"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "llama3", "factor": 8,
                "low_freq_factor": 5,
                       "high_freq_factor": 4, "original_max_position_embeddings": 8192})"),
         "low_freq_factor 5"},
    };
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
}
