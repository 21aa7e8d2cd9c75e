// SPDX-License-Identifier: MIT
#include "verify/shrink.hpp"

#include <algorithm>
#include <set>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/random.hpp"
#include "verify/random_kernel.hpp"
#include "verify/text.hpp"

namespace vkrope::verify {
namespace {

using Extents = std::array<std::size_t, 4>;

std::size_t product(const Extents& extents) {
    return extents[0] * extents[1] * extents[2] * extents[3];
}

// A change of the length of arrays.
struct Cut {
    Extents from, to;
    bool keep_last;  // the last elements of each axis, not the first

    // Calls copy(index in `from`, index in `to`) for each element that the arrays have in common.
    template <class Copy>
    void each_common(const Copy& copy) const {
        for (std::size_t at = 0; at < product(to); ++at) {
            std::size_t index = 0, rest = at, step = 1;
            bool is_common = true;
            for (std::size_t axis = 4; axis-- > 0; rest /= to[axis]) {
                const std::size_t skipped = keep_last ? from[axis] - to[axis] : 0,
                                  i = rest % to[axis] + skipped;  // modulo 2^64
                is_common = is_common && i < from[axis];
                index += i * step;
                step *= from[axis];
            }
            if (is_common) copy(index, at);
        }
    }
};

// Cuts an array. An array that was emptied becomes one of zeros.
template <class T>
void cut(std::vector<T>& numbers, const Cut& by) {
    std::vector<T> made(product(by.to));
    if (numbers.size() == product(by.from))
        by.each_common([&](std::size_t i, std::size_t j) { made[j] = numbers[i]; });
    numbers = std::move(made);
}

// Cuts an array of elements, converted to another type. An empty array stays empty, and one of a
// quantised type whose rows change becomes empty.
void cut(Bytes& bytes, Element old, Element element, const Cut& by) {
    if (bytes.empty() || (old == element && by.from == by.to)) return;
    if (is_quantised(old) || is_quantised(element)) {
        if (old != element || by.from[3] != by.to[3]) return bytes.clear();
        Cut of_bytes = by;  // by rows
        of_bytes.from[3] = of_bytes.to[3] = stored_bytes(element, by.from[3]);
        return cut(bytes, of_bytes);
    }
    Bytes made(product(by.to) * element_bytes(element));
    by.each_common([&](std::size_t i, std::size_t j) {
        if (old == element)
            store(element, made, j, stored(element, bytes, i));
        else
            set(element, made, j, value(old, bytes, i));
    });
    bytes = std::move(made);
}

Extents rows_of(const Unplaced& operation, TensorIndex which) {
    const Shape& shape = operation.shape;
    const std::size_t heads[] = {shape.q_heads(), shape.groups, shape.v_heads()};
    return {shape.batch, shape.tokens, heads[which], operation.info.tensor[which].head_dim};
}
Extents scales_of(const Unplaced& operation, TensorIndex which) {
    Extents extents = rows_of(operation, which);
    extents[3] = scale_groups(operation.info.tensor[which]);
    return extents;
}
Extents ids_of(const Unplaced& operation) {
    const std::size_t axes = std::max(operation.info.sections.axes, 1u);
    return {axes, operation.shape.batch, operation.shape.tokens, 1};
}
Extents tokens_of(const Unplaced& operation) {
    return {operation.shape.batch, operation.shape.tokens, 1, 1};
}
Extents weights_of(const Unplaced& operation, TensorIndex which) {
    const Norm& norm = operation.info.tensor[which].ops.norm;
    const Extents rows = rows_of(operation, which);
    return {norm.weight, rows[2], rows[3], norm.channels};
}
Extents phases_of(const Unplaced& operation) {
    return {1, head_groups_of(operation.info), operation.info.rotary_dim / 2, 1};
}
Extents frequencies_of(const Unplaced& operation) {
    Extents extents = phases_of(operation);
    extents[0] = summed_axes(operation.info.sections);
    return extents;
}
Extents table_of(const Unplaced& operation) {
    return {operation.max_position, operation.row_stride, 1, 1};
}

// The arrays of elements: rows, cos and sin.
constexpr std::size_t arrays = 5;
Bytes& array_of(Unplaced& operation, std::size_t i) {
    return i < 3 ? operation.rows[i] : i == 3 ? operation.cos : operation.sin;
}
Element element_of(const Unplaced& operation, std::size_t i) {
    return i < 3 ? operation.info.tensor[i].in : operation.info.table;
}

// Makes fields and arrays fit a change. Arrays have the size that `from` demands.
void repair(Unplaced& operation, const Unplaced& from, bool keep_last) {
    KernelInfo& info = operation.info;
    const auto change_of = [&](auto&& extents_of) {
        return Cut{extents_of(from), extents_of(operation), keep_last};
    };
    for (const TensorIndex which : {Q, K, V}) {
        TensorInfo& of = info.tensor[which];
        if (of.heads != 0) of.heads = std::uint32_t(rows_of(operation, which)[2]);
        if (operation.in_place[which]) of.out = of.in;
        if (of.second_of == VKROPE_SECOND_NONE) of.second = {};
        Norm& norm = of.ops.norm;
        if (norm.channels == 0) norm.first_channel = 0;
        if (norm.weight == VKROPE_PARAMETER_NONE || info.two_parameter_sets)
            norm.weight_bound = VK_FALSE;
        if (!norm.weight_bound) norm.weight_type = {};
        if (weights_of(operation, which) != weights_of(from, which))
            operation.parameters[which].weight.clear();
    }
    if (info.windows[0].rotary_dim != 0) {
        info.rotary_dim = 0;
        for (const vkrope_window& window : info.windows) info.rotary_dim += window.rotary_dim;
    }
    operation.call.first_set_tokens = info.two_parameter_sets
                                          ? std::min(operation.call.first_set_tokens,
                                                     operation.shape.tokens - 1)
                                          : 0;
    if (!info.token_count) operation.token_count = 0;
    if (info.positions != VKROPE_POSITIONS_AXIS_IDS) info.sections = {};
    if (info.positions == VKROPE_POSITIONS_IMPLICIT)
        operation.ids.clear();
    else
        cut(operation.ids, change_of(ids_of));
    if (!info.scatter_kv) operation.slots.clear();
    if (!info.gather_kv) operation.sources.clear();
    if (!info.scatter_kv) operation.v_slots.clear();
    if (!info.gather_kv || (info.scatter_kv && operation.sources.empty()))
        operation.v_sources.clear();
    for (std::vector<std::int64_t>* slots :
         {&operation.slots, &operation.sources, &operation.v_slots, &operation.v_sources}) {
        if (!slots->empty()) cut(*slots, change_of(tokens_of));
        if (!operation.call.paged_cache.int64)  // the call stores them in 32 bits
            for (std::int64_t& slot : *slots) slot = std::int32_t(slot);
    }
    for (const TensorIndex which : {K, V}) {
        std::vector<float>& scales = operation.scales[which];
        const Cut change = change_of([which](const Unplaced& of) { return scales_of(of, which); });
        if (!info.tensor[which].ops.scales_in || change.from[3] != change.to[3]) scales.clear();
        if (!scales.empty()) cut(scales, change);
    }
    if (info.phase)
        cut(operation.phase, change_of(phases_of));
    else
        operation.phase.clear();
    if (!operation.inv_freq.empty()) cut(operation.inv_freq, change_of(frequencies_of));
    if (!operation.cos.empty())  // a table does not grow
        operation.max_position = std::min(operation.max_position, from.max_position);
    if (info.angles != VKROPE_ANGLES_COS_SIN_CACHE) {
        operation.cos.clear();
        operation.sin.clear();
    }
    for (std::size_t i = 0; i < arrays; ++i) {
        Bytes& array = array_of(operation, i);
        cut(array, element_of(from, i), element_of(operation, i),
            change_of([i](const Unplaced& of) {
                return i < 3 ? rows_of(of, TensorIndex(i)) : table_of(of);
            }));
        if (i >= 3) array.resize((array.size() + 3) / 4 * 4);
    }
}

// Returns whether a path is `parent` or a part of it. A * in `parent` stands for any index.
bool is_part(std::string_view path, std::string_view parent) {
    if (path.size() < parent.size()) return false;
    for (std::size_t i = 0; i < parent.size(); ++i)
        if (parent[i] != '*' && parent[i] != path[i]) return false;
    return path.size() == parent.size() || path[parent.size()] == '.' || path[parent.size()] == '[';
}

using Lowered = std::int64_t (*)(std::int64_t distance);

std::int64_t halved(std::int64_t distance) {
    return distance / 2;
}
std::int64_t less_one(std::int64_t distance) {
    return distance - (distance > 0) + (distance < 0);
}
std::int64_t less_two(std::int64_t distance) {
    return less_one(less_one(distance));
}

// Changes the distance of a number of 32 bits or an enumeration from its default.
void lower(const Field& field, const Field& by_default, Lowered lowered) {
    std::visit(
        [&](const auto& of) {
            using T = std::remove_cvref_t<decltype(of)>;
            const T& start = std::get<T>(by_default.value);
            if constexpr (std::is_same_v<T, std::uint32_t*> || std::is_same_v<T, std::int32_t*>) {
                const std::int64_t from = *start, to = from + lowered(*of - from);
                *of = static_cast<std::remove_pointer_t<T>>(to);
            } else if constexpr (std::is_same_v<T, Enumeration>) {
                const std::int64_t from = start.value(), to = from + lowered(of.value() - from);
                of.set(std::uint32_t(to));
            }
        },
        field.value);
}

class Shrinker {
   public:
    Shrinker(const Unplaced& operation, const std::function<bool(const Unplaced&)>& fails)
        : fails_(fails), least_(operation), tried_({text_of(operation)}) {}

    Unplaced least() {
        leave_out_rotation();
        take([](Unplaced& of) { of.token_count = std::min(of.token_count, of.shape.tokens + 1); });
        while (reset_fields() || lower_numbers() || simplify_elements()) {
        }
        return least_;
    }

   private:
    // Changes the operation if it then fails, too.
    template <class Change>
    bool take(const Change& change) {
        for (const bool keep_last : {false, true}) {
            Unplaced candidate = least_;
            change(candidate);
            repair(candidate, least_, keep_last);
            if (tried_.size() > most_tries) return false;
            if (rows_are_apart(candidate) && tried_.insert(text_of(candidate)).second &&
                fails_(candidate)) {
                least_ = std::move(candidate);
                return true;
            }
        }
        return false;
    }

    // Like take() with change(field, default) for each part of a path.
    template <class Change>
    bool take_parts(std::string_view path, const Change& change) {
        return take([&](Unplaced& candidate) {
            const std::vector<Field> fields = fields_of(candidate);
            for (std::size_t i = 0; i < fields.size(); ++i)
                if (is_part(fields[i].path, path)) change(fields[i], defaults_[i]);
        });
    }

    // Tries to leave out the rotation, whose fields must have no value then.
    void leave_out_rotation() {
        take([](Unplaced& candidate) {
            verify::leave_out_rotation(candidate.info);
            candidate.call.positions = {};
            candidate.call.direction = {};
            candidate.call.gain = {};
            candidate.inv_freq.clear();
            candidate.attention_factor = 1;
            candidate.precision = VKROPE_ANGLE_PRECISION_EXACT;
        });
    }

    // Returns the paths of the fields that differ from their defaults. A path with an index also
    // occurs with a *, before.
    std::vector<std::string> changed_paths() {
        std::vector<std::string> paths;
        const std::vector<Field> fields = fields_of(least_);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            std::string path = fields[i].path;
            if (text_of(fields[i]) == text_of(defaults_[i])) continue;
            if (const std::size_t index = path.find('['); index != std::string::npos)
                paths.push_back(path.replace(index + 1, 1, "*"));
            paths.push_back(fields[i].path);
        }
        return paths;
    }

    // Tries the defaults of structs and arrays first, then those of fields.
    bool reset_fields() {
        std::vector<std::pair<std::size_t, std::string>> paths;  // with their depths
        for (const std::string& path : changed_paths()) {
            std::size_t depth = 0, end = 0;
            do {
                end = path.find_first_of(".[", end + 1);
                paths.emplace_back(depth++, path.substr(0, end));
            } while (end != std::string::npos);
        }
        std::stable_sort(paths.begin(), paths.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        bool any = false;
        for (const auto& [depth, path] : paths)
            any |= take_parts(path, [](const Field& field, const Field& by_default) {
                read(field, text_of(by_default));
            });
        return any;
    }

    bool lower_numbers() {
        bool any = false;
        for (const std::string& path : changed_paths()) {
            if (path == "seed" || is_part(path, "limits")) continue;
            const auto take_lowered = [&](Lowered lowered) {
                return take_parts(path, [&](const Field& field, const Field& by_default) {
                    lower(field, by_default, lowered);
                });
            };
            while (take_lowered(halved) || take_lowered(less_two) || take_lowered(less_one))
                any = true;
        }
        while (!least_.cos.empty() &&
               take([](Unplaced& of) { of.max_position = (of.max_position + 1) / 2; }))
            any = true;
        return any;
    }

    // Tries set(candidate, i) for all elements of an array, its halves, quarters ...
    template <class Set>
    bool set_elements(std::size_t count, const Set& set) {
        bool any = false;
        for (std::size_t part = count; part > count / 64; part /= 2)
            for (std::size_t first = 0; first < count; first += part)
                any |= take([&](Unplaced& candidate) {
                    for (std::size_t i = first; i < std::min(first + part, count); ++i)
                        set(candidate, i);
                });
        return any;
    }

    // Tries 0 for positions, phases and values, and 1 for other values.
    bool simplify_elements() {
        bool any = set_elements(
            least_.ids.size(), [](Unplaced& of, std::size_t i) { of.ids[i] = 0; });
        any |= set_elements(least_.phase.size(),
                            [](Unplaced& of, std::size_t i) { of.phase[i] = 0; });
        for (std::size_t array = 0; array < arrays; ++array) {
            for (const int number : {0, 1}) {
                const std::size_t count = array_of(least_, array).size() /
                                          element_bytes(element_of(least_, array));
                any |= set_elements(count, [&](Unplaced& of, std::size_t i) {
                    const Element element = element_of(of, array);
                    Bytes& bytes = array_of(of, array);
                    if (is_quantised(element)) {
                        if (number == 0)
                            std::fill_n(&bytes[i * element_bytes(element)], element_bytes(element),
                                        std::byte());
                        return;
                    }
                    if (number == 0 || stored(element, bytes, i) != 0)
                        set(element, bytes, i, number);
                });
            }
        }
        return any;
    }

    const std::function<bool(const Unplaced&)>& fails_;
    Unplaced least_, default_;
    const std::vector<Field> defaults_ = fields_of(default_);
    std::set<std::string> tried_;
};

}  // namespace

Unplaced shrunk(const Unplaced& operation, const std::function<bool(const Unplaced&)>& fails) {
    return Shrinker(operation, fails).least();
}

}  // namespace vkrope::verify
