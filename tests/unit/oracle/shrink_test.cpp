// SPDX-License-Identifier: MIT
// Tests what is left of random operations that fail.
#include "verify/shrink.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/meaning.hpp"
#include "verify/elements.hpp"
#include "verify/random.hpp"
#include "verify/text.hpp"

namespace vkrope::test {
namespace {

using verify::Unplaced;

// Returns what is left of the first random operation with `limits` that fails.
std::string shrunk_text(const std::function<bool(const Unplaced&)>& fails) {
    for (std::uint64_t kernel = 0;; ++kernel) {
        Unplaced operation = verify::random_operation(kernel * verify::operations_of_a_kernel);
        operation.limits.storage_range = 4096;
        if (!fails(operation)) continue;
        std::size_t tries = 0;
        Unplaced last;
        const Unplaced least = verify::shrunk(operation, [&](const Unplaced& candidate) {
            ++tries;
            const bool failed = fails(candidate);
            if (failed) last = candidate;
            return failed;
        });
        CHECK(tries <= verify::most_tries);
        CHECK(fails(least));
        CHECK(verify::text_of(least) == verify::text_of(last));
        return verify::text_of(least);
    }
}

}  // namespace

TEST_CASE("an operation shrinks to the one field that fails") {
    CHECK(shrunk_text([](const Unplaced&) { return true; }) == "");
    CHECK(shrunk_text([](const Unplaced& of) { return of.info.pairing == VKROPE_INTERLEAVED; }) ==
          "operation.info.pairing = VKROPE_INTERLEAVED;\n");
    CHECK(shrunk_text([](const Unplaced& of) { return of.limits.storage_range != 0; }) ==
          "operation.limits.storage_range = 4096;\n");
    CHECK(shrunk_text([](const Unplaced& of) { return of.shape.tokens >= 3; }) ==
          "operation.shape.tokens = 3;\n");
}

TEST_CASE("an operation shrinks to the two fields that fail together") {
    CHECK(
        shrunk_text([](const Unplaced& of) {
            return of.info.tensor[VKROPE_K].out == VKROPE_Q4_0 &&
                   of.call.paged_cache.page_size >= 5;
        }) ==
        "operation.info.tensor[1].out = VKROPE_Q4_0;\noperation.call.paged_cache.page_size = 5;\n");
    CHECK(shrunk_text([](const Unplaced& of) {
              return of.in_place[VKROPE_Q] && of.info.tensor[VKROPE_Q].head_dim > 9;
          }) == "operation.info.tensor[0].head_dim = 10;\noperation.in_place[0] = true;\n");
}

TEST_CASE("an operation shrinks to the three fields that fail together") {
    CHECK(shrunk_text([](const Unplaced& of) {
              return of.info.angles == VKROPE_ANGLES_COS_SIN_CACHE && of.info.phase == 0 &&
                     of.info.windows[1].rotary_dim >= 4 && of.call.gain == VKROPE_GAIN_OMIT;
          }) ==
          "operation.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;\n"
          "operation.info.windows[1].rotary_dim = 4;\n"
          "operation.call.gain = VKROPE_GAIN_OMIT;\n");
}

TEST_CASE("an operation shrinks to slots of V's own, and to a weight that a call binds") {
    CHECK(shrunk_text([](const Unplaced& of) {
              return !of.v_slots.empty() && of.v_slots.back() == -1;
          }) == "operation.info.scatter_kv = 1;\noperation.v_slots = {-1};\n");
    CHECK(shrunk_text([](const Unplaced& of) {
              return of.info.tensor[VKROPE_K].ops.norm.weight_type == VKROPE_BF16;
          }) ==
          "operation.info.tensor[1].ops.norm.weight = VKROPE_PARAMETER_CHANNEL;\n"
          "operation.info.tensor[1].ops.norm.weight_bound = 1;\n"
          "operation.info.tensor[1].ops.norm.weight_type = VKROPE_BF16;\n");
}

TEST_CASE("an operation shrinks to its number of tokens, or to none") {
    CHECK(shrunk_text([](const Unplaced& of) {
              return of.info.token_count && of.token_count > of.shape.tokens;
          }) == "operation.info.token_count = 1;\noperation.token_count = 2;\n");
    CHECK(shrunk_text([](const Unplaced& of) { return of.info.token_count != 0; }) ==
          "operation.info.token_count = 1;\n");
}

TEST_CASE("the arrays of an operation shrink with its shape, to the values that fail") {
    const auto last_is_negative = [](const Unplaced& of) {
        return of.ids.size() > 1 && of.ids.back() == INT32_MIN && of.shape.batch == 2;
    };
    CHECK(shrunk_text(last_is_negative) ==
          "operation.info.positions = VKROPE_POSITIONS_IDS;\noperation.shape.batch = 2;\n"
          "operation.ids = {0, -2147483648};\n");
    const auto has_nan = [](const Unplaced& of) {
        const verify::Bytes& rows = of.rows[VKROPE_K];
        const vkrope_element element = of.info.tensor[VKROPE_K].in;
        for (std::size_t i = 0; !is_quantised(element) && i < rows.size() / element_bytes(element);
             ++i)
            if (std::isnan(verify::value(element, rows, i))) return of.shape.tokens > 1;
        return false;
    };
    CHECK(shrunk_text(has_nan) ==
          "operation.info.tensor[1].head_dim = 1;\noperation.shape.tokens = 2;\n"
          "operation.rows[1] = verify::bytes_of(std::vector<std::uint32_t>{0x7fc00000, 0x0});\n");
}

TEST_CASE("no rows overlap in what is tried in place of an operation, a limited number of times") {
    const Unplaced operation = verify::random_operation(0);
    const std::string text = verify::text_of(operation);
    std::size_t tries = 0;
    const Unplaced least = verify::shrunk(operation, [&](const Unplaced& of) {
        ++tries;
        CHECK(verify::rows_are_apart(of));
        return false;
    });
    CHECK(verify::text_of(least) == text);
    CHECK(tries == verify::most_tries);
    for (std::uint64_t kernel = 0; kernel < 100; ++kernel)
        CHECK(verify::rows_are_apart(
            verify::random_operation(kernel * verify::operations_of_a_kernel)));
}

TEST_CASE("rows that overlap are noticed") {
    Unplaced operation;
    operation.info.tensor[VKROPE_K].head_dim = operation.info.tensor[VKROPE_V].head_dim = 2;
    operation.shape = {.batch = 1, .tokens = 2, .groups = 2, .q_per_group = 1};
    CHECK(verify::rows_are_apart(operation));
    const auto overlap = [&](auto&& change) {
        Unplaced changed = operation;
        change(changed);
        return !verify::rows_are_apart(changed);
    };
    CHECK(overlap([](Unplaced& of) { of.out = verify::Arrangement::broadcast; }));
    CHECK(overlap([](Unplaced& of) { of.slots = {3, 3}; }));
    CHECK(!overlap([](Unplaced& of) { of.slots = {-1, -1}; }));
    CHECK(!overlap([](Unplaced& of) { of.slots = {100, 100}; }));  // outside the cache
    CHECK(overlap([](Unplaced& of) { of.in_place[VKROPE_Q] = true; }));
    CHECK(!overlap([](Unplaced& of) { of.in_place[VKROPE_K] = true; }));
    CHECK(overlap([](Unplaced& of) { of.shape.own_v_heads = 1, of.pages_by_head = true; }));
    CHECK(overlap([](Unplaced& of) { of.page_gaps = of.beside = true; }));
    CHECK(overlap([](Unplaced& of) { of.v_slots = {3, 3}; }));
    CHECK(!overlap([](Unplaced& of) { of.slots = {3, 4}, of.v_slots = {4, 3}; }));
    CHECK(!overlap([](Unplaced& of) { of.slots = {9, 9}; }));   // outside the cache of K
    CHECK(overlap([](Unplaced& of) { of.v_slots = {9, 9}; }));  // V has a page more
    CHECK(overlap([](Unplaced& of) { of.slots = {3, 4}, of.v_sources = {4, 5}; }));
    CHECK(!overlap([](Unplaced& of) { of.v_slots = {4, 3}, of.v_sources = {4, 5}; }));
}

}  // namespace vkrope::test
