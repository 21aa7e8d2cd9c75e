// SPDX-License-Identifier: MIT
#include "conformance/cases/ops.hpp"

#include <algorithm>
#include <cstring>

#include "io/element_type.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

/// Bits that a rotation does not leave by accident.
constexpr std::byte poison{0xa5};

using Shape = std::vector<std::uint64_t>;

/// One number for each token: the file has the token axes of the tensor, or a row that all
/// sequences share. Returns the index in the file for each element of [batch, tokens].
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

}  // namespace

ParameterSource CaseOps::Parameter::source() const noexcept {
    if (shape == VKROPE_PARAMETER_NONE) {
        return {};
    }
    return {array.data.data(), *tools::element_of(array.header.type), count_of(array)};
}

CaseOps::Parameter CaseOps::read_parameter(const std::string& file,
                                           const CaseTensor& tensor) const {
    Parameter parameter;
    if (file.empty()) {
        return parameter;
    }
    parameter.array = folder_.array(file);
    const npy::Header& header = parameter.array.header;
    if (!tools::element_of(header.type)) {
        unsupported("{}: has data of type {}; the library takes f32, f16 and bf16", file,
                    npy::name(header.type));
    }
    const std::uint64_t heads = tensor.heads, head_dim = tensor.head_dim;
    if (header.shape == Shape{head_dim}) {
        parameter.shape = VKROPE_PARAMETER_CHANNEL;
    } else if (header.shape == Shape{heads, head_dim} || header.shape == Shape{heads * head_dim}) {
        parameter.shape = VKROPE_PARAMETER_HEAD_CHANNEL;
    } else {
        wrong_file("{}: has shape {}; tensors.{} needs ({},), ({}, {}) or ({},)", file,
                   npy::shape_text(header.shape), tensor.name, head_dim, heads, head_dim,
                   heads * head_dim);
    }
    return parameter;
}

void CaseOps::read_norm(const NormCase& norm, const CaseTensor& tensor) {
    weight_ = read_parameter(norm.weight, tensor);
    norm_bias_ = read_parameter(norm.bias, tensor);
    if (norm.weight_dtype && weight_.shape != VKROPE_PARAMETER_NONE &&
        tools::npy_type(*norm.weight_dtype) != weight_.array.header.type) {
        wrong_file("{}: has data of type {}; weight_dtype needs {}", norm.weight,
                   npy::name(weight_.array.header.type),
                   npy::name(tools::npy_type(*norm.weight_dtype)));
    }
    ops_.norm = {.kind = norm.kind,
                 .span = norm.span,
                 .place = norm.place,
                 .eps = static_cast<float>(norm.eps),
                 .weight = weight_.shape,
                 .weight_offset = norm.weight_offset,
                 .bias = norm_bias_.shape};
}

void CaseOps::read_second_set(const CaseTensor& tensor) {
    if (steps_.first_set_tokens >= tensor.tokens) {
        wrong_file("second_set.first_tokens is {}: it must be below the {} tokens of tensors.{}",
                   steps_.first_set_tokens, tensor.tokens, tensor.name);
    }
    const auto read = [&](const std::string& file, const Parameter& first) {
        if (file.empty()) {
            return first;
        }
        const Parameter second = read_parameter(file, tensor);
        if (second.shape != first.shape) {
            wrong_file("{}: has shape {}; the first one has {}", file,
                       npy::shape_text(second.array.header.shape),
                       npy::shape_text(first.array.header.shape));
        }
        return second;
    };
    second_bias_ = read(steps_.second_bias, bias_);
    second_weight_ = read(steps_.second_weight, weight_);
    second_norm_bias_ = read(steps_.second_norm_bias, norm_bias_);
}

void CaseOps::read_scales(DeviceUnderTest& device, const CaseTensor& tensor) {
    const npy::Array array = folder_.array(steps_.scale_tokens);
    if (array.header.type != npy::Type::f4) {
        wrong_file("{}: has data of type {}; scale_tokens are <f4", steps_.scale_tokens,
                   npy::name(array.header.type));
    }
    std::vector<float> scales;
    for (const std::size_t place : token_places(steps_.scale_tokens, array.header.shape, tensor)) {
        scales.push_back(static_cast<float>(value_at(array, place)));
    }
    scale_tokens_ = device.upload(scales.data(), scales.size() * sizeof(float));
    ops_.scale_tokens = true;
}

void CaseOps::read_cache(DeviceUnderTest& device, const CaseTensor& tensor) {
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
        // Strides count channels, whatever the cache has of them.
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
            "{}.shape {} in layout {} is for pages of {} rows, {} heads and {} {}; page_size is "
            "{}, and tensors.{} has {} heads and {} {}",
            name, npy::shape_text(described.shape), described.layout, lengths[1], lengths[2],
            lengths[3], counts_bytes ? "bytes" : "channels", described.page_size, tensor.name,
            tensor.heads, last, counts_bytes ? "bytes of this type" : "channels");
    }
    CaseCache cache;
    cache.slot_count = lengths[0] * lengths[1];
    cache.heads_before_rows = described.layout.find('H') < described.layout.find('P');
    const CaseFolder::IntegerList list = folder_.integers(described.slots);
    cache.slots = {
        .shape = {tensor.batch, tensor.tokens}, .values = {}, .wide = list.wide, .bytes = {}};
    for (const std::size_t place : token_places(name_of(described.slots), list.shape, tensor)) {
        const std::int64_t slot = list.values[place];
        if (slot < -1 || (slot >= 0 && static_cast<std::uint64_t>(slot) >= cache.slot_count)) {
            wrong_file("{}.slots has {}; the cache has {} slots", name, slot, cache.slot_count);
        }
        cache.slots.values.push_back(slot);
        const auto narrow = static_cast<std::int32_t>(slot);
        const auto bytes = list.wide ? std::as_bytes(std::span(&slot, 1))
                                     : std::as_bytes(std::span(&narrow, 1));
        cache.slots.bytes.insert(cache.slots.bytes.end(), bytes.begin(), bytes.end());
    }
    cache.slot_mapping = device.upload(cache.slots.bytes.data(), cache.slots.bytes.size());
    cache.paged = {.slot_mapping = cache.slot_mapping.whole(),
                   .int64 = list.wide,
                   .page_size = static_cast<std::uint32_t>(described.page_size),
                   .page_stride = strides[0],
                   .row_stride = described.page_size == 1 ? strides[0] : strides[1]};
    cache.head_stride = strides[2];
    cache_ = std::move(cache);
}

void CaseOps::read_hadamard(const CaseTensor& tensor) {
    constexpr std::uint64_t most = 512;
    const std::uint64_t block = steps_.hadamard;
    if (tensor.head_dim % block != 0) {
        wrong_file("hadamard.{} is {}: it must divide the {} channels of a head", tensor.name,
                   block, tensor.head_dim);
    }
    if (block > most) {
        unsupported("hadamard.{} is {}: the library transforms blocks of at most {} channels",
                    tensor.name, block, most);
    }
    ops_.hadamard = block > 1 ? static_cast<std::uint32_t>(block) : 0;
}

void CaseOps::read_store_scale(const CaseTensor& tensor) {
    if (const auto* made = std::get_if<MadeScaleCase>(&*steps_.store_scale)) {
        ops_.store_scale = made->power_of_two ? VKROPE_STORE_SCALE_MADE_POWER_OF_TWO
                                              : VKROPE_STORE_SCALE_MADE;
        ops_.scale_floor = static_cast<float>(made->floor);
        if (cache_ && cache_->heads_before_rows) {
            ops_.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
        }
        return;
    }
    const auto& given = std::get<GivenScaleCase>(*steps_.store_scale);
    const auto* file = std::get_if<std::string>(&given);
    ops_.store_scale = file == nullptr ? VKROPE_STORE_SCALE_GIVEN : VKROPE_STORE_SCALE_GIVEN_HEAD;
    if (file == nullptr) {
        store_scales_ = {static_cast<float>(std::get<double>(given))};
        return;
    }
    const npy::Array array = folder_.array(*file);
    if (array.header.type != npy::Type::f4) {
        wrong_file("{}: has data of type {}; scales are <f4", *file, npy::name(array.header.type));
    }
    if (array.header.shape != Shape{tensor.heads}) {
        wrong_file("{}: has shape {}; tensors.{} needs ({},), a scale for each head", *file,
                   npy::shape_text(array.header.shape), tensor.name, tensor.heads);
    }
    for (std::size_t head = 0; head < tensor.heads; ++head) {
        store_scales_.push_back(static_cast<float>(value_at(array, head)));
    }
}

CaseOps::CaseOps(DeviceUnderTest& device, const CaseFolder& folder, const StepsCase& steps,
                 const CaseTensor& tensor, Element element)
    : folder_(folder), steps_(steps), element_(steps.out.value_or(element)) {
    if (tensor.head_dim % block_channels(element_) != 0) {
        wrong_file("out_dtype.{} has blocks of {} channels; tensors.{} has {} channels a head",
                   tensor.name, block_channels(element_), tensor.name, tensor.head_dim);
    }
    bias_ = read_parameter(steps.bias, tensor);
    ops_.bias = bias_.shape;
    ops_.clip = static_cast<float>(steps.clip);
    ops_.scale = static_cast<float>(steps.scale);
    if (steps.norm) {
        read_norm(*steps.norm, tensor);
    }
    if (steps.first_set_tokens != 0) {
        read_second_set(tensor);
    }
    if (!steps.scale_tokens.empty()) {
        read_scales(device, tensor);
    }
    read_hadamard(tensor);
    if (steps.cache) {
        read_cache(device, tensor);
    }
    if (steps.store_scale) {
        read_store_scale(tensor);
    }
}

TensorParameterSources CaseOps::sources() const noexcept {
    return sources(bias_, weight_, norm_bias_);
}

TensorParameterSources CaseOps::second_sources() const noexcept {
    return sources(second_bias_, second_weight_, second_norm_bias_);
}

TensorParameterSources CaseOps::sources(const Parameter& bias, const Parameter& weight,
                                        const Parameter& norm_bias) const noexcept {
    TensorParameterSources sources = {
        .bias = bias.source(), .weight = weight.source(), .norm_bias = norm_bias.source()};
    if (!store_scales_.empty()) {
        sources.store_scale = {store_scales_.data(), VKROPE_F32, store_scales_.size()};
    }
    return sources;
}

VkDescriptorBufferInfo CaseOps::scale_tokens() const noexcept {
    return ops_.scale_tokens ? scale_tokens_.whole() : VkDescriptorBufferInfo{};
}

VkDescriptorBufferInfo CaseOps::scales_out() const noexcept {
    return made_ ? made_->where() : VkDescriptorBufferInfo{};
}

std::optional<MadeScales> CaseOps::made_scales(DeviceUnderTest& device) {
    return made_ ? std::optional(made_->read(device)) : std::nullopt;
}

CaseOutput CaseOps::packed_output(const CaseTensor& tensor) const {
    CaseOutput output = {.element = element_,
                         .shape = tensor.shape,
                         .rows = tensor.out,
                         .row_bytes = stored_bytes(element_, tensor.head_dim),
                         .initial = {},
                         .written = {}};
    if (is_quantised(element_)) {
        output.shape.back() = stored_bytes(element_, output.shape.back());
    }
    output.initial.assign(stored_bytes(element_, tensor.count), poison);
    return output;
}

CaseOutput CaseOps::cache_output(const CaseTensor& tensor) const {
    npy::Array initial = folder_.array(steps_.cache->initial);
    if (initial.header.shape != steps_.cache->shape ||
        initial.header.type != tools::npy_type(element_)) {
        wrong_file("{}: has shape {} of {}; the cache of {} has {} of {}", steps_.cache->initial,
                   npy::shape_text(initial.header.shape), npy::name(initial.header.type),
                   tensor.name, npy::shape_text(steps_.cache->shape),
                   npy::name(tools::npy_type(element_)));
    }
    CaseOutput output = {.element = element_,
                         .shape = std::move(initial.header.shape),
                         .rows = {},
                         .row_bytes = stored_bytes(element_, tensor.head_dim),
                         .initial = std::move(initial.data),
                         .written = {}};
    output.written.resize(output.initial.size() / std::max<std::uint64_t>(output.row_bytes, 1));
    for (const std::int64_t slot : cache_->slots.values) {
        for (std::uint32_t head = 0; slot >= 0 && head < tensor.heads; ++head) {
            const PagedCache& paged = cache_->paged;
            const std::int64_t first = slot / paged.page_size * paged.page_stride +
                                       slot % paged.page_size * paged.row_stride +
                                       head * cache_->head_stride;
            output.written[static_cast<std::size_t>(first) / tensor.head_dim] = true;
        }
    }
    return output;
}

CaseOutput CaseOps::output(DeviceUnderTest& device, const CaseTensor& tensor) {
    CaseOutput output = cache_ ? cache_output(tensor) : packed_output(tensor);
    if (is_made(ops_.store_scale)) {
        made_.emplace(device, tensor, cache_ ? &*cache_ : nullptr);
    }
    return output;
}

bool same_slots(const std::optional<CaseCache>& a, const std::optional<CaseCache>& b) {
    if (!a || !b) {
        return !a && !b;
    }
    return a->slots.values == b->slots.values && a->paged.page_size == b->paged.page_size &&
           a->paged.page_stride == b->paged.page_stride &&
           a->paged.row_stride == b->paged.row_stride;
}

Buffer parameters_of(DeviceUnderTest& device, const KernelInfo& info,
                     const ParameterSources& sources, const ParameterSources& second,
                     VkDescriptorBufferInfo& where) {
    const ParameterLayout plan = value_of(plan_parameters(info));
    Buffer buffer;
    if (plan.bytes > 0) {
        const std::size_t floats = plan.bytes / sizeof(float);
        std::vector<float> content(info.two_parameter_sets ? 2 * floats : floats);
        check(fill_parameters(plan, sources, content.data(), plan.bytes));
        if (info.two_parameter_sets) {
            check(fill_parameters(plan, second, &content[floats], plan.bytes));
        }
        buffer = device.upload(content.data(), content.size() * sizeof(float));
        where = buffer.whole();
    }
    return buffer;
}

}  // namespace vkrope::conformance
