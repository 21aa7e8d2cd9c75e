// SPDX-License-Identifier: MIT
// Times one dispatch from the projection to the cache, and the passes that it replaces: norms of Q
// and K, the rotation, Hadamard transforms, and the store of K and V. Also times layers without
// RoPE, the latent row of MLA, second destinations, scales of groups, and keys that move.
#include <deque>

#include "cli/failure.hpp"
#include "cli/words.hpp"
#include "rows.hpp"
#include "verify/definition.hpp"

namespace vkrope::bench {
namespace {

using tools::Subject;
using tools::value_of;

Shape layer(const char* name, const char* model, std::uint32_t tokens, std::uint32_t q_heads,
            std::uint32_t k_heads, std::uint32_t head_dim,
            std::optional<NormSpan> norms = VKROPE_NORM_SPAN_HEAD,
            Pairing pairing = VKROPE_HALF_SPLIT) {
    verify::Operation operation = rotation(tokens, {q_heads, head_dim}, {k_heads, head_dim},
                                           head_dim, 10000, pairing);
    if (norms) add_norms(operation, *norms);
    store_in_cache(operation);
    return {name, model, operation};
}

std::vector<Shape> ops_shapes() {
    constexpr NormSpan token = VKROPE_NORM_SPAN_TOKEN;
    return {layer("prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128),
            layer("long_qwen3_8b", "Qwen3 8B", 8192, 32, 8, 128),
            layer("decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128),
            layer("prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256),
            layer("decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256),
            layer("prefill_olmo2_7b", "OLMo 2 7B", 512, 32, 32, 128, token),
            layer("decode_olmo2_7b", "OLMo 2 7B", 1, 32, 32, 128, token),
            layer("image_flux", "Flux, a quarter of 1024 x 1024", 1152, 24, 24, 128,
                  VKROPE_NORM_SPAN_HEAD, VKROPE_INTERLEAVED)};
}

std::vector<Shape> cache_shapes() {
    return {layer("prefill_llama3_1_8b", "Llama 3.1 8B", 512, 32, 8, 128, std::nullopt),
            layer("long_llama3_1_8b", "Llama 3.1 8B", 8192, 32, 8, 128, std::nullopt),
            layer("decode_llama3_1_8b", "Llama 3.1 8B", 1, 32, 8, 128, std::nullopt),
            layer("prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128),
            layer("decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128),
            layer("prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256),
            layer("decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256)};
}

// Returns layers with their own outputs, in f16.
std::vector<Shape> layer_shapes() {
    constexpr std::uint32_t tokens = 4096;
    Shape no_rope = layer("no_rope_exaone4_32b/q8_0", "EXAONE 4 32B", tokens, 40, 8, 128),
          second = layer("second_llama3_1_8b/q8_0", "Llama 3.1 8B", tokens, 32, 8, 128,
                         std::nullopt),
          latent = {"latent_deepseek_v3/f16", "DeepSeek-V3",
                    rotation(tokens, {}, {1, 576, 512}, 64, 10000, VKROPE_INTERLEAVED)};
    add_norm(latent.operation, K, {.channels = 512});
    store_in_cache(latent.operation);
    const Shape groups = layer("groups_llama3_1_8b/int8", "Llama 3.1 8B", tokens, 32, 8, 128,
                               std::nullopt);
    const Shape bound = layer("bound_weights_qwen3_8b/f16", "Qwen3 8B", tokens, 32, 8, 128);
    std::vector<Shape> all = {no_rope, second, groups, latent, bound};
    for (Shape& shape : all) shape.operation = of_type(shape.operation, VKROPE_F16);
    for (Shape* shape : {&all[0], &all[1], &all[2]}) {
        add_v(shape->operation, shape == &all[2] ? VKROPE_INT8 : VKROPE_Q8_0);
        for (TensorInfo& tensor : shape->operation.info.tensor) tensor.ops.hadamard = 0;
    }
    remove_rotation(all[0].operation);
    for (const TensorIndex which : {K, V}) {
        all[1].operation.info.tensor[which].second_of = VKROPE_SECOND_RESULT;
        all[1].operation.info.tensor[which].second = VKROPE_F16;
        all[2].operation.info.tensor[which].ops.store_scale = VKROPE_STORE_SCALE_MADE;
        all[2].operation.info.tensor[which].ops.store_scale_group = 32;
    }
    add_v(all[4].operation, VKROPE_F16);
    bind_weights(all[4].operation);
    all.push_back(
        {"moved_llama3_1_8b/q8_0", "Llama 3.1 8B", moved_keys(8192, {8, 128}, VKROPE_Q8_0)});
    return all;
}

// Returns the number of bytes that a call reads and writes.
double moved(const Call& call) {
    double sum = 0;
    for (const TensorIndex which : every_tensor)
        for (const auto& part : {call.in[which].where, call.out[which].where, call.second[which],
                                 call.scales_out[which]})
            sum += double(part.range);
    return sum;
}

// Returns copies that move as many bytes as the call reads and writes. The first buffers of
// `scratch` are as large as the inputs.
std::vector<tools::Copied> copies_of(const Call& call, const std::deque<Buffer>& scratch) {
    std::vector<tools::Copied> all;
    for (const TensorIndex which : every_tensor) {
        const VkDescriptorBufferInfo& in = call.in[which].where;
        VkDeviceSize left = (in.range + call.out[which].where.range + call.second[which].range +
                             call.scales_out[which].range) /
                            2;
        while (left >= 16) {
            const VkDeviceSize bytes = std::min(left, in.range) / 16 * 16;
            all.push_back({{in.buffer, 0, bytes}, {scratch[which].handle(), 0, bytes}});
            left -= bytes;
        }
    }
    return all;
}

std::vector<verify::Bytes> outputs_of(Layer& layer) {
    std::vector<verify::Bytes> all;
    for (const TensorIndex which : every_tensor) {
        all.push_back(layer.output(which, 0, layer.call().out[which].where.range));
        all.push_back(layer.output(which, 0, layer.call().second[which].range, true));
    }
    return all;
}

enum Method {
    fused,     // one dispatch
    plain,     // one dispatch without norms and Hadamard transforms
    passes,    // the dispatches of a graph engine
    products,  // the passes with a matrix product for each Hadamard transform
    // The passes as ggml's backend dispatches them: one dispatch rotates Q and one K, with pow,
    // cos and sin in every head, another scatters K; Hadamard transforms are matrix products.
    ggml,
    methods,
};

// Tensors of a layer, and the methods that compute its outputs, each with its own kernels.
class LayerWithOps {
   public:
    // whole  the operation of the one dispatch
    LayerWithOps(Device& device, const verify::Operation& whole)
        : device_(device), layer_(device, whole),
          transforms_(verify::is_quantised(whole.info.tensor[K].out)) {
        for (const TensorIndex which : every_tensor) {
            at_[which] = layer_.call().in[which].where;
            scratch(which);
        }
        add(others_, layer_.operation(), {fused});
        add(others_, without_ops(), {plain});
        add_norms();
        add_rotation();
        if (transforms_) add_transforms();
        move(passes_, V, layer_.call().out[V].where, {}, all_passes);
        if (!transforms_) steps_[products].clear();
        if (!rival_) steps_[ggml].clear();
    }

    // Returns whether the method is possible: `products` needs Hadamard transforms, `ggml`
    // half_split pairs.
    bool has(Method method) const { return !steps_[method].empty(); }

    Status record(Method method, VkCommandBuffer commands) {
        for (auto& [n, product] : products_)
            if (Status s = product.reset(); !s) return s;
        if (rival_)
            if (Status s = rival_->begin(); !s) return s;
        for (const Record& step : steps_[method])
            if (Status s = step(commands); !s) return s;
        return {};
    }

    // Runs every method with `run`, which returns nanoseconds, and checks the outputs. In f32
    // nothing is rounded between the passes, so they must give the same bits as the one dispatch.
    // Returns the nanoseconds of all runs. Throws Failure.
    double check(const std::function<double(const Record&)>& run) {
        const verify::Operation &whole = layer_.operation(), simple = without_ops();
        const bool exact = whole.info.tensor[Q].in == VKROPE_F32;
        constexpr const char* names[] = {
            "", "without ops: ", "passes: ", "matrix products: ", "ggml's passes: "};
        double ns = 0;
        std::vector<verify::Bytes> outputs[methods];
        for (const Method method : {fused, plain, passes, products, ggml}) {
            if (!has(method)) continue;
            layer_.clear();
            ns += run([&](VkCommandBuffer commands) { return record(method, commands); });
            std::optional<double> bound_u;
            if (method == ggml || (method == passes && !exact)) bound_u = Rival::pow_bound_u;
            layer_.check_outputs(method == plain ? simple : whole, bound_u, names[method]);
            outputs[method] = outputs_of(layer_);
        }
        if (exact && outputs[fused] != outputs[passes])
            tools::fail(tools::ExitCode::verification_failed,
                        "the one dispatch and the passes that it replaces have other bits");
        return ns;
    }

    Layer& layer() { return layer_; }

    // Return the number of bytes that the one dispatch, or the passes, read and write.
    double bytes() const { return moved(layer_.call()); }
    double bytes_of_passes() const {
        double sum = 0;
        for (const Pass& pass : passes_) sum += moved(pass.operation().call);
        return sum;
    }
    std::size_t number_of_passes() const { return passes_.size(); }

    std::vector<tools::Copied> copies() const { return copies_of(layer_.call(), scratch_); }

   private:
    using Where = VkDescriptorBufferInfo;
    using Methods = std::initializer_list<Method>;
    static constexpr Methods all_passes = {passes, products, ggml};

    verify::Operation without_ops() const {
        verify::Operation operation = layer_.operation();
        for (TensorInfo& tensor : operation.info.tensor) tensor.ops = {};
        operation.parameters = {};
        return operation;
    }

    // Returns a new buffer as large as an input.
    Where scratch(TensorIndex which) {
        const VkDeviceSize bytes = layer_.call().in[which].where.range;
        return scratch_.emplace_back(value_of(Buffer::make(device_, bytes), Subject::device))
            .whole();
    }

    void add(const Record& step, Methods to) {
        for (const Method method : to) steps_[method].push_back(step);
    }

    void add(std::deque<Pass>& owner, const verify::Operation& operation, Methods to) {
        Pass& pass = owner.emplace_back(device_, operation);
        add([&pass](VkCommandBuffer commands) { return pass.record(commands); }, to);
    }

    // Adds a pass that applies `ops` to a tensor and copies it to `to`. Its kernel treats the
    // tensor as V, and also has a K, which the call omits.
    void move(std::deque<Pass>& owner, TensorIndex which, const Where& to, const Ops& ops,
              Methods methods) {
        const verify::Operation& whole = layer_.operation();
        verify::Operation operation = without_ops();
        TensorInfo(&info)[tensor_count] = operation.info.tensor;
        Call& call = operation.call;
        const bool is_output = to.buffer == whole.call.out[which].where.buffer;
        info[V] = info[which];
        info[V].ops = ops;
        if (!is_output) info[V].out = info[V].in;
        info[K].out = info[K].in;
        info[Q] = {};
        if (!is_output || which == Q) {
            operation.info.scatter_kv = false;
            call.paged_cache = {};
        }
        for (const TensorIndex absent : {Q, K}) call.in[absent] = call.out[absent] = {};
        call.in[V] = {.where = at_[which], .heads = info[V].heads};
        call.out[V] = {.where = to, .heads = info[V].heads};
        if (ops.norm.kind != VKROPE_NORM_NONE) operation.parameters[V] = whole.parameters[which];
        add(owner, operation, methods);
        at_[which] = to;
    }

    void add_norms() {
        const TensorInfo(&info)[tensor_count] = layer_.operation().info.tensor;
        if (info[Q].ops.norm.kind == VKROPE_NORM_NONE) return;
        for (const TensorIndex which : {Q, K})
            move(passes_, which, scratch(which), {.norm = info[which].ops.norm}, all_passes);
        add(barrier(device_), all_passes);
    }

    void add_rotation() {
        verify::Operation rotation = without_ops();
        Call& call = rotation.call;
        rotation.info.tensor[V] = {};
        call.in[V] = call.out[V] = {};
        for (const TensorIndex which : {Q, K}) call.in[which].where = at_[which];
        if (transforms_) {
            rotation.info.tensor[K].out = rotation.info.tensor[K].in;
            rotation.info.scatter_kv = false;
            call.paged_cache = {};
            for (const TensorIndex which : {Q, K}) call.out[which].where = scratch(which);
        }
        add(passes_, rotation, {passes, products});
        if (rotation.info.pairing == VKROPE_HALF_SPLIT) {
            rival_.emplace(device_, rotation, Way::ggml);
            Call of_rival = call;
            if (!transforms_) of_rival.out[K].where = at_[K] = scratch(K);
            add([=, this](VkCommandBuffer commands) { return rival_->record(commands, of_rival); },
                {ggml});
            if (!transforms_) {
                add(barrier(device_), {ggml});
                move(others_, K, call.out[K].where, {}, {ggml});
            }
        }
        for (const TensorIndex which : {Q, K}) at_[which] = call.out[which].where;
    }

    void add_transforms() {
        const verify::Operation& whole = layer_.operation();
        add(barrier(device_), all_passes);
        for (const TensorIndex which : every_tensor) {
            const TensorInfo& info = whole.info.tensor[which];
            const std::uint32_t block = info.ops.hadamard,
                                rows = whole.call.tokens * info.heads * info.head_dim / block;
            const Where from = at_[which],
                        to = which == Q ? whole.call.out[Q].where : scratch(which);
            move(passes_, which, to, {.hadamard = block}, {passes});
            MatrixProduct& product = products_.try_emplace(block, device_, block).first->second;
            add(
                [=, &product](VkCommandBuffer commands) {
                    product.record(commands, from, to, rows);
                    return Status{};
                },
                {products, ggml});
        }
        add(barrier(device_), all_passes);
        move(passes_, K, whole.call.out[K].where, {}, all_passes);
    }

    Device& device_;
    Layer layer_;
    bool transforms_;
    std::deque<Buffer> scratch_;  // the first three are the targets of the copies
    Where at_[tensor_count];      // the tensors after the passes so far
    std::deque<Pass> passes_, others_;
    std::map<std::uint32_t, MatrixProduct> products_;  // key: number of channels in a block
    std::optional<Rival> rival_;
    std::vector<Record> steps_[methods];
};

// A layer whose K and V may have second destinations, whose weights may be bound, or whose keys
// move.
struct OneCall {
    OneCall(Device& device, const verify::Operation& operation)
        : layer(device, operation), one(device, layer.operation()) {
        for (const TensorIndex which : every_tensor) {
            const VkDeviceSize bytes = layer.call().in[which].where.range;
            scratch.push_back(bytes == 0 ? Buffer()
                                         : value_of(Buffer::make(device, bytes), Subject::device));
        }
        if (verify::is_quantised(operation.info.tensor[K].in)) add_passes_of_move(device);
        if (verify::has_second(operation, K)) add_calls_of_second(device);
        if (operation.info.tensor[Q].ops.norm.weight_bound)
            parts.emplace_back(device, with_packed_weights(layer.operation()));
    }

    void add_calls_of_second(Device& device) {
        verify::Operation packed = layer.operation(), stored = packed;
        packed.info.scatter_kv = false;
        packed.call.paged_cache = {};
        stored.info.tensor[Q] = {};
        stored.call.in[Q] = stored.call.out[Q] = {};
        for (const TensorIndex which : {K, V}) {
            packed.info.tensor[which].out = packed.info.tensor[which].second;
            packed.call.out[which].where = packed.call.second[which];
            for (verify::Operation* each : {&packed, &stored}) {
                each->info.tensor[which].second_of = VKROPE_SECOND_NONE;
                each->info.tensor[which].second = VKROPE_F32;
                each->call.second[which] = {};
            }
        }
        parts.emplace_back(device, packed);
        parts.emplace_back(device, stored);
    }

    // The keys in f32, their rotation in place, the cache. llama.cpp also has two nodes for the
    // transforms.
    void add_passes_of_move(Device& device) {
        verify::Operation read = layer.operation(), turned = read, stored = read;
        for (verify::Operation* each : {&read, &stored}) {
            remove_rotation(*each);
            each->info.positions = VKROPE_POSITIONS_IMPLICIT;
            each->call.gain = VKROPE_GAIN_APPLY;
        }
        const TensorInfo& k = read.info.tensor[K];
        const std::uint64_t channels = verify::tokens_of(read) * k.heads * k.head_dim;
        keys = value_of(Buffer::make(device, channels * sizeof(float)), Subject::device);
        const Tensor rows = {.where = keys.whole(), .heads = k.heads};
        for (verify::Operation* each : {&read, &turned}) {
            each->info.tensor[K].out = VKROPE_F32;
            each->info.tensor[K].ops.hadamard = 0;
            each->info.scatter_kv = false;
            each->call.out[K] = rows;
            each->call.paged_cache.slot_mapping = {};
        }
        for (verify::Operation* each : {&turned, &stored}) {
            each->info.tensor[K].in = VKROPE_F32;
            each->info.tensor[K].ops.hadamard_of_input = 0;
            each->info.gather_kv = false;
            each->call.in[K] = rows;
            each->call.paged_cache.source_mapping = {};
        }
        for (const verify::Operation* each : {&read, &turned, &stored})
            parts.emplace_back(device, *each);
        between = barrier(device);
    }

    Status record_parts(VkCommandBuffer commands) const {
        Status status;
        for (const Pass& part : parts) {
            if (status && between && &part != &parts.front()) status = between(commands);
            if (status) status = part.record(commands);
        }
        return status;
    }

    Layer layer;
    Pass one;
    std::deque<Pass> parts;      // calls that together write the same, if it is known how
    Record between;              // null, or the barrier between the parts
    std::deque<Buffer> scratch;  // targets of the copies
    Buffer keys;                 // in f32, between the parts
};

}  // namespace

Bench::Row Bench::layer_row(const Shape& shape) {
    const auto of = std::make_shared<OneCall>(device_, shape.operation);
    const double bytes = moved(of->layer.call());
    Row row{.label = shape.model,
            .tensors = {of, &of->layer},
            .bytes = bytes,
            .copies = copies_of(of->layer.call(), of->scratch),
            .time = running([=](VkCommandBuffer commands) { return of->one.record(commands); })};
    row.first_ns = row.time();
    of->layer.check_outputs(of->layer.operation());
    if (of->parts.empty()) return row;
    const std::vector<verify::Bytes> by_one = outputs_of(of->layer);
    of->layer.clear();
    row.others = {{"passes_over_fused",
                   running([=](VkCommandBuffer commands) { return of->record_parts(commands); })}};
    row.others[0].time();
    if (outputs_of(of->layer) != by_one)
        tools::fail(tools::ExitCode::verification_failed,
                    "the one call and those that it replaces have other bits");
    double bytes_of_parts = 0;
    for (const Pass& part : of->parts) bytes_of_parts += moved(part.operation().call);
    row.counters = {{"bytes_of_passes", bytes_of_parts / bytes},
                    {"passes", double(of->parts.size())}};
    return row;
}

Bench::Row Bench::ops_row(const Shape& shape) {
    const auto layer = std::make_shared<LayerWithOps>(device_, shape.operation);
    const auto timed = [&](Method method) {
        return running([=](VkCommandBuffer commands) { return layer->record(method, commands); });
    };
    Row row{.label = shape.model, .tensors = {layer, &layer->layer()}, .bytes = layer->bytes()};
    row.first_ns = layer->check([this](const Record& record) { return run(record); });
    row.copies = layer->copies();
    row.time = timed(fused);
    row.others = {{"passes_over_fused", timed(passes)}, {"fused_over_plain", timed(plain), true}};
    if (layer->has(products)) row.others.push_back({"products_over_fused", timed(products)});
    if (layer->has(ggml)) row.others.push_back({"ggml_over_fused", timed(ggml)});
    row.counters = {{"bytes_of_passes", layer->bytes_of_passes() / layer->bytes()},
                    {"passes", double(layer->number_of_passes())}};
    return row;
}

void Bench::register_ops() {
    const auto row = [this](const char* kind, const Shape& shape, Element element, Element cache,
                            const char* word) {
        if (takes_minutes(shape)) return;
        Shape typed = {shape.name, shape.model, of_type(shape.operation, element)};
        add_v(typed.operation, cache);
        add_call(fmt::format("{}/{}/{}", kind, shape.name, word),
                 [=, this] { return ops_row(typed); });
    };
    for (const Shape& shape : ops_shapes())
        for (const auto& [word, element] : tools::elements)
            row("ops", shape, element, element, word);
    for (const Shape& shape : cache_shapes()) {
        for (const auto& [word, cache] : tools::stored_elements)
            if (verify::is_quantised(cache)) row("cache", shape, VKROPE_F32, cache, word);
    }
    for (const Shape& shape : layer_shapes())
        add_call("layer/" + shape.name, [=, this] { return layer_row(shape); });
}

}  // namespace vkrope::bench
