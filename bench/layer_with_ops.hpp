// SPDX-License-Identifier: MIT
// Does a layer's work from the projection to the cache in one dispatch or in separate passes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "matrix_product.hpp"
#include "meaning.hpp"
#include "rivals.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::bench {

struct OpsShape {
    const char *name, *model;
    std::uint32_t tokens, q_heads, k_heads, head_dim;
    NormKind norm = VKROPE_NORM_RMS;
    NormSpan span = VKROPE_NORM_SPAN_HEAD;
    Pairing pairing = VKROPE_HALF_SPLIT;
};

/// Types of the input, of the results of passes, and of the caches of K and V.
struct OpsTypes {
    Element element, cache;
};

/// Tensors and kernels of a shape. results() returns the same values after each record function.
class LayerWithOps {
   public:
    LayerWithOps(Device& device, const OpsShape& shape, const OpsTypes& types);

    /// Return the number of bytes that the one dispatch, or the passes, read and write.
    double bytes() const { return moved(whole_); }
    double bytes_of_passes() const;
    std::size_t passes() const { return passes_.size(); }
    /// Returns whether there are Hadamard transforms, as for every quantised cache.
    bool transforms() const { return is_quantised(types_.cache); }
    /// Returns whether ggml's passes support the shape: they need half_split pairs.
    bool has_ggml_way() const { return ggml_.has_value(); }
    /// Returns copies that move as many bytes as the one dispatch reads and writes.
    std::vector<Copied> copies() const;

    Status record_fused(VkCommandBuffer commands) { return record(commands, whole_); }
    Status record_plain(VkCommandBuffer commands) { return record(commands, plain_); }
    Status record_passes(VkCommandBuffer commands) { return record_passes(commands, {}); }
    /// Records the same passes with a matrix product for each Hadamard transform.
    Status record_with_products(VkCommandBuffer commands);
    /// Records the passes as ggml's backend dispatches them: one dispatch rotates Q and one K, with
    /// pow, cos and sin in every head, another scatters K; Hadamard transforms are matrix products.
    Status record_ggml(VkCommandBuffer commands);

    /// Returns all outputs, one after the other.
    std::vector<std::byte> results();
    /// Returns whether the results differ from `others` only as sums in another order may: Q by at
    /// most 2^-12 of its largest magnitude, and K and V in at most one of a hundred bytes.
    bool nearly(const std::vector<std::byte>& others);
    /// Returns the largest difference between a number and that of `others`, minus the distance
    /// between two codes of a quantised type, relative to the largest magnitude of the tensor.
    double distance(const std::vector<std::byte>& others);

   private:
    struct Placed {
        std::uint32_t heads = 0;
        Buffer in, normed, rotated, transformed, out;
        std::size_t out_bytes = 0;
    };
    struct Pass {
        KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        Call call;
        bool waits = false;  ///< a barrier precedes the pass
        bool turns = false;  ///< the pass is the rotation
        Owned<Kernel> kernel = {};
        Owned<DescriptorArena> arena = {};
    };

    struct Ways {
        bool with_products = false, of_ggml = false;
    };
    Status record_passes(VkCommandBuffer commands, Ways ways);
    Status record_ggml_rotation(VkCommandBuffer commands, const Pass& rotation);
    Status record(VkCommandBuffer commands, Pass& pass);
    void record_barrier(VkCommandBuffer commands);
    Buffer buffer_of(const std::vector<std::byte>& content);
    std::size_t cache_bytes(std::size_t elements) const;
    void make_tensors();
    TensorInfo format(Element out) const { return {types_.element, out, shape_.head_dim, 0}; }
    static Tensor at(const Buffer& buffer, std::uint32_t heads);
    /// Returns a pass without tensors.
    Pass empty_pass() const;
    void rotates(Pass& pass, const Buffer& q, const Buffer& q_out, const Buffer& k,
                 const Buffer& k_out, Element k_type) const;
    void scatters(Pass& pass) const;
    /// Returns a pass that moves a tensor as V; its kernel also has a tensor that could be rotated.
    Pass moves(std::uint32_t heads, const Buffer& from, const Buffer& to, Element type) const;
    void make(Pass& pass);
    void make_whole();
    /// Creates the passes as graph engines dispatch them. Passes without a barrier are independent.
    void make_passes();
    void make_ggml_way();
    static double moved(const Pass& pass);

    Device& device_;
    OpsShape shape_;
    OpsTypes types_;
    Norm norm_;
    AngleTable table_;
    Buffer parameters_, slots_;
    Placed q_, k_, v_;
    Pass whole_, plain_, scatter_k_;
    std::vector<Pass> passes_;
    std::map<std::uint32_t, MatrixProduct> products_;  // key: number of channels in a block
    std::optional<Rival> ggml_;
};

}  // namespace vkrope::bench
