// SPDX-License-Identifier: MIT
// Operations drawn at random, each run twice: as it is, and in other memory by another kernel. Both
// are compared with the definition, and with each other bit for bit. VKROPE_OPERATIONS is their
// number, VKROPE_SEED the first one's seed.
#include "verify/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "dimensions.hpp"
#include "support/recording.hpp"
#include "verify/compare.hpp"
#include "verify/on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::test {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Options of a kernel and limits of its device, none of which may change a bit.
struct Way {
    bool push_descriptors = true;
    ReportedLimits limits = {};
};

/// An operation, and the memory after its call.
struct Item {
    std::uint64_t seed = 0;
    verify::Unplaced unplaced;
    verify::Operation operation = {};
    Bytes after = {};
    std::string problem = {};
    bool refused = false;
};

class Runner {
   public:
    std::size_t dispatches = 0, cut_calls = 0, refused = 0, with_other_limits = 0;
    std::map<std::string, std::size_t> refusals = {};  // sentences without their numbers

    /// Runs all operations, which have one kernel, in one command buffer.
    void run(std::vector<Item>& items, const Way& way) {
        Device& on = device(way.push_descriptors);
        const bool own_limits = way.limits == ReportedLimits{};
        for (Item& item : items) item.operation = verify::placed(item.unplaced);
        const Result<Kernel*> made = kernel_of(reporting(on, way.limits), items[0].operation.info);
        const Owned<Kernel> kernel(made.value);
        std::deque<verify::OnDevice> there;
        std::vector<Call> calls;
        std::vector<Item*> run;
        std::uint64_t sets = 0;
        for (Item& item : items) {
            if (!accepted(item, made.status)) continue;
            Result<verify::OnDevice> memory = verify::OnDevice::make(on, item.operation);
            if (!accepted(item, memory.status)) continue;
            there.push_back(std::move(memory.value));
            const Call call = there.back().call(item.operation.call);
            Result<std::uint64_t> count = vkrope::dispatches(kernel.get(), call);
            if (count && sets + count.value > max_calls) {
                count.status = VKROPE_ERROR_LIMIT_EXCEEDED;
                std::strcpy(count.status.what, "an arena has too few sets for these calls");
            }
            if (!accepted(item, count.status)) {
                there.pop_back();
                continue;
            }
            sets += count.value;
            cut_calls += count.value > 2 ? 1 : 0;
            with_other_limits += own_limits ? 0 : 1;
            calls.push_back(call);
            run.push_back(&item);
        }
        if (run.empty()) return;
        dispatches += sets;
        Owned<DescriptorArena> arena;
        if (sets != 0) arena = make_arena(on, kernel, std::uint32_t(sets));
        must(on.submit([&](VkCommandBuffer commands) {
            for (std::size_t i = 0; i < calls.size(); ++i) {
                const Status status = record(commands, kernel.get(), calls[i], arena.get());
                if (!status) run[i]->problem = status.what;
            }
            return Status{};
        }));
        for (std::size_t i = 0; i < run.size(); ++i)
            run[i]->after = download(there[i].memory(), run[i]->operation.memory.size());
    }

   private:
    // With the requested conversion if the device supports it.
    static Result<Kernel*> kernel_of(const DeviceRef& on, KernelInfo info) {
        Result<Kernel*> made = create(on, info);
        if (info.conversion == VKROPE_CONVERSION_NATIVE &&
            made.status.code == VKROPE_ERROR_NOT_SUPPORTED) {
            info.conversion = VKROPE_CONVERSION_INTEGER;
            made = create(on, info);
        }
        return made;
    }

    bool accepted(Item& item, const Status& status) {
        if (status) return true;
        if (status.code != VKROPE_ERROR_NOT_SUPPORTED &&
            status.code != VKROPE_ERROR_LIMIT_EXCEEDED) {
            item.problem = std::string("it is refused: ") + status.what;
            return false;
        }
        item.refused = true;
        ++refused;
        std::string sentence = vkrope_status_string(status.code) + std::string(": ") + status.what;
        std::replace_if(
            sentence.begin(), sentence.end(), [](char c) { return c >= '0' && c <= '9'; }, '#');
        ++refusals[sentence];
        return false;
    }
};

/// The way of the second run of a kernel: everything is the other way round, and every second one
/// has fewer storage buffers, or shorter ranges so that calls are cut.
Way other_way(std::uint64_t seed, const KernelInfo& info) {
    std::mt19937_64 random(seed);
    Way way = {.push_descriptors = false};
    const bool in_buffer = info.angles == VKROPE_ANGLES_DIRECT_BUFFER ||
                           info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    switch (random() % 4) {
        case 0:
            way.limits.storage_buffers = (info.scatter_kv ? 8 : 4) +
                                         2 * std::uint32_t(random() % 4);
            break;
        case 1:
            if (!in_buffer) way.limits.storage_range = 4096 + 256 * std::uint32_t(random() % 16);
            break;
        default: break;
    }
    return way;
}

KernelInfo other_kernel(KernelInfo info) {
    info.mapping = info.mapping == VKROPE_MAPPING_GPU ? VKROPE_MAPPING_CPU : VKROPE_MAPPING_GPU;
    info.conversion = info.conversion == VKROPE_CONVERSION_INTEGER ? VKROPE_CONVERSION_NATIVE
                                                                   : VKROPE_CONVERSION_INTEGER;
    // Tables in a texture and in a buffer have the same bits.
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE)
        info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    else if (info.angles == VKROPE_ANGLES_DIRECT_BUFFER)
        info.angles = VKROPE_ANGLES_DIRECT_TEXTURE;
    return info;
}

// The bits of a NaN depend on the device; compare() checks those that are copied unconverted.
bool same_rows(vkrope_element element, const Bytes& a, const Bytes& b) {
    if (a == b) return true;
    if (is_quantised(element) || a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size() / element_bytes(element); ++i) {
        if (stored(element, a, i) != stored(element, b, i) &&
            !(std::isnan(value(element, a, i)) && std::isnan(value(element, b, i))))
            return false;
    }
    return true;
}

/// What is wrong with the second run of an operation; empty: nothing.
std::string difference(const Item& first, const Item& second) {
    for (const TensorIndex which : every_tensor) {
        const bool same = same_rows(first.operation.info.tensor[which].out,
                                    verify::packed_rows(first.operation, which, first.after),
                                    verify::packed_rows(second.operation, which, second.after)) &&
                          same_rows(
                              VKROPE_F32,
                              bytes_of(verify::made_scales(first.operation, which, first.after)),
                              bytes_of(verify::made_scales(second.operation, which, second.after)));
        if (!same) return std::string(1, "QKV"[which]) + ": other bits than in other memory";
    }
    return {};
}

void judge(Item& item) {
    if (item.refused || !item.problem.empty()) return;
    // Some of the devices flush subnormals.
    item.problem = verify::compare(item.operation, item.after, true).problem;
}

std::string numbers_of(const verify::Unplaced& operation) {
    const verify::Shape& shape = operation.shape;
    const KernelInfo& info = operation.info;
    const std::uint32_t heads[] = {shape.q_heads(), shape.groups, shape.v_heads()};
    std::string text = "\n    batch " + std::to_string(shape.batch) + ", tokens " +
                       std::to_string(shape.tokens) + ", rotary_dim " +
                       std::to_string(info.rotary_dim) + ", max_position " +
                       std::to_string(operation.max_position);
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = info.tensor[which];
        if (of.head_dim == 0) continue;
        text += std::string("\n    ") + "QKV"[which] + ": " + std::to_string(heads[which]) +
                " heads, head_dim " + std::to_string(of.head_dim) + ", rotary_offset " +
                std::to_string(of.rotary_offset);
    }
    for (const Window& window : info.windows) {
        if (window.rotary_dim != 0)
            text += "\n    window " + std::to_string(window.offset) + " + " +
                    std::to_string(window.rotary_dim);
    }
    return text;
}

/// Runs operations of one kernel twice. Prints what is wrong.
void run_twice(Runner& runner, std::vector<Item>& items, const char* repeat) {
    std::vector<Item> others = items;
    for (Item& other : others) {
        other.unplaced = verify::rearranged(other.unplaced, other.seed);
        other.unplaced.info = other_kernel(other.unplaced.info);
    }
    runner.run(items, {});
    runner.run(others, other_way(items[0].seed, others[0].unplaced.info));
    for (std::size_t i = 0; i < items.size(); ++i) {
        Item &item = items[i], &other = others[i];
        judge(item);
        judge(other);
        const bool both = !item.refused && !other.refused && item.problem.empty() &&
                          other.problem.empty();
        if (both) item.problem = difference(item, other);
        if (item.problem.empty() && !other.problem.empty())
            item.problem = "in other memory: " + other.problem;
        if (item.problem.empty()) continue;
        std::string text = "seed " + std::to_string(item.seed) + ": " + item.problem +
                           "\nagain: VKROPE_SEED=" + std::to_string(item.seed) + " " + repeat +
                           "; the operation:" + numbers_of(item.unplaced);
        for (const Value& of : values_of(item.unplaced))
            text += "\n    " + of.dimension + ": " + of.names[of.index];
        FAIL_CHECK(text);
    }
}

/// Kernels that have every value, whatever the seed: the rarest is in one of about 150.
constexpr std::uint64_t enough_kernels = 1250;

std::uint64_t first_seed() {
    return number("VKROPE_SEED", 20260101);
}

void report(const Runner& runner, std::size_t operations) {
    std::printf(
        "random: %zu operations, twice; %zu dispatches, %zu calls take more than two, %zu on a "
        "device with lower limits; refused as not supported or beyond a limit: %zu\n",
        operations, runner.dispatches, runner.cut_calls, runner.with_other_limits, runner.refused);
    for (const auto& [sentence, count] : runner.refusals)
        std::printf("  %5zu  %s\n", count, sentence.c_str());
}

}  // namespace

TEST_CASE("random operations: the definition, and the same bits in other memory") {
    const std::uint64_t first = first_seed(), count = number("VKROPE_OPERATIONS", 640);
    std::printf("random: seeds %llu to %llu (VKROPE_SEED, VKROPE_OPERATIONS)\n",
                static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + count - 1));
    Runner runner;
    SeenValues seen;
    std::vector<Item> items;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        items.push_back({.seed = seed, .unplaced = verify::random_operation(seed)});
        const bool last_of_kernel = (seed + 1) % verify::operations_of_a_kernel == 0;
        if (!last_of_kernel && seed + 1 != first + count) continue;
        run_twice(runner, items, "VKROPE_OPERATIONS=1");
        for (const Item& item : items) {
            if (!item.refused) seen.add(values_of(item.unplaced));
        }
        items.clear();
    }
    seen.print();
    report(runner, count);
    CHECK(runner.refused < count / 5 + 2);
    if (count < enough_kernels * verify::operations_of_a_kernel) return;
    for (const std::string& value : seen.missing()) FAIL_CHECK(value << ": no operation ran");
}

TEST_CASE("random operations have every value of every dimension") {
    SeenValues seen;
    for (std::uint64_t kernel = 0; kernel < enough_kernels; ++kernel) {
        const std::uint64_t seed = first_seed() + kernel * verify::operations_of_a_kernel;
        seen.add(values_of(verify::random_operation(seed)));
    }
    for (const std::string& value : seen.missing()) FAIL_CHECK(value << ": never drawn");
}

TEST_CASE("random operations of many elements") {
    const std::uint64_t first = first_seed(), count = number("VKROPE_LARGE_OPERATIONS", 5);
    Runner runner;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t seed = first + i * verify::operations_of_a_kernel;
        std::vector<Item> items;
        items.push_back(
            {.seed = seed, .unplaced = verify::random_operation(seed, {.elements = 200000})});
        run_twice(runner, items, "VKROPE_LARGE_OPERATIONS=1");
    }
    report(runner, count);
}

}  // namespace vkrope::test
