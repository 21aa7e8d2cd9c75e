// SPDX-License-Identifier: MIT
// A model's file is read once, for all queries: here it is deleted before the queries.
#include "files/model_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace vkrope;
using namespace vkrope::tools;

namespace {

void check_read_once(const std::string& original) {
    CAPTURE(original);
    const std::string copy = VKROPE_TEST_SCRATCH "/model_file_test" +
                             std::filesystem::path(original).extension().string();
    std::filesystem::copy_file(original, copy, std::filesystem::copy_options::overwrite_existing);
    const ModelFile file(copy);
    const Result<Rotation> before = file.read({});
    std::filesystem::resize_file(copy, 0);
    const Result<Rotation> after = file.read({});
    REQUIRE_MESSAGE(before, before.status.what);
    REQUIRE_MESSAGE(after, after.status.what);
    CHECK(after->inv_freq == before->inv_freq);
    CHECK(file.read({.layer = 0}));
    std::filesystem::remove(copy);
}

}  // namespace

TEST_CASE("a config.json") {
    check_read_once(VKROPE_TEST_MODELS "/llama-3.1-8b.json");
}

TEST_CASE("a GGUF file") {
    check_read_once(VKROPE_TEST_MODELS "/../corpus/gguf/yarn.gguf");
}
