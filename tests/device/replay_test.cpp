// SPDX-License-Identifier: MIT
// Submits one recording of a step again and again, for a batch whose sequences start, grow, shift,
// move pages and end. Compares every byte with steps that are recorded anew, by kernels without
// token_count and from ids, slots and factors that the host computes.
#include <algorithm>
#include <cmath>
#include <random>

#include "support/recording.hpp"

namespace vkrope::test {
namespace {

constexpr std::uint32_t sequences = 32, most_tokens = 64, q_heads = 4, k_heads = 2, head_dim = 32,
                        page_size = 8, row_pages = 6, row_stride = 7, cache_pages = 200,
                        covered = 39;  // positions of both tables; all of the last row of factors
constexpr QueryScale query_scale = {VKROPE_QUERY_SCALING_LLAMA4, 8, 0.5};
using Part = VkDescriptorBufferInfo;
using Ints = std::vector<std::int32_t>;

// The parts of the buffers, at multiples of 256 and with guard bytes after each.
struct Parts {
    // What the host gives to a step.
    Part query_lens, seq_lens, offsets, block_table, moves, deltas, sources, destinations, q, k, v;
    VkDeviceSize input_bytes;
    // What a step computes. Each call has a counter.
    Part ids, slots, factors, tokens, count_positions, count_moves[2], count_layers[2], q_out[2],
        second;
    VkDeviceSize output_bytes;
    // The caches of two layers, and the scales of one, which follow the outputs in their buffer.
    Part k_cache[2], v_cache[2], scales;
    VkDeviceSize state_bytes;

    Parts() {
        VkDeviceSize end = 0;
        const auto take = [&end](VkDeviceSize bytes) {
            const Part part = {VK_NULL_HANDLE, end, bytes};
            end += (bytes + 511) / 256 * 256;
            return part;
        };
        constexpr VkDeviceSize q_elements = most_tokens * q_heads * head_dim,
                               k_elements = most_tokens * k_heads * head_dim,
                               rows = cache_pages * page_size * k_heads;
        query_lens = take(4 * sequences);
        seq_lens = take(4 * sequences);
        offsets = take(4 * sequences);
        block_table = take(4 * sequences * row_stride);
        moves = take(4);
        for (Part* part : {&deltas, &sources, &destinations}) *part = take(4 * most_tokens);
        q = take(2 * q_elements);
        k = take(2 * k_elements);
        v = take(2 * k_elements);
        input_bytes = end;
        end = 0;
        for (Part* part : {&ids, &slots, &factors}) *part = take(4 * most_tokens);
        for (Part* part : {&tokens, &count_positions, &count_moves[0], &count_moves[1],
                           &count_layers[0], &count_layers[1]})
            *part = take(4);
        for (Part& part : q_out) part = take(2 * q_elements);
        second = take(2 * k_elements);
        output_bytes = end;
        k_cache[0] = take(rows * head_dim * 2);  // f16
        v_cache[0] = take(rows * head_dim * 2);
        k_cache[1] = take(rows * 34);  // q8_0: one block
        v_cache[1] = take(rows * head_dim);
        scales = take(rows * 4);
        state_bytes = end;
    }
} const parts;

// ---- The batch, as a scheduler of an engine sees it ----

// What the host gives to one step.
struct Step {
    Ints query_lens = Ints(sequences), seq_lens = Ints(sequences), offsets = Ints(sequences),
         block_table = Ints(sequences * row_stride, 12345),  // between rows: not read
        deltas = Ints(most_tokens), sources = Ints(most_tokens, -1),
         destinations = Ints(most_tokens, -1);
    std::uint32_t moves = 0;  // the number in the buffer, which may exceed most_tokens
};

struct Sequence {
    bool active = false;
    std::int32_t places = 0;  // tokens so far
    std::int32_t offset = 0;  // from places to positions
    std::int32_t pages[row_pages];

    std::int32_t slot(std::int32_t place) const {
        const std::int32_t page = pages[place / std::int32_t(page_size)];
        return page < 0 ? -1 : page * std::int32_t(page_size) + place % std::int32_t(page_size);
    }
};

class Batch {
   public:
    // How often something happened.
    struct {
        int starts = 0, ends = 0, chunks = 0, shifts = 0, page_moves = 0, idle = 0, spoiled = 0;
    } happened;

    Batch() {
        for (std::int32_t page = 0; page < std::int32_t(cache_pages); ++page) free_.push_back(page);
    }

    Step next() {
        Step step;
        rows_ = 0;
        if (below(4) == 0) shift(step);
        if (below(4) == 0) move_page(step);
        step.moves = rows_;
        std::uint32_t left = below(40) == 0 ? 0 : most_tokens;
        happened.idle += left == 0;
        for (std::uint32_t i = 0; i < sequences; ++i) {
            const std::uint32_t tokens = std::min(grow(all_[i]), left);
            left -= tokens;
            step.query_lens[i] = std::int32_t(tokens);
            append(all_[i], tokens);
            step.seq_lens[i] = all_[i].places;
            step.offsets[i] = all_[i].offset;
            for (std::uint32_t p = 0; p < row_pages; ++p)
                step.block_table[i * row_stride + p] = all_[i].active ? all_[i].pages[p] : -1;
        }
        if (below(20) == 0) spoil(step);
        if (step.moves <= most_tokens) {  // what follows the count must not be read
            for (std::uint32_t row = rows_; row < most_tokens; ++row) {
                step.sources[row] = std::int32_t(below(cache_pages * page_size));
                step.destinations[row] = std::int32_t(below(cache_pages * page_size));
                step.deltas[row] = -1;
            }
        }
        return step;
    }

    std::uint32_t below(std::uint32_t end) { return std::uint32_t(random_()) % end; }

   private:
    // Starts or ends the sequence, and returns the number of its tokens in this step.
    std::uint32_t grow(Sequence& of) {
        std::uint32_t tokens = below(16) == 0 ? 2 + below(3) : 1;
        if (!of.active) {
            if (below(8) != 0) return 0;
            of = {};
            of.active = true;
            std::fill(std::begin(of.pages), std::end(of.pages), -1);
            tokens = 1 + below(8);
            ++happened.starts;
            happened.chunks += tokens > 1;
        }
        const std::int32_t end = of.places + std::int32_t(tokens);
        if (below(60) != 0 && end <= std::int32_t(row_pages * page_size) &&
            end + of.offset <= std::int32_t(covered))
            return tokens;
        for (std::int32_t& page : of.pages) release(page);
        of = {};
        ++happened.ends;
        return 0;
    }

    void append(Sequence& of, std::uint32_t tokens) {
        for (; tokens != 0; --tokens, ++of.places) {
            std::int32_t& page = of.pages[of.places / std::int32_t(page_size)];
            if (page < 0) page = take_page();
        }
    }

    std::int32_t take_page() {
        std::swap(free_[below(std::uint32_t(free_.size()))], free_.back());
        const std::int32_t page = free_.back();
        free_.pop_back();
        return page;
    }
    void release(std::int32_t& page) {
        if (page >= 0) free_.push_back(page);
        page = -1;
    }

    void add_row(Step& step, std::int32_t from, std::int32_t to, std::int32_t delta) {
        step.sources[rows_] = from;
        step.destinations[rows_] = to;
        step.deltas[rows_++] = delta;
    }

    // Drops the first tokens of a sequence. The keys of the others turn back where they are.
    void shift(Step& step) {
        Sequence& of = all_[below(sequences)];
        const std::int32_t length = of.places + of.offset, first = of.places - length;
        if (!of.active || length < 4) return;
        const std::int32_t dropped = 1 + std::int32_t(below(std::uint32_t(length) / 2));
        of.offset -= dropped;
        for (std::int32_t place = first + dropped; place < of.places; ++place)
            add_row(step, of.slot(place), of.slot(place), -dropped);
        for (std::int32_t page = 0; (page + 1) * std::int32_t(page_size) <= first + dropped; ++page)
            release(of.pages[page]);
        ++happened.shifts;
    }

    // Moves a page of a sequence to a free one. Its keys keep their positions.
    void move_page(Step& step) {
        Sequence& of = all_[below(sequences)];
        const std::uint32_t which = below(row_pages);
        if (!of.active || of.pages[which] < 0 || rows_ != 0) return;
        const std::int32_t from = of.pages[which], to = take_page();
        for (std::int32_t row = 0; row < std::int32_t(page_size); ++row)
            add_row(step, from * std::int32_t(page_size) + row, to * std::int32_t(page_size) + row,
                    0);
        release(of.pages[which]);
        of.pages[which] = to;
        ++happened.page_moves;
    }

    // Gives a step wrong numbers of one kind after the other, as a bug in a scheduler would.
    void spoil(Step& step) {
        std::uint32_t i = below(sequences), left = sequences;
        for (; step.query_lens[i] == 0 && left != 0; --left) i = (i + 1) % sequences;
        if (left == 0) return;
        const std::uint32_t last = std::uint32_t(step.seq_lens[i] - 1) / page_size;
        switch (happened.spoiled++ % 4) {
            case 0: step.seq_lens[i] += 100; break;  // beyond the table, and beyond the positions
            case 1: step.block_table[i * row_stride + last] = 5000; break;
            case 2: step.moves = below(2) == 0 ? most_tokens + 1 : ~0u; break;
            case 3:
                step.query_lens.back() += std::int32_t(most_tokens);
                step.seq_lens.back() += std::int32_t(most_tokens);
        }
    }

    Sequence all_[sequences];
    Ints free_;
    std::uint32_t rows_ = 0;  // that move in this step
    std::mt19937 random_{61};
};

// What vkrope_record_positions makes of a step.
struct Made {
    Ints ids = Ints(most_tokens), slots = Ints(most_tokens, -1);
    std::vector<float> factors = std::vector<float>(most_tokens, 1.0f);
    std::uint32_t tokens = 0, out_of_range = 0;

    explicit Made(const Step& step) {
        for (std::uint32_t i = 0; i < sequences; ++i) {
            for (std::int32_t t = 0; t < step.query_lens[i]; ++t) {
                if (tokens == most_tokens) {
                    ++out_of_range;
                    return;
                }
                const std::int32_t place = step.seq_lens[i] - step.query_lens[i] + t,
                                   position = place + step.offsets[i],
                                   column = place / std::int32_t(page_size);
                ids[tokens] = position;
                const std::int32_t row = (position + 1) / 8;  // of the table of factors
                if (position < std::int32_t(covered))
                    factors[tokens] = float(1 + query_scale.beta * std::log1p(row));
                else
                    ++out_of_range;
                const std::int32_t page =
                    column < std::int32_t(row_pages)
                        ? step.block_table[i * row_stride + std::uint32_t(column)]
                        : INT32_MAX;
                if (page >= std::int32_t(cache_pages))
                    ++out_of_range;
                else if (page >= 0)
                    slots[tokens] = page * std::int32_t(page_size) +
                                    place % std::int32_t(page_size);
                ++tokens;
            }
        }
    }
};

// ---- The calls ----

// Returns the kernels of two layers. The first has no ops; the second has norms, factors of
// queries, quantised caches, and packed keys.
KernelInfo layer_info(int layer, bool counted, Mapping mapping) {
    KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                       .rotary_dim = head_dim,
                       .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                       .positions = VKROPE_POSITIONS_IDS,
                       .mapping = mapping,
                       .scatter_kv = true,
                       .token_count = counted};
    for (TensorInfo& tensor : info.tensor) tensor = {VKROPE_F16, VKROPE_F16, head_dim, 0, k_heads};
    auto& [q, k, v] = info.tensor;
    q.heads = q_heads;
    if (layer == 0) return info;
    q.ops.scale_tokens = true;
    q.ops.norm = k.ops.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
    k.out = VKROPE_Q8_0;
    k.second_of = VKROPE_SECOND_RESULT;
    k.second = VKROPE_F16;
    v.out = VKROPE_INT8;
    v.ops.store_scale = VKROPE_STORE_SCALE_MADE;
    return info;
}

// Returns the kernel that moves the rows of a layer's caches.
KernelInfo move_info(int layer, bool counted, Mapping mapping) {
    KernelInfo info = layer_info(0, counted, mapping);
    info.gather_kv = true;
    auto& [q, k, v] = info.tensor;
    q = {};
    if (layer == 0) return info;
    k.in = k.out = VKROPE_Q8_0;
    v.in = v.out = VKROPE_INT8;
    v.ops.store_scale = VKROPE_STORE_SCALE_MADE;
    v.ops.scales_in = true;
    return info;
}

Part in(const Buffer& buffer, Part part) {
    part.buffer = buffer.handle();
    return part;
}

// The memory of the replayed steps, or of those that are recorded anew, with its kernels.
class Engine {
   public:
    // counted  the kernels read the number of tokens from a buffer
    Engine(Device& on, const AngleTable& table, bool counted, Mapping mapping)
        : input(must(Buffer::make(on, parts.input_bytes))),
          state(upload(on, random_elements(VKROPE_F16, parts.state_bytes / 2, 62))), table_(table),
          counted_(counted) {
        for (const Part& counter :
             {parts.count_positions, parts.count_moves[0], parts.count_moves[1],
              parts.count_layers[0], parts.count_layers[1]}) {
            const std::uint32_t zero = 0;
            must(state.upload(&zero, 4, counter.offset));
        }
        for (const int layer : {0, 1}) {
            kernels_[layer] = make_kernel(on, move_info(layer, counted, mapping));
            kernels_[2 + layer] = make_kernel(on, layer_info(layer, counted, mapping));
        }
        arena_ = make_arena(on, kernels_[0], 64);
    }

    // Records the moves of rows, or the two layers, of at most this many tokens.
    Status record_moves(VkCommandBuffer commands, std::uint32_t tokens) const {
        Status status;
        for (const int layer : {0, 1}) {
            Call call = call_of(tokens, in(input, parts.deltas), in(input, parts.moves));
            call.gain = VKROPE_GAIN_OMIT;
            call.in[K] = call.out[K] = {.where = in(state, parts.k_cache[layer]), .heads = k_heads};
            call.in[V] = call.out[V] = {.where = in(state, parts.v_cache[layer]), .heads = k_heads};
            call.paged_cache.slot_mapping = numbers(input, parts.destinations, tokens);
            call.paged_cache.source_mapping = numbers(input, parts.sources, tokens);
            call.out_of_range = in(state, parts.count_moves[layer]);
            if (layer == 1) call.scales_in[V] = call.scales_out[V] = in(state, parts.scales);
            if (status) status = record(commands, kernels_[layer].get(), call, arena_.get());
        }
        return status;
    }
    Status record_layers(VkCommandBuffer commands, std::uint32_t tokens) const {
        Status status;
        for (const int layer : {0, 1}) {
            Call call = call_of(tokens, in(state, parts.ids), in(state, parts.tokens));
            call.in[Q] = {.where = in(input, parts.q), .heads = q_heads};
            call.out[Q] = {.where = in(state, parts.q_out[layer]), .heads = q_heads};
            call.in[K] = {.where = in(input, parts.k), .heads = k_heads};
            call.out[K] = {.where = in(state, parts.k_cache[layer]), .heads = k_heads};
            call.in[V] = {.where = in(input, parts.v), .heads = k_heads};
            call.out[V] = {.where = in(state, parts.v_cache[layer]), .heads = k_heads};
            call.paged_cache.slot_mapping = numbers(state, parts.slots, tokens);
            call.out_of_range = in(state, parts.count_layers[layer]);
            if (layer == 1) {
                call.scale_tokens[Q] = numbers(state, parts.factors, tokens);
                call.scales_out[V] = in(state, parts.scales);
                call.second[K] = in(state, parts.second);
            }
            if (status) status = record(commands, kernels_[2 + layer].get(), call, arena_.get());
        }
        return status;
    }

    DescriptorArena* arena() const { return arena_.get(); }

    Buffer input, state;

   private:
    static Part numbers(const Buffer& buffer, const Part& part, std::uint32_t tokens) {
        return {buffer.handle(), part.offset, 4 * tokens};
    }
    Call call_of(std::uint32_t tokens, Part ids, Part token_count) const {
        Call call{.tokens = tokens, .angles = table_.angles()};
        ids.range = 4 * tokens;
        call.positions.ids = ids;
        call.paged_cache.page_size = page_size;
        if (counted_) call.token_count = token_count;
        return call;
    }

    const AngleTable& table_;
    bool counted_;
    Owned<Kernel> kernels_[4];
    Owned<DescriptorArena> arena_;
};

// ---- The recordings ----

template <class Function>
Function function_of(const Device& on, const char* name) {
    return reinterpret_cast<Function>(on.ref().get_instance_proc_addr(on.ref().instance, name));
}

constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;

// Makes what was written before visible to what follows.
Status record_barrier(const Device& on, VkCommandBuffer commands, VkPipelineStageFlags from,
                      VkPipelineStageFlags to) {
    const auto access = [](VkPipelineStageFlags stages) {
        VkAccessFlags all = 0;
        if (stages & compute) all |= VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
        if (stages & transfer) all |= VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
        return all;
    };
    VkMemoryBarrier memory = {};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = access(from);
    memory.dstAccessMask = access(to);
    function_of<PFN_vkCmdPipelineBarrier>(on, "vkCmdPipelineBarrier")(
        commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
    return {};
}

// Two command buffers, recorded once, each with its own inputs and results in memory, so that two
// steps are pending together.
class Replayed {
   public:
    // secondary  moves and layers are in secondary command buffers
    Replayed(Device& on, const AngleTable& table, Mapping mapping, bool secondary)
        : engine(on, table, true, mapping), on_(on), positions_(must(create_positions(on.ref()))) {
        QueryScaleLayout layout = must(plan_query_scales(query_scale, covered));
        std::vector<float> rows(layout.rows);
        must(fill_query_scales(layout, rows.data(), layout.bytes));
        factors_ = upload(on, bytes_of(rows));
        for (const int i : {0, 1}) {
            inputs[i] = must(Buffer::make(on, parts.input_bytes));
            results[i] = must(Buffer::make(on, parts.output_bytes));
        }
        VkCommandPoolCreateInfo pool = {};
        pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool.queueFamilyIndex = on.queue_family();
        need(vk<PFN_vkCreateCommandPool>("vkCreateCommandPool")(on.ref().device, &pool, nullptr,
                                                                &pool_));
        allocate(VK_COMMAND_BUFFER_LEVEL_PRIMARY, steps_);
        if (secondary) allocate(VK_COMMAND_BUFFER_LEVEL_SECONDARY, layers_);
        for (const int i : {0, 1}) record_step(steps_[i], layers_[i], i, layout);
        VkFenceCreateInfo fence = {};
        fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
        for (VkFence& each : fences_)
            need(vk<PFN_vkCreateFence>("vkCreateFence")(on.ref().device, &fence, nullptr, &each));
    }
    ~Replayed() {
        for (const VkFence fence : fences_)
            vk<PFN_vkDestroyFence>("vkDestroyFence")(on_.ref().device, fence, nullptr);
        vk<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(on_.ref().device, pool_, nullptr);
    }
    Replayed(const Replayed&) = delete;
    Replayed& operator=(const Replayed&) = delete;

    void submit(int i) {
        VkSubmitInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
        info.commandBufferCount = 1;
        info.pCommandBuffers = &steps_[i];
        need(vk<PFN_vkQueueSubmit>("vkQueueSubmit")(on_.queue(), 1, &info, fences_[i]));
    }
    void wait() {
        need(vk<PFN_vkWaitForFences>("vkWaitForFences")(on_.ref().device, 2, fences_, VK_TRUE,
                                                        ~std::uint64_t{0}));
        need(vk<PFN_vkResetFences>("vkResetFences")(on_.ref().device, 2, fences_));
    }

    Engine engine;
    Buffer inputs[2], results[2];

   private:
    template <class Function>
    Function vk(const char* name) const {
        return function_of<Function>(on_, name);
    }
    static void need(VkResult result) { REQUIRE(result == VK_SUCCESS); }

    void allocate(VkCommandBufferLevel level, VkCommandBuffer (&commands)[2]) {
        VkCommandBufferAllocateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        info.commandPool = pool_;
        info.level = level;
        info.commandBufferCount = 2;
        need(vk<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(on_.ref().device, &info,
                                                                          commands));
    }
    void begin(VkCommandBuffer commands) {
        VkCommandBufferInheritanceInfo nothing = {};
        nothing.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
        VkCommandBufferBeginInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        info.pInheritanceInfo = &nothing;
        need(vk<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands, &info));
    }
    void end(VkCommandBuffer commands) {
        need(vk<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands));
    }

    void record_layers(VkCommandBuffer commands) {
        must(engine.record_moves(commands, most_tokens));
        must(record_barrier(on_, commands, compute, compute));
        must(engine.record_layers(commands, most_tokens));
    }

    void record_step(VkCommandBuffer commands, VkCommandBuffer layers, int i,
                     const QueryScaleLayout& layout) {
        const auto copy = vk<PFN_vkCmdCopyBuffer>("vkCmdCopyBuffer");
        const VkBufferCopy input = {0, 0, parts.input_bytes}, output = {0, 0, parts.output_bytes};
        if (layers) {
            begin(layers);
            record_layers(layers);
            end(layers);
        }
        begin(commands);
        must(record_barrier(on_, commands, compute | transfer, compute | transfer));
        copy(commands, inputs[i].handle(), engine.input.handle(), 1, &input);
        must(record_barrier(on_, commands, transfer, compute));
        PositionCall call{.tokens = most_tokens, .sequences = sequences};
        call.query_lens = in(engine.input, parts.query_lens);
        call.seq_lens = in(engine.input, parts.seq_lens);
        call.offsets = in(engine.input, parts.offsets);
        call.out = in(engine.state, parts.ids);
        call.block_table = in(engine.input, parts.block_table);
        call.pages = row_pages;
        call.block_table_stride = row_stride;
        call.page_size = page_size;
        call.cache_pages = cache_pages;
        call.slot_mapping = in(engine.state, parts.slots);
        call.query_scales = factors_.whole();
        call.query_scale_layout = &layout;
        call.scale_tokens = in(engine.state, parts.factors);
        call.token_count = in(engine.state, parts.tokens);
        call.out_of_range = in(engine.state, parts.count_positions);
        must(record_positions(commands, positions_.get(), call, engine.arena()));
        must(record_barrier(on_, commands, compute, compute));
        if (layers)
            vk<PFN_vkCmdExecuteCommands>("vkCmdExecuteCommands")(commands, 1, &layers);
        else
            record_layers(commands);
        must(record_barrier(on_, commands, compute, transfer));
        copy(commands, engine.state.handle(), results[i].handle(), 1, &output);
        end(commands);
    }

    Device& on_;
    Owned<PositionKernel> positions_;
    Buffer factors_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer steps_[2] = {}, layers_[2] = {};
    VkFence fences_[2] = {};
};

// Records each step anew.
class Anew {
   public:
    Anew(Device& on, const AngleTable& table, Mapping mapping)
        : engine(on, table, false, mapping), on_(on),
          made_(download(engine.state, parts.count_moves[0].offset)) {}

    // Runs a step with `input`, the same bytes as the replayed step has. Returns its outputs.
    Bytes run(const Step& step, const Bytes& input) {
        const Made made(step);
        out_of_range_ += made.out_of_range;
        clamped_ += step.moves > most_tokens;
        must(engine.input.upload(input.data(), input.size()));
        const auto put = [this](const Part& part, const auto& numbers) {
            std::memcpy(&made_[part.offset], numbers.data(), part.range);
        };
        put(parts.ids, made.ids);
        put(parts.slots, made.slots);
        put(parts.factors, made.factors);
        put(parts.tokens, Ints{std::int32_t(made.tokens)});
        put(parts.count_positions, Ints{std::int32_t(out_of_range_)});
        must(engine.state.upload(made_.data(), made_.size()));
        vkrope_arena_reset(engine.arena());
        must(on_.submit([&](VkCommandBuffer commands) {
            Status status = engine.record_moves(commands, std::min(step.moves, most_tokens));
            if (status) status = record_barrier(on_, commands, compute, compute);
            return status ? engine.record_layers(commands, made.tokens) : status;
        }));
        Bytes outputs = download(engine.state, parts.output_bytes);
        for (const Part& counter : parts.count_moves) {  // a number that is too large counts once
            std::uint32_t count;
            std::memcpy(&count, &outputs[counter.offset], 4);
            count += clamped_;
            std::memcpy(&outputs[counter.offset], &count, 4);
        }
        return outputs;
    }

    std::uint32_t out_of_range() const { return out_of_range_; }

    Engine engine;

   private:
    Device& on_;
    Bytes made_;  // what the host computes, and the guard bytes between
    std::uint32_t out_of_range_ = 0, clamped_ = 0;  // so far
};

// Returns the bytes that the host gives to a step, with random rows of Q, K and V.
Bytes input_of(const Step& step, const Bytes& pool, std::uint32_t at) {
    Bytes input(parts.input_bytes);
    const auto put = [&input](const Part& part, const auto& numbers) {
        std::memcpy(&input[part.offset], numbers.data(), part.range);
    };
    put(parts.query_lens, step.query_lens);
    put(parts.seq_lens, step.seq_lens);
    put(parts.offsets, step.offsets);
    put(parts.block_table, step.block_table);
    put(parts.moves, std::vector<std::uint32_t>{step.moves});
    put(parts.deltas, step.deltas);
    put(parts.sources, step.sources);
    put(parts.destinations, step.destinations);
    const std::size_t rows = parts.input_bytes - parts.q.offset;
    std::memcpy(&input[parts.q.offset], &pool[at], rows);
    return input;
}

// Returns the offset of the first byte that differs; the size if none does.
std::size_t difference(const Bytes& a, const Bytes& b) {
    if (std::memcmp(a.data(), b.data(), a.size()) == 0) return a.size();
    return std::size_t(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

void replay(Device& on, Mapping mapping, bool secondary, int steps) {
    const AngleTable table = must(AngleTable::make(on,
                                                   rotation(VKROPE_HALF_SPLIT, head_dim, head_dim),
                                                   VKROPE_ANGLES_FACTORED_TEXTURE, covered));
    Replayed replayed(on, table, mapping, secondary);
    Anew anew(on, table, mapping);
    const Bytes pool = random_elements(VKROPE_F16, 1 << 17, 63);
    Batch batch;
    for (int step = 0; step < steps; step += 2) {
        CAPTURE(step);
        Step given[2];
        Bytes inputs[2], expected[2];
        for (const int i : {0, 1}) {
            given[i] = batch.next();
            inputs[i] = input_of(given[i], pool, 2 * batch.below(1 << 16));
            must(replayed.inputs[i].upload(inputs[i].data(), inputs[i].size()));
        }
        for (const int i : {0, 1}) replayed.submit(i);
        for (const int i : {0, 1}) expected[i] = anew.run(given[i], inputs[i]);
        replayed.wait();
        for (const int i : {0, 1}) {
            const Bytes got = download(replayed.results[i], parts.output_bytes);
            REQUIRE(difference(got, expected[i]) == got.size());
        }
        // The caches and their guard bytes follow the outputs, which the host has partly written.
        Bytes got = download(replayed.engine.state, parts.state_bytes),
              other = download(anew.engine.state, parts.state_bytes);
        std::copy_n(got.begin(), parts.output_bytes, other.begin());
        REQUIRE(difference(got, other) == got.size());
    }
    const auto& happened = batch.happened;
    for (const int often :
         {happened.starts, happened.ends, happened.chunks, happened.shifts, happened.page_moves})
        CHECK(often > steps / 50);
    CHECK(happened.idle > 0);
    CHECK(happened.spoiled > steps / 50);
    CHECK(anew.out_of_range() > std::uint32_t(steps) / 20);
}

}  // namespace

TEST_CASE("a step recorded once, with secondary command buffers, and replayed 200 times") {
    replay(device(), VKROPE_MAPPING_AUTOMATIC, true, 200);
}

TEST_CASE("a step recorded once with an arena, by the mapping for GPUs") {
    replay(device(false), VKROPE_MAPPING_GPU, false, 200);
}

TEST_CASE("a step recorded once and replayed 10 000 times") {
    replay(device(), VKROPE_MAPPING_AUTOMATIC, false, 10000);
}

}  // namespace vkrope::test
