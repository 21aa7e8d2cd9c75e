// SPDX-License-Identifier: MIT
// One dispatch from the projection to the cache, against what it replaces: norms of Q and of K, the
// rotation, Hadamard transforms, and the store of K and V, by vkrope's own kernels.
#include <cstring>
#include <memory>

#include "rows.hpp"
#include "runtime/device_impl.hpp"
#include "shell/words.hpp"

namespace vkrope::bench {

namespace {

using tools::check;
using tools::ExitCode;
using tools::fail;
using tools::Subject;
using tools::value_of;

struct FinishShape {
    const char *name, *model;
    std::uint32_t tokens, q_heads, k_heads, head_dim;
    NormKind norm = NormKind::rms;
    NormSpan span = NormSpan::head;
    Pairing pairing = Pairing::half_split;
};
constexpr FinishShape finish_shapes[] = {
    {"prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128},
    {"decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128},
    {"prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256},
    {"decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256},
    {"prefill_olmo2_7b", "OLMo 2 7B", 512, 32, 32, 128, NormKind::rms, NormSpan::token},
    {"decode_olmo2_7b", "OLMo 2 7B", 1, 32, 32, 128, NormKind::rms, NormSpan::token},
    {"image_flux", "Flux, a quarter of 1024 x 1024", 1152, 24, 24, 128, NormKind::rms,
     NormSpan::head, Pairing::interleaved}};
constexpr FinishShape cache_shapes[] = {
    {"prefill_llama3_1_8b", "Llama 3.1 8B", 512, 32, 8, 128, NormKind::none},
    {"decode_llama3_1_8b", "Llama 3.1 8B", 1, 32, 8, 128, NormKind::none},
    {"prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128},
    {"decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128},
    {"prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256},
    {"decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256}};

/// Types of the input, of a pass's result, and of the caches of K and V.
struct Types {
    Element element, cache;
    bool transforms() const { return is_quantised(cache); }
};

/// The tensors and the kernels of a shape: each way leaves its results in `out`.
class FinishLayer {
   public:
    FinishLayer(Device& device, const FinishShape& shape, const Types& types)
        : device_(device), shape_(shape), types_(types) {
        const std::uint32_t dim = shape.head_dim;
        Rotation rotation{.pairing = shape.pairing, .head_dim = dim, .rotary_dim = dim};
        rotation.inv_freq.resize(dim / 2);
        check(default_inv_freq(10000, dim, rotation.inv_freq.data()), Subject::device);
        table_ = value_of(AngleTable::make(device, rotation, AngleSource::by_default, shape.tokens),
                          Subject::device);
        make_tensors();
        if (shape.norm != NormKind::none)
            norm_ = {.kind = shape.norm,
                     .span = shape.span,
                     .eps = 1e-6f,
                     .weight = shape.span == NormSpan::token ? ParameterShape::head_channel
                                                             : ParameterShape::channel};
        make_whole();
        make_passes();
    }

    /// Bytes that the one dispatch, and the passes, read and write.
    double bytes() const { return moved(whole_); }
    double bytes_of_passes() const {
        double sum = 0;
        for (const Pass& pass : passes_) sum += moved(pass);
        return sum;
    }
    std::size_t passes() const { return passes_.size(); }

    Status record_fused(VkCommandBuffer commands) { return record(commands, whole_); }
    Status record_plain(VkCommandBuffer commands) { return record(commands, plain_); }
    Status record_passes(VkCommandBuffer commands) {
        for (Pass& pass : passes_) {
            if (pass.waits) record_barrier(commands);
            if (Status s = record(commands, pass); !s) return s;
        }
        return {};
    }

    /// The outputs, one after the other.
    std::vector<std::byte> results() {
        std::vector<std::byte> all(q_.out_bytes + k_.out_bytes + v_.out_bytes);
        std::size_t at = 0;
        for (auto* tensor : {&q_, &k_, &v_}) {
            check(tensor->out.download(all.data() + at, tensor->out_bytes), Subject::device);
            at += tensor->out_bytes;
        }
        return all;
    }

   private:
    struct Placed {
        std::uint32_t heads = 0;
        Buffer in, normed, rotated, transformed, out;
        std::size_t bytes = 0, out_bytes = 0;
    };
    struct Pass {
        KernelInfo info;
        Call call;
        bool waits = false;  ///< for the pass before it
        Owned<Kernel> kernel = {};
        Owned<DescriptorArena> arena = {};
    };

    Status record(VkCommandBuffer commands, Pass& pass) {
        reset(pass.arena.get());
        return vkrope::record(commands, pass.kernel.get(), pass.call, pass.arena.get());
    }

    void record_barrier(VkCommandBuffer commands) {
        const Boundary at = boundary();
        VkMemoryBarrier barrier = {};
        barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        barrier.srcAccessMask = at.output_access;
        barrier.dstAccessMask = at.in_place_access;
        device_.impl().vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0,
                                               nullptr, 0, nullptr);
    }

    Buffer buffer_of(const std::vector<std::byte>& content) {
        Buffer buffer = value_of(Buffer::make(device_, content.size()), Subject::device);
        check(buffer.upload(content.data(), content.size()), Subject::device);
        return buffer;
    }

    std::size_t cache_bytes(std::size_t elements) const {
        return elements / block_channels(types_.cache) * element_bytes(types_.cache);
    }

    void make_tensors() {
        const Pattern pattern(types_.element);
        const auto tensor = [&](Placed& placed, std::uint32_t heads, bool cached) {
            const std::uint64_t count = std::uint64_t{shape_.tokens} * heads * shape_.head_dim;
            const std::vector<std::byte> content = pattern.at(0, count);
            placed.heads = heads;
            placed.bytes = content.size();
            placed.out_bytes = cached ? cache_bytes(count) : placed.bytes;
            for (Buffer* buffer :
                 {&placed.in, &placed.normed, &placed.rotated, &placed.transformed})
                *buffer = buffer_of(content);
            placed.out = buffer_of(std::vector<std::byte>(placed.out_bytes));
        };
        tensor(q_, shape_.q_heads, false);
        tensor(k_, shape_.k_heads, true);
        tensor(v_, shape_.k_heads, true);
        std::vector<std::int32_t> slots(shape_.tokens);
        for (std::uint32_t t = 0; t < shape_.tokens; ++t) slots[t] = std::int32_t(t);
        slots_ = value_of(Buffer::make(device_, slots.size() * 4), Subject::device);
        check(slots_.upload(slots.data(), slots.size() * 4), Subject::device);
        const std::vector<float> ones(std::size_t{2} * (shape_.q_heads + 2) * shape_.head_dim, 1);
        parameters_ = value_of(Buffer::make(device_, ones.size() * 4), Subject::device);
        check(parameters_.upload(ones.data(), ones.size() * 4), Subject::device);
    }

    HeadFormat format(Element out) const { return {types_.element, out, shape_.head_dim, 0}; }
    static Tensor at(const Buffer& buffer, std::uint32_t heads) {
        return {.where = buffer.whole(), .heads = heads};
    }

    // A pass without tensors.
    Pass empty_pass() const {
        return {.info = {.pairing = shape_.pairing,
                         .rotary_dim = shape_.head_dim,
                         .angles = table_.plan().source},
                .call = {.tokens = shape_.tokens,
                         .angles = table_.angles(),
                         .parameters = parameters_.whole()}};
    }

    void rotates(Pass& pass, const Buffer& q, const Buffer& q_out, const Buffer& k,
                 const Buffer& k_out, Element k_type) const {
        pass.info.q = format(types_.element);
        pass.info.k = format(k_type);
        pass.info.q_heads = q_.heads;
        pass.info.k_heads = k_.heads;
        pass.call.q_in = at(q, q_.heads), pass.call.q_out = at(q_out, q_.heads);
        pass.call.k_in = at(k, k_.heads), pass.call.k_out = at(k_out, k_.heads);
    }

    void scatters(Pass& pass) const {
        pass.info.scatter_k = true;
        pass.call.paged_cache.slot_mapping = slots_.whole();
    }

    // A tensor that is not rotated is a V; a kernel has one that it could rotate, too.
    Pass moves(std::uint32_t heads, const Buffer& from, const Buffer& to, Element type) const {
        Pass pass = empty_pass();
        pass.info.k = format(types_.element);
        pass.info.v = format(type);
        pass.info.k_heads = k_.heads;
        pass.info.v_heads = heads;
        pass.call.v_in = at(from, heads), pass.call.v_out = at(to, heads);
        return pass;
    }

    void make(Pass& pass) {
        pass.kernel.reset(value_of(create(device_.ref(), pass.info), Subject::device));
        if (!(device_.ref().enabled & push_descriptor))
            pass.arena.reset(value_of(create_arena(pass.kernel.get(), 4), Subject::device));
    }

    void make_whole() {
        const auto whole = [&](Pass& pass) {
            pass = empty_pass();
            rotates(pass, q_.in, q_.out, k_.in, k_.out, types_.cache);
            pass.info.v = format(types_.cache);
            pass.info.v_heads = v_.heads;
            pass.call.v_in = at(v_.in, v_.heads), pass.call.v_out = at(v_.out, v_.heads);
            scatters(pass);
        };
        whole(plain_);
        make(plain_);
        whole(whole_);
        whole_.info.q_finish.norm = whole_.info.k_finish.norm = norm_;
        if (types_.transforms()) {
            const HadamardBlocks blocks = hadamard_of_llama_cpp(shape_.head_dim, true,
                                                                shape_.head_dim, true);
            whole_.info.q_finish.hadamard = whole_.info.k_finish.hadamard = blocks.q_and_k;
            whole_.info.v_finish.hadamard = blocks.v;
        }
        make(whole_);
    }

    // As graph engines dispatch them. Those of one line do not depend on each other.
    void make_passes() {
        const Element element = types_.element;
        const Buffer *q = &q_.in, *k = &k_.in;
        const auto add = [&](Pass&& pass, bool waits) {
            pass.waits = waits && !passes_.empty();
            make(pass);
            passes_.push_back(std::move(pass));
        };
        if (norm_.kind != NormKind::none) {
            for (Placed* placed : {&q_, &k_}) {
                Pass pass = moves(placed->heads, placed->in, placed->normed, element);
                pass.info.v_finish.norm = norm_;
                add(std::move(pass), false);
            }
            q = &q_.normed, k = &k_.normed;
        }
        const bool transforms = types_.transforms();
        Pass rotation = empty_pass();
        rotates(rotation, *q, transforms ? q_.rotated : q_.out, *k,
                transforms ? k_.rotated : k_.out, element);
        if (!transforms) scatters(rotation);
        add(std::move(rotation), true);
        const Buffer* v = &v_.in;
        if (transforms) {
            const struct {
                const Placed& placed;
                const Buffer &from, &to;
                std::uint32_t block;
            } each[] = {{q_, q_.rotated, q_.out, whole_.info.q_finish.hadamard},
                        {k_, k_.rotated, k_.transformed, whole_.info.k_finish.hadamard},
                        {v_, v_.in, v_.transformed, whole_.info.v_finish.hadamard}};
            for (const auto& [placed, from, to, block] : each) {
                Pass pass = moves(placed.heads, from, to, element);
                pass.info.v_finish.hadamard = block;
                add(std::move(pass), &placed == &q_);
            }
            Pass store = moves(k_.heads, k_.transformed, k_.out, types_.cache);
            scatters(store);
            add(std::move(store), true);
            v = &v_.transformed;
        }
        Pass store = moves(v_.heads, *v, v_.out, types_.cache);
        scatters(store);
        add(std::move(store), false);
    }

    static double moved(const Pass& pass) {
        double sum = 0;
        for (const Tensor* tensor : {&pass.call.q_in, &pass.call.q_out, &pass.call.k_in,
                                     &pass.call.k_out, &pass.call.v_in, &pass.call.v_out}) {
            if (tensor->heads != 0) sum += double(tensor->where.range);
        }
        return sum;
    }

    Device& device_;
    FinishShape shape_;
    Types types_;
    Norm norm_;
    AngleTable table_;
    Buffer parameters_, slots_;
    Placed q_, k_, v_;
    Pass whole_, plain_;
    std::vector<Pass> passes_;
};

using Record = Status (FinishLayer::*)(VkCommandBuffer);

double timed(Device& device, FinishLayer& layer, Record way) {
    return value_of(
        time_ns(device, [&](VkCommandBuffer commands) { return (layer.*way)(commands); }),
        Subject::device);
}

/// In f32 nothing is rounded between the passes, which then must have the bits of the one dispatch.
void check_ways(Device& device, FinishLayer& layer, Element element) {
    timed(device, layer, &FinishLayer::record_passes);
    const std::vector<std::byte> passes = layer.results();
    timed(device, layer, &FinishLayer::record_plain);
    if (layer.results() == passes)
        fail(ExitCode::verification_failed, "the other steps changed no element");
    timed(device, layer, &FinishLayer::record_fused);
    if (element == Element::f32 && layer.results() != passes)
        fail(ExitCode::verification_failed,
             "the one dispatch and the passes that it replaces have other bits");
}

}  // namespace

void Bench::register_finishes() {
    const auto row = [this](const std::string& name, const FinishShape& shape, const Types& types) {
        add(name, [=, this](benchmark::State& state) {
            if (set_up_ != name) {
                row_ = {};
                set_up_ = name;
                finish_.reset();
            }
            if (!finish_) {
                const auto made = std::make_shared<FinishLayer>(device_, shape, types);
                check_ways(device_, *made, types.element);
                finish_ = made;
            }
            time_finish(state, finish_.get(), shape.model);
        });
    };
    for (const FinishShape& shape : finish_shapes) {
        for (const auto& [word, element] : tools::elements)
            row(fmt::format("finish/{}/{}", shape.name, word), shape, {element, element});
    }
    for (const FinishShape& shape : cache_shapes) {
        for (const auto& [word, cache] : tools::stored_elements) {
            if (is_quantised(cache))
                row(fmt::format("cache/{}/{}", shape.name, word), shape, {Element::f32, cache});
        }
    }
}

// The three ways alternate, so that other load on the machine affects all of them.
void Bench::time_finish(benchmark::State& state, void* of, const char* model) {
    auto& layer = *static_cast<FinishLayer*>(of);
    std::vector<double> fused, plain, passes;
    for (auto _ : state) {
        passes.push_back(timed(device_, layer, &FinishLayer::record_passes));
        plain.push_back(timed(device_, layer, &FinishLayer::record_plain));
        fused.push_back(timed(device_, layer, &FinishLayer::record_fused));
        state.SetIterationTime(fused.back() * 1e-9);
    }
    state.counters["bytes_per_second"] = layer.bytes() / median(fused) * 1e9;
    state.counters["passes_over_fused"] = median(passes) / median(fused);
    state.counters["bytes_of_passes"] = layer.bytes_of_passes() / layer.bytes();
    state.counters["passes"] = double(layer.passes());
    state.counters["fused_over_plain"] = median(fused) / median(plain);
    state.SetLabel(model);
}

}  // namespace vkrope::bench
