// SPDX-License-Identifier: MIT
// Tests that the .npy reader trusts nothing: every invalid file is an error with a reason. Files of
// the writer match the format byte for byte.
#include "io/npy.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "support/names.hpp"

using namespace vkrope;
using npy::Type;

namespace {

using Shape = std::vector<std::uint64_t>;

constexpr Type all_types[] = {Type::f4, Type::f2, Type::u2, Type::i4, Type::i8, Type::f8, Type::u1};

// Makes a file of format version `major`.0 with `dict` as its header, unpadded.
std::string file_with(const std::string& dict, const std::string& data = "", int major = 1) {
    std::string file = "\x93NUMPY";
    file += {char(major), '\0'};
    for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte)
        file.push_back(char(dict.size() >> (8 * byte) & 0xff));
    return file + dict + data;
}

// Makes such a file with the data of two float32 elements, whatever `dict` says.
std::string pair_with(const std::string& dict) {
    return file_with(dict, std::string(8, 'x'));
}

npy::Array parse(const std::string& file) {
    return npy::parse(std::as_bytes(std::span(file)));
}

// Returns the error of parsing; empty if there is none.
std::string problem_of(const std::string& file) {
    try {
        parse(file);
        return "";
    } catch (const npy::Error& error) {
        return error.what();
    }
}

// Checks that `file` is rejected with a reason that contains `words`.
void check_refused(const std::string& file, const std::string& words = "") {
    const std::string problem = problem_of(file);
    CAPTURE(file);
    CHECK(!problem.empty());
    CHECK_MESSAGE(test::names(problem, words), problem, ": ", words);
}

struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() /
                                 ("vkrope-npy-test-" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directory(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string write(const std::string& content) const {
        std::ofstream(path / "array.npy", std::ios::binary) << content;
        return (path / "array.npy").string();
    }
};

std::string problem_of_path(const std::string& path) {
    try {
        npy::read(path);
        return "";
    } catch (const npy::Error& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("a written array is read back unchanged, for every type and rank") {
    const Folder folder;
    for (const Type type : all_types) {
        for (std::size_t rank = 0; rank <= npy::max_rank; ++rank) {
            Shape shape(rank);
            std::iota(shape.begin(), shape.end(), std::uint64_t{1});
            if (rank > 4) std::fill(shape.begin() + 4, shape.end(), std::uint64_t{2});
            std::string data(npy::data_bytes(type, shape), '\0');
            std::iota(data.begin(), data.end(), '\0');
            const std::string header = npy::make_header(type, shape);
            for (const npy::Array& array :
                 {parse(header + data), npy::read(folder.write(header + data))}) {
                CHECK(array.header.type == type);
                CHECK(array.header.shape == shape);
                CHECK(array.header.data_offset == header.size());
                CHECK(array.data.size() == data.size());
                CHECK(std::memcmp(array.data.data(), data.data(), data.size()) == 0);
            }
        }
    }
}

TEST_CASE("a written header is numpy's, byte for byte") {
    const std::string header = npy::make_header(Type::f4, Shape{3, 4});
    CHECK(header.size() == 128);  // numpy aligns the data to 64 bytes
    CHECK(header.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    CHECK(header.substr(10, 59) == "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
    CHECK(header.substr(69) == std::string(58, ' ') + '\n');
    CHECK(npy::make_header(Type::u2, Shape{7})
              .find("'descr': '<u2', 'fortran_order': False, 'shape': (7,), }") == 11);
    CHECK(npy::make_header(Type::i8, Shape{}).find("'shape': (), }") != std::string::npos);
    for (std::uint64_t dimension = 1; dimension < 1'000'000'000; dimension *= 7)
        CHECK(npy::make_header(Type::f2, Shape{dimension, dimension, dimension}).size() % 64 == 0);
}

TEST_CASE("every spelling of the dict that Python accepts is read") {
    for (const char* dict : {
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
             "{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}",
             "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(1,2)}",
             "  { 'descr' :\t'<f4' , 'fortran_order' : False , 'shape' : ( 2 , 1 , ) , }  \r\n",
             "{'descr': '<f4',\n 'fortran_order': False,\n 'shape': (2,)}\n\n",
         })
        CHECK(problem_of(pair_with(dict)) == "");
    for (const int major : {1, 2, 3}) {
        const npy::Array array = parse(file_with(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", "abcdefgh", major));
        CHECK(array.header.type == Type::i8);
        CHECK(array.data.size() == 8);
    }
}

TEST_CASE("empty arrays are arrays") {
    const npy::Array array = parse(
        file_with("{'descr': '<f2', 'fortran_order': False, 'shape': (4, 0, 32, 128)}"));
    CHECK(array.header.shape == Shape{4, 0, 32, 128});
    CHECK(array.data.empty());
}

TEST_CASE("a dict that is not one of numpy's headers is refused") {
    check_refused(pair_with("{}"), "descr");
    check_refused(pair_with("{'descr': '<f4', 'shape': (2,)}"), "fortran_order");
    check_refused(pair_with("{'descr': '<f4', 'fortran_order': False}"), "shape");
    const std::string tail = "'fortran_order': False, 'shape': (2,)";
    const std::string good = "{'descr': '<f4', " + tail;
    check_refused(pair_with(good + ", 'extra': 1}"), "extra");
    check_refused(pair_with(good + ", 'descr': '<f4'}"), "descr");
    check_refused(pair_with(good + ", 'fortran_order': False}"), "fortran_order");
    check_refused(pair_with(good + ", 'shape': (2,)}"), "shape");
    check_refused(pair_with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"), "True False");
    check_refused(pair_with("{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}"),
                  "True False");
    check_refused(pair_with("{'descr': [('x', '<f4')], " + tail + "}"), "descr");
    for (const std::string& dict :
         {std::string(), "{'descr': '<f4' " + tail + "}", "{'descr' '<f4', " + tail + "}",
          "{descr: '<f4', " + tail + "}", "{,'descr': '<f4', " + tail + "}",
          std::string("{'descr': '<f4"), "{'descr': '<f\\x34', " + tail + "}", good, good + "} x",
          good + "}" + '\0'})
        check_refused(pair_with(dict));
    for (const char* shape : {"[2]}", "2}", "(2)}", "(,)}", "(2,,1)}", "(2 1)}", "(-2,)}", "(+2,)}",
                              "(02,)}", "(2.0,)}", "(2L,)}", "(True,)}", "(2, ", "(2,"})
        check_refused(
            pair_with("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape)));
}

TEST_CASE("types and orders that the library does not read are refused") {
    const auto with_descr = [](const std::string& descr) {
        return pair_with("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,)}");
    };
    for (const char* descr : {">f4", ">f2", ">i8"}) check_refused(with_descr(descr), "big-endian");
    for (const char* descr :
         {"=f4", "f4", "|f4", "<f16", "<i2", "<u4", "|i1", "<c8", "|O", "", "<f4 ", "<F4"})
        check_refused(with_descr(descr), "descr " + std::string(descr));
    check_refused(pair_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}"),
                  "fortran_order True");
}

TEST_CASE("sizes are checked before they are used") {
    const auto with_shape = [](const std::string& shape) {
        return pair_with("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}");
    };
    check_refused(with_shape("(18446744073709551616,)"), "2^64");
    check_refused(with_shape("(99999999999999999999999999,)"), "2^64");
    check_refused(with_shape("(18446744073709551615,)"), "2^63");
    check_refused(with_shape("(4611686018427387904,)"), "2^63");  // * 4 is 2^64
    check_refused(with_shape("(4611686018427387906,)"),
                  "2^63");  // * 4 is 8 modulo 2^64
    check_refused(with_shape("(4294967296, 4294967296)"),
                  "2^63");  // product is 0 modulo 2^64
    check_refused(with_shape("(2, 9223372036854775809)"),
                  "2^63");  // product is 2 modulo 2^64
    check_refused(with_shape("(0, 4294967296, 4294967296)"),
                  "2^63");  // no bytes, but beyond 64-bit arithmetic
    check_refused(with_shape("(1000000000000,)"),
                  "shape 1000000000000 <f4");  // claims 4 TB, allocates nothing
    check_refused(with_shape("(3,)"), "12 8");
    check_refused(with_shape("(1,)"), "4");
    check_refused(with_shape("(0,)"), "8");
    check_refused(with_shape("(1, 1, 1, 1, 1, 1, 1, 1, 2)"), "8");
    CHECK(problem_of(with_shape("(1, 1, 1, 1, 1, 1, 1, 2)")) == "");
    CHECK_THROWS_AS(npy::data_bytes(Type::f2, Shape{1ull << 62, 2}), npy::Error);
    CHECK(npy::data_bytes(Type::f2, Shape{1ull << 61}) == 1ull << 62);
}

TEST_CASE("a preamble that is not one of the three versions is refused") {
    const std::string good = npy::make_header(Type::f4, Shape{2}) + std::string(8, 'x');
    for (const char* other : {"", "PK\x03\x04 an .npz archive", "{\"a\": 1}"})
        check_refused(other, ".npy");
    for (const char* version :
         {"\x00\x00", "\x00\x01", "\x01\x01", "\x02\x05", "\x04\x00", "\xff\xff"}) {
        std::string file = good;
        file.replace(6, 2, version, 2);
        check_refused(file, "version");
    }
    for (const int major : {2, 3}) {
        const std::string longest = "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}";
        CHECK(problem_of(
                  file_with(longest + std::string(65536 - longest.size(), ' '), "", major)) == "");
        check_refused(file_with(longest + std::string(65537 - longest.size(), ' '), "", major),
                      "65537");
        check_refused(
            std::string("\x93NUMPY") + std::string{char(major), '\0'} + "\xff\xff\xff\xff{",
            "4294967295");
    }
}

TEST_CASE("a file cut off at any byte is refused, in memory and on disk") {
    const Folder folder;
    for (const int major : {1, 2}) {
        const std::string whole = file_with(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcdefgh", major);
        REQUIRE(problem_of(whole) == "");
        for (std::size_t size = 0; size < whole.size(); ++size) {
            CAPTURE(size);
            const std::string cut = whole.substr(0, size);
            CHECK(!problem_of(cut).empty());
            CHECK(problem_of_path(folder.write(cut)) == problem_of(cut));
        }
        check_refused(whole + "i", "1");
    }
}

TEST_CASE("a path that is not a regular file is refused") {
    const Folder folder;
    for (const std::string& path :
         {(folder.path / "missing.npy").string(), folder.path.string(), std::string("/dev/zero")})
        CHECK(!problem_of_path(path).empty());
}
