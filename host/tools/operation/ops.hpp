// SPDX-License-Identifier: MIT
// The ops around a rotation: bias, norms, clip, scale, Hadamard transform and store, as given by
// options and as read from files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/meaning.hpp"
#include "cli/command_line.hpp"
#include "io/tensor_file.hpp"
#include "verify/oracle/ops.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// One T for each tensor, in the order in which tensors are read, written and reported. V is never
// rotated.
template <class T>
using OfEachTensor = std::array<T, std::size(every_tensor)>;

// The names of a tensor in reports and on the command line.
struct TensorNames {
    const char* name;
    const char* input_option;
};
inline constexpr OfEachTensor<TensorNames> tensor_names = {
    {{"Q", "--q"}, {"K", "--k"}, {"V", "--v"}}};

// The parameters that a file gives for each channel of a tensor, or for each channel of each head.
enum Parameter : std::size_t { parameter_bias, parameter_weight, parameter_norm_bias };
inline constexpr Parameter every_parameter[] = {parameter_bias, parameter_weight,
                                                parameter_norm_bias};
template <class T>
using OfEachParameter = std::array<T, std::size(every_parameter)>;

// The option of each such file; null if there is none.
inline constexpr OfEachTensor<OfEachParameter<const char*>> parameter_options = {
    {{"--q-bias", "--q-norm", "--q-norm-bias"},
     {"--k-bias", "--k-norm", "--k-norm-bias"},
     {"--v-bias", nullptr, nullptr}}};

// The option of the channels that a norm takes.
inline constexpr OfEachTensor<const char*> norm_channel_options = {
    "--q-norm-channels", "--k-norm-channels", "--v-norm-channels"};

// A value for all tensors, or one for each named tensor: "q8_0", "k=q8_0,v=q4_0".
template <class T>
struct ForTensors {
    std::optional<T> all;
    OfEachTensor<std::optional<T>> named;

    std::optional<T> of(TensorIndex which) const { return named[which] ? named[which] : all; }
    bool given() const { return all || named[Q] || named[K] || named[V]; }
};

// Channels of a row: `count` from `first` on.
struct ChannelRange {
    std::uint32_t first = 0, count = 0;
};

// A fixed factor, a file with one factor for each head, or a scale computed for each row.
struct ScaleOption {
    bool of_row = false, power_of_two = false;
    float factor = 1;
    std::string of_heads = {};  // path; empty: a factor or computed scales
};

// Blocks of a Hadamard transform, in channels, or what llama.cpp has.
struct HadamardOption {
    ForTensors<std::uint32_t> blocks;
    bool of_llama_cpp = false;

    bool given() const { return blocks.given() || of_llama_cpp; }
};

struct OpsOptions {
    bool of_model = false;  // use the model's ops even if no other op is given
    OfEachTensor<OfEachParameter<std::string>> parameters;  // paths; empty: not given
    bool v_norm = false;                                    // norm without weight
    // Values that replace the model's.
    OfEachTensor<std::optional<ChannelRange>> norm_channels;
    std::optional<NormKind> norm_kind;
    std::optional<NormSpan> norm_span;
    std::optional<NormPlace> norm_place;
    std::optional<double> norm_eps;
    std::optional<std::uint32_t> norm_offset;
    std::optional<double> clip;
    double q_scale = 1;
    std::string q_scale_tokens;
    // The store of the outputs.
    ForTensors<Element> types;
    HadamardOption hadamard;
    ForTensors<ScaleOption> scales;
    std::optional<double> scale_floor;
    OfEachTensor<const char*> scale_options = {"--out-q-scales", "--out-k-scales",
                                               "--out-v-scales"};
    const char* scale_help = "File for the scales made for {}, .npy";
    OfEachTensor<std::string> scale_files;  // paths; empty: not given
    // Keys that move, and what their scales have in common with made ones.
    HadamardOption hadamard_of_input;
    OfEachTensor<std::string> input_scale_files;  // paths; empty: not given
    std::optional<std::uint32_t> scale_group;
    std::optional<ScaleType> scale_type;
    // The second destination of K and V.
    ForTensors<Element> second;
    ForTensors<SecondOf> second_of;
    OfEachTensor<std::string> second_files;  // paths; empty: not given
};

// Adds the options of norms, bias, clip, scale and store.
void add_ops(CommandLine& command, OpsOptions& options);

// Adds the options of keys that move.
void add_cache(CommandLine& command, OpsOptions& options);

// Adds the option of the element types of inputs.
void add_dtype(CommandLine& command, ForTensors<Element>& types, bool quantised);

// Adds the options of the second destination.
void add_second(CommandLine& command, OpsOptions& options);

// Returns true if one of these options was given.
bool asks_for_ops(const OpsOptions& options);

// The option of each file for a second destination; null if there is none.
inline constexpr OfEachTensor<const char*> second_options = {nullptr, "--out-k-second",
                                                             "--out-v-second"};

// The option of each file of scales of an input; null if there is none.
inline constexpr OfEachTensor<const char*> input_scale_options = {nullptr, "--k-scales",
                                                                  "--v-scales"};

// A weight or bias in a file; its shape fits the tensor.
struct ParameterFile {
    npy::Array array = {};
    ParameterShape shape = VKROPE_PARAMETER_NONE;

    std::vector<float> values() const;
};

// Returns the bytes of channels that are whole blocks.
constexpr std::uint64_t bytes_of(Element element, std::uint64_t channels) noexcept {
    return channels / block_channels(element) * element_bytes(element);
}

// The ops of one tensor in the form of the kernel, with their parameters and the stored type.
struct TensorOps : Ops {
    OfEachParameter<ParameterFile> parameters = {};
    Element stored = VKROPE_F32;
    std::vector<float> given_scales = {};      // one for the tensor, or one for each head
    std::vector<std::byte> input_scales = {};  // [batch, tokens, heads, groups]; empty: none
    SecondOf second_of = VKROPE_SECOND_NONE;
    Element second = VKROPE_F32;  // type of the second destination

    // Returns false if the tensor is only rotated, or only moved.
    bool any() const noexcept;

    std::uint64_t stored_bytes(std::uint64_t channels) const noexcept {
        return bytes_of(stored, channels);
    }
    bool has_scales() const noexcept { return scales_in || is_made(store_scale); }
    // Returns the shape of a file with the scales of a tensor.
    std::vector<std::uint64_t> shape_of_scales(const TensorFile& tensor) const;
    // Returns the number of bytes of the scales of rows with `channels` channels in all.
    std::uint64_t scale_bytes(std::uint64_t channels, std::uint64_t head_dim) const noexcept {
        return channels / (store_scale_group == 0 ? head_dim : store_scale_group) *
               (scale_type == VKROPE_SCALE_TYPE_UE8M0 ? 1 : sizeof(float));
    }
    bool has_second() const noexcept { return second_of != VKROPE_SECOND_NONE; }
    // Returns whole words, which hold `channels` channels of the second destination.
    std::uint64_t second_bytes(std::uint64_t channels) const noexcept {
        return has_second() ? (channels * element_bytes(second) + 3) / 4 * 4 : 0;
    }
};

// Reads the file of the scales of a tensor, as [batch, tokens, heads, groups]. Throws Failure.
std::vector<std::byte> read_scales(const char* option, const std::string& path,
                                   const TensorFile& tensor, const TensorOps& ops);

// Returns the index of a row [batch, tokens, heads] in a file of the tensor's layout.
std::uint64_t row_in_file(const oracle::Tensor& view, std::uint64_t row) noexcept;

}  // namespace vkrope::tools
