// SPDX-License-Identifier: MIT
#include "conformance/cases/ops.hpp"

#include <algorithm>

#include "conformance/suite.hpp"
#include "io/element_type.hpp"
#include "verify/definition.hpp"

namespace vkrope::conformance {
namespace {

using verify::stored_bytes;

/// Fills outputs before the call with bits that a rotation does not produce by accident.
constexpr std::byte poison{0xa5};

using Shape = std::vector<std::uint64_t>;

/// Returns the index in a file with one number per token for each element of [batch, tokens]. The
/// file has the token axes of the tensor, or one row for all sequences.
std::vector<std::size_t> token_places(const std::string& file, const Shape& shape,
                                      const CaseTensor& tensor) {
    const std::uint64_t batch = tensor.batch, tokens = tensor.tokens;
    const bool shared = shape == Shape{tokens} || shape == Shape{1, tokens};
    if (!shared && shape != Shape{batch, tokens}) {
        wrong_file("{}: has shape {}; tensors.{} needs ({},) or ({}, {})", file,
                   npy::shape_text(shape), tensor.name, tokens, batch, tokens);
    }
    std::vector<std::size_t> places(batch * tokens);
    for (std::size_t index = 0; index < places.size(); ++index) {
        places[index] = shared ? index % tokens : index;
    }
    return places;
}

std::string name_of(const Integers& integers) {
    const auto* file = std::get_if<std::string>(&integers);
    return file == nullptr ? "slots" : *file;
}

std::vector<float> floats(const npy::Array& array) {
    std::vector<float> numbers(count_of(array));
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        numbers[index] = static_cast<float>(value_at(array, index));
    }
    return numbers;
}

/// Adds the ops of one tensor to the operation.
class Reader {
   public:
    Reader(const CaseFolder& folder, const StepsCase& steps, const CaseTensor& tensor,
           TensorIndex which, Element element, verify::Operation& operation, verify::Memory& memory)
        : folder_(folder), steps_(steps), tensor_(tensor), which_(which),
          element_(steps.out.value_or(element)), info_(operation.info.tensor[which]),
          call_(operation.call), parameters_(operation.parameters[which]), memory_(memory) {}

    CaseOps read() {
        if (tensor_.head_dim % block_channels(element_) != 0) {
            wrong_file("out_dtype.{} has blocks of {} channels; tensors.{} has {} channels a head",
                       tensor_.name, block_channels(element_), tensor_.name, tensor_.head_dim);
        }
        info_.out = element_;
        info_.head_dim = tensor_.head_dim;
        Ops& ops = info_.ops;
        ops.bias = read_parameter(steps_.files.bias, parameters_.bias);
        ops.norm.weight = read_parameter(steps_.files.weight, parameters_.weight,
                                         steps_.weight_dtype);
        ops.norm.bias = read_parameter(steps_.files.norm_bias, parameters_.norm_bias);
        if (!steps_.scale_tokens.empty()) {
            read_scales();
        }
        check_hadamard();
        if (steps_.cache) {
            read_cache();
        }
        read_store_scale();
        CaseOutput output = cache_ ? cache_output() : packed_output();
        if (is_made(info_.ops.store_scale)) {
            const std::uint64_t tokens = std::uint64_t{tensor_.batch} * tensor_.tokens;
            const std::uint64_t rows = (cache_ ? cache_->slot_count : tokens) * tensor_.heads;
            call_.scales_out[which_] = memory_.take(std::max<std::uint64_t>(rows, 1) *
                                                    sizeof(float));
        }
        return {std::move(output), std::move(cache_)};
    }

   private:
    npy::Array array_of_floats(const std::string& file, const char* what) const {
        npy::Array array = folder_.array(file);
        if (array.header.type != npy::Type::f4) {
            wrong_file("{}: has data of type {}; {} are <f4", file, npy::name(array.header.type),
                       what);
        }
        return array;
    }

    ParameterShape read_parameter(const std::string& file, std::vector<float>& numbers,
                                  const std::optional<Element>& dtype = {}) const {
        if (file.empty()) {
            return VKROPE_PARAMETER_NONE;
        }
        const npy::Array array = folder_.array(file);
        const npy::Header& header = array.header;
        if (!tools::element_of(header.type)) {
            unsupported("{}: has data of type {}; the library takes f32, f16 and bf16", file,
                        npy::name(header.type));
        }
        const std::uint64_t heads = tensor_.heads, head_dim = tensor_.head_dim;
        const bool of_heads = header.shape == Shape{heads, head_dim} ||
                              header.shape == Shape{heads * head_dim};
        if (header.shape != Shape{head_dim} && !of_heads) {
            wrong_file("{}: has shape {}; tensors.{} needs ({},), ({}, {}) or ({},)", file,
                       npy::shape_text(header.shape), tensor_.name, head_dim, heads, head_dim,
                       heads * head_dim);
        }
        if (dtype && tools::npy_type(*dtype) != header.type) {
            wrong_file("{}: has data of type {}; weight_dtype needs {}", file,
                       npy::name(header.type), npy::name(tools::npy_type(*dtype)));
        }
        numbers = floats(array);
        return header.shape == Shape{head_dim} ? VKROPE_PARAMETER_CHANNEL
                                               : VKROPE_PARAMETER_HEAD_CHANNEL;
    }

    void read_scales() {
        const npy::Array array = array_of_floats(steps_.scale_tokens, "scale_tokens");
        std::vector<float> scales;
        for (const std::size_t place :
             token_places(steps_.scale_tokens, array.header.shape, tensor_)) {
            scales.push_back(static_cast<float>(value_at(array, place)));
        }
        call_.scale_tokens[which_] = memory_.put(scales);
        info_.ops.scale_tokens = true;
    }

    void read_cache() {
        const CaseTensor& tensor = tensor_;
        const CacheOutputCase& described = *steps_.cache;
        const std::string name = "cache." + tensor.name;
        std::array<std::int64_t, 4> strides = {};
        std::array<std::uint64_t, 4> lengths = {};
        constexpr std::string_view letters = "NPHD";
        if (described.layout.size() != 4 || described.shape.size() != 4 ||
            !std::is_permutation(letters.begin(), letters.end(), described.layout.begin())) {
            wrong_file("{}: layout '{}' and a shape of {} dimensions; both must have N, P, H and D",
                       name, shown_text(described.layout), described.shape.size());
        }
        if (described.layout.back() != 'D') {
            unsupported("{}.layout '{}': channels must come last", name, described.layout);
        }
        std::int64_t stride = 1;
        for (std::size_t axis = 4; axis-- > 0;) {
            const std::size_t letter = letters.find(described.layout[axis]);
            strides[letter] = stride;
            lengths[letter] = described.shape[axis];
            // Strides count channels, even if the last axis of the cache counts bytes.
            const std::uint64_t steps = letter == 3 ? tensor.head_dim : described.shape[axis];
            stride *= static_cast<std::int64_t>(std::max<std::uint64_t>(steps, 1));
            if (stride > (std::int64_t{1} << 29)) {
                unsupported("{}.shape {} has more than 2^29 elements", name,
                            npy::shape_text(described.shape));
            }
        }
        const bool counts_bytes = is_quantised(element_);
        const std::uint64_t last = counts_bytes ? stored_bytes(element_, tensor.head_dim)
                                                : tensor.head_dim;
        if (lengths[1] != described.page_size || lengths[2] != tensor.heads || lengths[3] != last) {
            wrong_file(
                "{}.shape {} in layout {} is for pages of {} rows, {} heads and {} {}; page_size "
                "is {}, and tensors.{} has {} heads and {} {}",
                name, npy::shape_text(described.shape), described.layout, lengths[1], lengths[2],
                lengths[3], counts_bytes ? "bytes" : "channels", described.page_size, tensor.name,
                tensor.heads, last, counts_bytes ? "bytes of this type" : "channels");
        }
        CaseCache cache;
        cache.slot_count = lengths[0] * lengths[1];
        cache.heads_before_rows = described.layout.find('H') < described.layout.find('P');
        const CaseFolder::IntegerList list = folder_.integers(described.slots);
        for (const std::size_t place : token_places(name_of(described.slots), list.shape, tensor)) {
            const std::int64_t slot = list.values[place];
            if (slot < -1 || (slot >= 0 && static_cast<std::uint64_t>(slot) >= cache.slot_count)) {
                wrong_file("{}.slots has {}; the cache has {} slots", name, slot, cache.slot_count);
            }
            cache.slots.push_back(slot);
        }
        cache.paged = {.slot_mapping = memory_.put(cache.slots, list.wide),
                       .int64 = list.wide,
                       .page_size = static_cast<std::uint32_t>(described.page_size),
                       .page_stride = strides[0],
                       .row_stride = described.page_size == 1 ? strides[0] : strides[1]};
        cache.head_stride = strides[2];
        cache_ = std::move(cache);
    }

    void check_hadamard() const {
        constexpr std::uint32_t most = 512;
        const std::uint32_t block = std::max(info_.ops.hadamard, 1u);
        if (tensor_.head_dim % block != 0) {
            wrong_file("hadamard.{} is {}: it must divide the {} channels of a head", tensor_.name,
                       block, tensor_.head_dim);
        }
        if (block > most) {
            unsupported("hadamard.{} is {}: the library transforms blocks of at most {} channels",
                        tensor_.name, block, most);
        }
    }

    void read_store_scale() {
        Ops& ops = info_.ops;
        if (is_made(ops.store_scale) && cache_ && cache_->heads_before_rows) {
            ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
        } else if (ops.store_scale == VKROPE_STORE_SCALE_GIVEN) {
            parameters_.store_scale = {steps_.store_scale};
        } else if (ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD) {
            const std::string& file = steps_.store_scale_file;
            const npy::Array array = array_of_floats(file, "scales");
            if (array.header.shape != Shape{tensor_.heads}) {
                wrong_file("{}: has shape {}; tensors.{} needs ({},), a scale for each head", file,
                           npy::shape_text(array.header.shape), tensor_.name, tensor_.heads);
            }
            parameters_.store_scale = floats(array);
        }
    }

    CaseOutput packed_output() const {
        CaseOutput output = {.element = element_,
                             .shape = tensor_.shape,
                             .row_bytes = stored_bytes(element_, tensor_.head_dim)};
        if (is_quantised(element_)) {
            output.shape.back() = stored_bytes(element_, output.shape.back());
        }
        output.initial.assign(stored_bytes(element_, tensor_.count), poison);
        return output;
    }

    CaseOutput cache_output() const {
        npy::Array initial = folder_.array(steps_.cache->initial);
        if (initial.header.shape != steps_.cache->shape ||
            initial.header.type != tools::npy_type(element_)) {
            wrong_file("{}: has shape {} of {}; the cache of {} has {} of {}",
                       steps_.cache->initial, npy::shape_text(initial.header.shape),
                       npy::name(initial.header.type), tensor_.name,
                       npy::shape_text(steps_.cache->shape), npy::name(tools::npy_type(element_)));
        }
        CaseOutput output = {.element = element_,
                             .shape = std::move(initial.header.shape),
                             .row_bytes = stored_bytes(element_, tensor_.head_dim),
                             .initial = std::move(initial.data)};
        output.written.resize(output.initial.size() / std::max<std::uint64_t>(output.row_bytes, 1));
        return output;
    }

    const CaseFolder& folder_;
    const StepsCase& steps_;
    const CaseTensor& tensor_;
    TensorIndex which_;
    Element element_;
    TensorInfo& info_;
    Call& call_;
    verify::Parameters& parameters_;
    verify::Memory& memory_;
    std::optional<CaseCache> cache_;
};

}  // namespace

CaseOps add_ops(const CaseFolder& folder, const StepsCase& steps, const CaseTensor& tensor,
                TensorIndex which, Element element, verify::Operation& operation,
                verify::Memory& memory) {
    operation.info.tensor[which].in = element;
    return Reader(folder, steps, tensor, which, element, operation, memory).read();
}

bool same_slots(const std::optional<CaseCache>& a, const std::optional<CaseCache>& b) {
    if (!a || !b) {
        return !a && !b;
    }
    return a->slots == b->slots && a->paged.page_size == b->paged.page_size &&
           a->paged.page_stride == b->paged.page_stride &&
           a->paged.row_stride == b->paged.row_stride;
}

}  // namespace vkrope::conformance
