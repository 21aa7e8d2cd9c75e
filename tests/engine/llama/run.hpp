// SPDX-License-Identifier: MIT
// What a layer's nodes mean in vkrope (map.cpp), and its call on a device of vkrope's own, with
// rows and caches from the host (run.cpp).
#pragma once

#include <string>
#include <unordered_map>

#include "gpu.hpp"
#include "match.hpp"
#include "vkrope/vkrope.hpp"

namespace engine {

/// A mistake on purpose: "pairing", "hadamard", "eps" or "slot"; "": none.
extern std::string mutant;

struct Plan {
    vkrope::RopeParams rotation;
    vkrope::AngleTableLayout angles = {};  ///< if the layer rotates
    vkrope::KernelInfo info;               ///< stores K and V in their caches
};

/// Ends the program if vkrope refuses what a node says.
Plan plan_of(const Layer& layer);

/// Returns the bytes of a tensor as numbers.
template <class T>
std::vector<T> read(const ggml_tensor* tensor) {
    std::vector<T> numbers(ggml_nbytes(tensor) / sizeof(T));
    ggml_backend_tensor_get(tensor, numbers.data(), 0, numbers.size() * sizeof(T));
    return numbers;
}

using Bytes = std::vector<unsigned char>;
inline const float* floats(const Bytes& bytes) {
    return reinterpret_cast<const float*>(bytes.data());
}

/// What nodes and leaves had when a graph ran, as bytes; of a SET_ROWS the cache before it.
using Copies = std::map<const ggml_tensor*, Bytes>;

class Runner {
   public:
    ~Runner();

    /// Runs the call of a layer. Returns Q's rows and the caches of K and V, or rows of f32 for
    /// all.
    std::array<Bytes, 3> run(const Layer& layer, const Copies& copies, bool to_caches);

    /// Turns a cache of K in place by a delta for each cell, or to rows of f32.
    Bytes shift(const Layer& layer, const Bytes& cache, const std::vector<std::int32_t>& deltas,
                bool in_place);

    std::uint64_t dispatches = 0;  ///< of all calls to caches

   private:
    Buffer buffer(const void* data, std::size_t bytes, VkBufferUsageFlags usage = 0);
    template <class T>
    Buffer buffer(const std::vector<T>& of) {
        return buffer(of.data(), of.size() * sizeof(T));
    }
    vkrope::Angles angles(const Plan& plan);
    void add_parameters(const Layer& layer, const vkrope::KernelInfo& info, vkrope::Call& call);
    std::uint64_t submit(const vkrope::KernelInfo& info, const vkrope::Call& call);
    void clear();

    Gpu gpu_{Enable::extensions};
    VkCommandPool pool_ = gpu_.make_command_pool();
    std::unordered_map<vkrope::KernelInfo, vkrope::Owned<vkrope::Kernel>, vkrope::InfoHash,
                       vkrope::InfoEqual>
        kernels_;
    std::vector<Buffer> buffers_;
};

}  // namespace engine
