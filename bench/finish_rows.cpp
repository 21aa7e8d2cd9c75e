// SPDX-License-Identifier: MIT
// One dispatch from the projection to the cache, against what it replaces: a norm of Q and one of
// K, the rotation with K scattered, and a copy of V, by vkrope's own kernels.
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
    NormSpan span = NormSpan::head;
    Pairing pairing = Pairing::half_split;
};
constexpr FinishShape finish_shapes[] = {
    {"prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128},
    {"decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128},
    {"prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256},
    {"decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256},
    {"prefill_olmo2_7b", "OLMo 2 7B", 512, 32, 32, 128, NormSpan::token},
    {"decode_olmo2_7b", "OLMo 2 7B", 1, 32, 32, 128, NormSpan::token},
    {"image_flux", "Flux, a quarter of 1024 x 1024", 1152, 24, 24, 128, NormSpan::head,
     Pairing::interleaved}};

/// The tensors and the kernels of a shape: each way leaves its results in `out`.
class FinishLayer {
   public:
    FinishLayer(Device& device, const FinishShape& shape, Element element)
        : device_(device), shape_(shape) {
        const std::uint32_t dim = shape.head_dim;
        Rotation rotation{.pairing = shape.pairing, .head_dim = dim, .rotary_dim = dim};
        rotation.inv_freq.resize(dim / 2);
        check(default_inv_freq(10000, dim, rotation.inv_freq.data()), Subject::device);
        table_ = value_of(AngleTable::make(device, rotation, AngleSource::by_default, shape.tokens),
                          Subject::device);
        const HeadFormat format = {element, element, dim, 0};
        const std::uint32_t q = shape.q_heads, k = shape.k_heads;
        const Norm norm = {.kind = NormKind::rms,
                           .span = shape.span,
                           .eps = 1e-6f,
                           .weight = shape.span == NormSpan::token ? ParameterShape::head_channel
                                                                   : ParameterShape::channel};
        const KernelInfo plain = {.pairing = shape.pairing,
                                  .rotary_dim = dim,
                                  .q = format,
                                  .k = format,
                                  .v = format,
                                  .angles = table_.plan().source,
                                  .scatter_k = true,
                                  .q_heads = q,
                                  .k_heads = k,
                                  .v_heads = k};
        KernelInfo fused = plain, norms = plain, rotates = plain;
        fused.q_finish.norm = fused.k_finish.norm = norm;
        norms.scatter_k = false;
        norms.q_finish.norm = norms.k_finish.norm = {};
        norms.v_finish.norm = norm;
        rotates.v = {};
        rotates.v_heads = 0;
        KernelInfo norms_of_q = norms;
        norms_of_q.v_heads = q;
        parameters_ = buffer_of_ones(fused);
        make(fused_, fused);
        make(plain_, plain);
        make(norm_q_, norms_of_q);
        make(norm_k_, norms);
        make(rotate_, rotates);
        make(copy_v_, plain);
        make_tensors(element);
    }

    std::uint64_t q_bytes() const { return q_.bytes; }
    std::uint64_t k_bytes() const { return k_.bytes; }

    Status record_fused(VkCommandBuffer commands) { return record(commands, fused_, all_); }
    Status record_plain(VkCommandBuffer commands) { return record(commands, plain_, all_); }
    Status record_passes(VkCommandBuffer commands) {
        if (Status s = record(commands, norm_q_, norm_q_call_); !s) return s;
        if (Status s = record(commands, norm_k_, norm_k_call_); !s) return s;
        const Boundary at = boundary();
        VkMemoryBarrier barrier = {};
        barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        barrier.srcAccessMask = at.output_access;
        barrier.dstAccessMask = at.in_place_access;
        device_.impl().vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0,
                                               nullptr, 0, nullptr);
        if (Status s = record(commands, rotate_, rotate_call_); !s) return s;
        return record(commands, copy_v_, copy_v_call_);
    }

    /// The outputs, one after the other.
    std::vector<std::byte> results() {
        std::vector<std::byte> all(q_.bytes + 2 * k_.bytes);
        std::size_t at = 0;
        for (auto* tensor : {&q_, &k_, &v_}) {
            check(tensor->out.download(all.data() + at, tensor->bytes), Subject::device);
            at += tensor->bytes;
        }
        return all;
    }

   private:
    struct Placed {
        Buffer in, between, out;  // `between`: normalised
        std::size_t bytes = 0;
    };
    struct Made {
        Owned<Kernel> kernel;
        Owned<DescriptorArena> arena;
    };

    void make(Made& made, const KernelInfo& info) {
        made.kernel.reset(value_of(create(device_.ref(), info), Subject::device));
        if (!(device_.ref().enabled & push_descriptor))
            made.arena.reset(value_of(create_arena(made.kernel.get(), 4), Subject::device));
    }

    Status record(VkCommandBuffer commands, Made& made, const Call& call) {
        reset(made.arena.get());
        return vkrope::record(commands, made.kernel.get(), call, made.arena.get());
    }

    Buffer buffer_of_ones(const KernelInfo& info) {
        const std::size_t bytes = value_of(plan_parameters(info), Subject::device).bytes;
        const std::vector<float> ones(bytes / 4, 1);
        Buffer buffer = value_of(Buffer::make(device_, bytes), Subject::device);
        check(buffer.upload(ones.data(), bytes), Subject::device);
        return buffer;
    }

    void make_tensors(Element element) {
        const Pattern pattern(element);
        const auto tensor = [&](Placed& placed, std::uint32_t heads) {
            const std::uint64_t count = std::uint64_t{shape_.tokens} * heads * shape_.head_dim;
            const std::vector<std::byte> content = pattern.at(0, count);
            placed.bytes = content.size();
            for (Buffer* buffer : {&placed.in, &placed.between, &placed.out}) {
                *buffer = value_of(Buffer::make(device_, placed.bytes), Subject::device);
                check(buffer->upload(content.data(), content.size()), Subject::device);
            }
        };
        tensor(q_, shape_.q_heads);
        tensor(k_, shape_.k_heads);
        tensor(v_, shape_.k_heads);
        std::vector<std::int32_t> slots(shape_.tokens);
        for (std::uint32_t t = 0; t < shape_.tokens; ++t) slots[t] = std::int32_t(t);
        slots_ = value_of(Buffer::make(device_, slots.size() * 4), Subject::device);
        check(slots_.upload(slots.data(), slots.size() * 4), Subject::device);
        const auto at = [](const Buffer& buffer, std::uint32_t heads) {
            return Tensor{.where = buffer.whole(), .heads = heads};
        };
        const std::uint32_t q = shape_.q_heads, k = shape_.k_heads;
        const Call empty = {
            .tokens = shape_.tokens, .angles = table_.angles(), .parameters = parameters_.whole()};
        all_ = norm_q_call_ = norm_k_call_ = rotate_call_ = copy_v_call_ = empty;
        all_.q_in = at(q_.in, q), all_.q_out = at(q_.out, q);
        all_.k_in = at(k_.in, k), all_.k_out = at(k_.out, k);
        all_.v_in = at(v_.in, k), all_.v_out = at(v_.out, k);
        all_.paged_cache.slot_mapping = slots_.whole();
        norm_q_call_.v_in = at(q_.in, q), norm_q_call_.v_out = at(q_.between, q);
        norm_k_call_.v_in = at(k_.in, k), norm_k_call_.v_out = at(k_.between, k);
        rotate_call_ = all_;
        rotate_call_.q_in = at(q_.between, q), rotate_call_.k_in = at(k_.between, k);
        rotate_call_.v_in = rotate_call_.v_out = {};
        copy_v_call_ = all_;
        copy_v_call_.q_in = copy_v_call_.q_out = copy_v_call_.k_in = copy_v_call_.k_out = {};
    }

    Device& device_;
    FinishShape shape_;
    AngleTable table_;
    Buffer parameters_, slots_;
    Placed q_, k_, v_;
    Made fused_, plain_, norm_q_, norm_k_, rotate_, copy_v_;
    Call all_, norm_q_call_, norm_k_call_, rotate_call_, copy_v_call_;
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
        fail(ExitCode::verification_failed, "the norm changed no element");
    timed(device, layer, &FinishLayer::record_fused);
    if (element == Element::f32 && layer.results() != passes)
        fail(ExitCode::verification_failed,
             "the one dispatch and the passes that it replaces have other bits");
}

}  // namespace

void Bench::register_finishes() {
    for (const FinishShape& shape : finish_shapes) {
        for (const auto& [word, element] : tools::elements) {
            const std::string name = fmt::format("finish/{}/{}", shape.name, word);
            add(name, [=, this, of = shape, type = element](benchmark::State& state) {
                if (set_up_ != name) {
                    row_ = {};
                    set_up_ = name;
                    finish_.reset();
                }
                if (!finish_) {
                    const auto made = std::make_shared<FinishLayer>(device_, of, type);
                    check_ways(device_, *made, type);
                    finish_ = made;
                }
                time_finish(state, finish_.get(), of.model);
            });
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
    const double q = double(layer.q_bytes()), k = double(layer.k_bytes());
    const double bytes = 2 * (q + 2 * k), bytes_of_passes = 4 * (q + k) + 2 * k;
    state.counters["bytes_per_second"] = bytes / median(fused) * 1e9;
    state.counters["passes_over_fused"] = median(passes) / median(fused);
    state.counters["bytes_of_passes"] = bytes_of_passes / bytes;
    state.counters["fused_over_plain"] = median(fused) / median(plain);
    state.SetLabel(model);
}

}  // namespace vkrope::bench
