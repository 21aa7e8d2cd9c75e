// SPDX-License-Identifier: MIT
// Compares an output with its definition: element by element, as a whole, and in one sentence.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "verify/oracle/element.hpp"
#include "verify/oracle/quantise_verdict.hpp"
#include "verify/oracle/rows.hpp"

namespace vkrope::oracle {

// An element of an output beside its exact value.
struct Compared {
    Place place = {};
    std::uint32_t got = 0;  // its bits
    Approximate exact = {};
    bool computed = false;      // false: it must be the input, rounded if the type differs
    bool nan_mismatch = false;  // it is computed, and it is NaN or must be NaN, but not both
    long double distance = 0;   // from the exact value to the reals that `got` stands for;
                                // infinite if one of the two is NaN
    long double share = 0;      // of the error that the contract allows; never NaN

    bool is_right() const { return share <= 1; }
};

// Compares the elements of an output that is not quantised. `input` and `output` point to the
// first element of the layouts.
class ElementJudge {
   public:
    ElementJudge(const Definition& definition, const void* input, const void* output);

    // Compares [heads, head_dim] of a token, and calls visit(const Compared&) for each element
    // that is stored.
    template <class Visit>
    void token(std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels,
               const Visit& visit) const {
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            row({batch, token, head, 0}, channels.subspan(head * in_.head_dim, in_.head_dim),
                visit);
        }
    }

    // Compares a row; place.channel is 0.
    template <class Visit>
    void row(const Place& place, std::span<const Approximate> channels, const Visit& visit) const {
        const std::uint64_t to = row_of(out_, place);
        if (to == nowhere) return;
        const std::vector<std::uint64_t>& sources = is_rotated(place) ? passed_ : moved_;
        Compared one = {.place = place};
        for (std::uint64_t& c = one.place.channel; c < channels.size(); ++c) {
            one.got = load(output_, bytes_of(out_.type), to + c);
            one.exact = channels[c];
            one.computed = sources[c] == nowhere;
            one.nan_mismatch = false;
            one.distance = one.share = 0;
            // Most elements of 16 bits lie inside the interval that rounds to them.
            if (!one.computed || !elements_.holds(one.got, one.exact.value))
                compare(sources[c], one);
            visit(std::as_const(one));
        }
    }

    // Returns the error of a computed element, less the absolute allowance, in units of u * a *
    // (|x0| + |x1|); only for a definition without other ops.
    double error_u(const Compared& one) const;

   private:
    bool is_rotated(const Place& place) const;
    void compare(std::uint64_t source, Compared& one) const;

    const Definition& definition_;
    const Tensor &in_, &out_;
    const void *input_, *output_;
    const ElementTable& elements_;
    // [head_dim] Where a channel that passes through comes from, or `nowhere` for one that is
    // computed: of tokens that are rotated, and of those that are not.
    std::vector<std::uint64_t> passed_, moved_;
};

// The result of comparing an output with its definition.
struct Verdict {
    std::uint64_t elements = 0, within = 0;  // compared, and within the contract; for a quantised
                                             // output codes and scales
    // Largest ElementJudge::error_u(); 0 if the definition has other ops.
    double largest_error_u = 0;
    bool nan_mismatch = false;  // an output is NaN and the exact value is not, or the reverse
    bool bits_changed = false;  // an element that no op changes is not the input
    // The first element with the largest share of its allowed error, at most 1 if all are right.
    Compared worst = {};
    CodesVerdict codes = {};  // of a quantised output

    bool right() const { return elements == within; }
    // Add an element, or the verdict on later elements. set() stores the verdict on all codes.
    void add(const Compared& one);
    void add(const Verdict& later);
    void set(const CodesVerdict& of_all);
};

// Compares `output`, laid out as definition.out, with apply_ops() of `input`, rounded once to
// nearest even or quantised. Only stored rows are compared, not elements between them or rows
// without a slot.
//
// scales    [batch, tokens, heads, groups], if the store computes scales
// progress  called with the fraction done, 0 to 1
Verdict compare(const Definition& definition, const void* input, const void* output,
                std::span<const float> scales = {},
                const std::function<void(double)>& progress = {});

// Returns "batch 0 token 17 head 3 channel 5: got ..., exact ...".
std::string text_of(const Definition& definition, const Compared& one);

// Returns one sentence on what is wrong and where. Empty: nothing.
std::string problem_of(const Definition& definition, const Verdict& verdict);

}  // namespace vkrope::oracle
