// SPDX-License-Identifier: MIT
// Tests that the reader of safetensors files trusts nothing: every file that breaks a rule of the
// format is an error with a reason, and the result of an accepted file matches the file.
#include "io/safetensors.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "cli/failure.hpp"
#include "io/array_file.hpp"
#include "support/names.hpp"

using namespace vkrope;
using safetensors::Header;

namespace {

std::string file_with(const std::string& json, std::size_t data_bytes,
                      std::uint64_t length = UINT64_MAX) {
    if (length == UINT64_MAX) length = json.size();
    std::string file;
    for (int byte = 0; byte < 8; ++byte) file.push_back(char(length >> (8 * byte) & 0xff));
    return file + json + std::string(data_bytes, 'x');
}

Header parse(const std::string& file) {
    return safetensors::parse_header(std::as_bytes(std::span(file)), file.size());
}

// Returns the error of parsing; empty if there is none.
std::string problem_of(const std::string& file) {
    try {
        parse(file);
        return "";
    } catch (const safetensors::Error& error) {
        return error.what();
    }
}

// Checks that `file` is rejected with a reason that contains `words`.
void check_refused(const std::string& file, const std::string& words) {
    const std::string problem = problem_of(file);
    CHECK(!problem.empty());
    CHECK_MESSAGE(test::names(problem, words), problem, ": ", words);
}

// Checks a file with one tensor 'a' that has these fields, and `data_bytes` bytes of data.
void check_tensor(const std::string& fields, std::size_t data_bytes, const std::string& words) {
    CAPTURE(fields);
    check_refused(file_with("{\"a\":{" + fields + "}}", data_bytes), words);
}

// Returns the entry of a tensor of 4 bytes at offset `begin`.
std::string at(const std::string& name, std::size_t begin) {
    return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(begin + 4) + "]}";
}

TEST_CASE("a file is read correctly, whatever the order of its parts") {
    const std::string json =
        R"({"b.weight":{"dtype":"BF16","shape":[3,2],"data_offsets":[4,16]},)"
        R"("__metadata__":{"format":"pt","dtype":"x"},)"
        R"("a":{"data_offsets":[0,4],"shape":[],"dtype":"F32"},)"
        R"("none":{"dtype":"I64","shape":[0,3],"data_offsets":[16,16]},)"
        R"("other":{"dtype":"NEW_TYPE","shape":[5],"data_offsets":[16,17]}}   )";
    const Header header = parse(file_with(json, 17));
    CHECK(header.data_offset == 8 + json.size());
    REQUIRE(header.tensors.size() == 4);
    CHECK(header.tensors[0].shape.empty());
    CHECK(header.tensors[1].name == "b.weight");
    CHECK(header.tensors[1].dtype == "BF16");
    CHECK(header.tensors[1].shape == std::vector<std::uint64_t>{3, 2});
    CHECK(header.tensors[1].begin == 4);
    CHECK(header.tensors[1].end == 16);
    CHECK(header.find("other") == &header.tensors[3]);
    CHECK(header.find("__metadata__") == nullptr);
    CHECK(parse(file_with("{}", 0)).tensors.empty());
    // An element of less than a byte.
    CHECK(problem_of(file_with(R"({"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", 3)) ==
          "");
}

TEST_CASE("files that are not safetensors files") {
    check_refused("", "0");
    check_refused(std::string(7, '\0'), "7");
    check_refused(std::string(8, '\0'), "{");
    check_refused(file_with("{}", 0, 16777217), "16777217 16777216");
    check_refused(file_with("{}", 0, UINT64_MAX - 1), "16777216");
    check_refused(file_with("{}", 0, 3), "3 2");
    check_refused(file_with("{}", 5), "5");
    check_refused(file_with(" {}", 0), "{");
    check_refused(file_with("[]", 0), "{");
    check_refused(file_with(std::string("{\0}", 3), 0), "0 1");
    check_refused(file_with("{", 0), "JSON");
    check_refused(file_with("{}x", 0), "JSON 3");
    check_refused(file_with("{\"\xff\":{}}", 0), "JSON");
    check_refused(file_with(std::string(100000, '{'), 0), "JSON");
}

TEST_CASE("invalid headers") {
    check_refused(file_with(R"({"a":1})", 0), "a");
    check_refused(file_with(R"({"a":[]})", 0), "a");
    check_refused(file_with(R"({"a":null})", 0), "a");
    check_refused(file_with(R"({"__metadata__":{"a":1}})", 0), "__metadata__ a");
    check_refused(file_with(R"({"__metadata__":{"a":{}}})", 0), "__metadata__ a");
    check_refused(file_with(R"({"__metadata__":"a"})", 0), "__metadata__");
    check_refused(file_with(R"({"__metadata__":{"a":"","a":""}})", 0), "a");
    check_refused(file_with(R"({"__metadata__":{},"__metadata__":{}})", 0), "__metadata__");
    check_refused(file_with("{" + at("a", 0) + "," + at("a", 4) + "}", 8), "a");
    check_tensor("", 0, "a dtype");
    check_tensor(R"("dtype":"F32","shape":[])", 0, "data_offsets");
    check_tensor(R"("dtype":"F32","data_offsets":[0,4])", 4, "shape");
    check_tensor(R"("dtype":"F32","dtype":"F32")", 0, "dtype");
    check_tensor(R"("strides":[1])", 0, "a strides");
    check_tensor(R"("dtype":4)", 0, "a dtype");
    check_tensor("\"dtype\":\"" + std::string(65, 'F') + "\"", 0, "a dtype 65 64");
    check_tensor(R"("dtype":["F32"])", 0, "dtype");
    check_tensor(R"("shape":4)", 0, "shape");
    check_tensor(R"("shape":[-1])", 0, "shape");
    check_tensor(R"("shape":[1.0])", 0, "shape");
    check_tensor(R"("shape":[18446744073709551616])", 0, "shape 2^64");
    check_tensor(R"("shape":["1"])", 0, "shape");
    check_tensor(R"("shape":[[1]])", 0, "shape");
    check_tensor(R"("shape":[true])", 0, "shape");
    check_tensor(R"("data_offsets":[0])", 0, "data_offsets 1");
    check_tensor(R"("data_offsets":[0,1,2])", 0, "data_offsets");
    std::string many = "1";
    for (std::size_t rank = 1; rank <= safetensors::max_rank; ++rank) many += ",1";
    check_tensor("\"shape\":[" + many + "]", 0, "shape 64");
    check_refused(file_with("{\"" + std::string(65536, 'n') + "\":{}}", 0), "65536 65535");
    std::string tensors;
    for (int i = 0; i < 200000; ++i) {
        tensors += "\"" + std::to_string(i) +
                   R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
    }
    check_refused(file_with("{" + tensors + "\"x\":{}}", 0), "524288");
}

TEST_CASE("sizes and offsets") {
    const auto tensor = [](const char* dtype, const char* shape, const char* offsets) {
        return std::string("\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
               ",\"data_offsets\":" + offsets;
    };
    check_tensor(tensor("F32", "[2,2]", "[0,4]"), 4, "data_offsets 0 4 shape 2 2 F32 16");
    check_tensor(tensor("F32", "[0,2]", "[0,4]"), 4, "shape 0 2 F32 0");
    check_tensor(tensor("F32", "[1]", "[4,0]"), 4, "data_offsets 4 0");
    check_tensor(tensor("NEW_TYPE", "[1]", "[4,0]"), 4, "data_offsets");
    check_tensor(tensor("F4", "[3]", "[0,2]"), 2, "shape 3 F4");
    check_tensor(tensor("F32", "[4294967296,4294967296]", "[0,0]"), 0, "shape 2^61");
    check_tensor(tensor("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, "shape 2^61");
    check_tensor(tensor("F32", "[1]", "[0,4]"), 3, "4");
    check_tensor(tensor("F32", "[1]", "[0,4]"), 5, "1");
    check_tensor(tensor("F32", "[1]", "[1,5]"), 5, "bytes 0 1");
    check_refused(file_with("{" + at("a", 0) + "," + at("b", 2) + "}", 6), "b 2 4");
    check_refused(file_with("{" + at("b", 0) + "," + at("a", 0) + "}", 4), "b");
    check_refused(file_with("{" + at("a", 8) + "," + at("b", 0) + "}", 12), "bytes 4 8");
    CHECK(problem_of(file_with("{" + at("a", 8) + "," + at("b", 0) + "," + at("c", 4) + "}", 12))
              .empty());
}

// Returns the error of reading; empty if there is none.
std::string failure_of(const std::string& path) {
    try {
        tools::read_array("--q", path);
        return "";
    } catch (const tools::Failure& failure) {
        CHECK(failure.code() == tools::ExitCode::bad_file);
        return failure.what();
    }
}

TEST_CASE("one tensor of a file is read as an array") {
    const std::string path = VKROPE_TEST_SCRATCH "/array.safetensors";
    const auto write = [&path](const std::string& content) {
        std::ofstream(path, std::ios::binary) << content;
    };
    std::string file = file_with(R"({"x:y":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},)"
                                 R"("f8":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[4,7]}})",
                                 0);
    write(file + "abcdefg");
    const npy::Array array = tools::read_array("--q", path + ":x:y");
    CHECK(array.header.type == npy::Type::u2);
    CHECK(array.header.shape == std::vector<std::uint64_t>{1, 2});
    REQUIRE(array.data.size() == 4);
    CHECK(array.data[3] == std::byte{'d'});
    CHECK(test::names(failure_of(path), "--q " + path + " 2"));
    CHECK(test::names(failure_of(path + ":z"), "2"));
    CHECK(test::names(failure_of(path + ":f8"), "dtype F8_E4M3 F32"));
    write(file + "abc");
    CHECK(test::names(failure_of(path + ":x:y"), "7"));
    write(file_with("{" + at("only", 0) + "}", 4));
    CHECK(tools::read_array("--q", path).header.type == npy::Type::f4);
    CHECK(!failure_of(VKROPE_TEST_SCRATCH "/missing.safetensors").empty());
    CHECK(tools::file_of("a.safetensors:b.safetensors:c") == "a.safetensors");
    CHECK(tools::file_of("a.safetensors.npy") == "a.safetensors.npy");
}

}  // namespace
