// SPDX-License-Identifier: MIT
// The header of a safetensors file: its JSON, read event by event, and the rules for what it says.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/npy.hpp"
#include "io/safetensors.hpp"

namespace vkrope::safetensors {
namespace {

using nlohmann::json;
using npy::shape_text;

struct Dtype {
    std::string_view name;
    std::uint32_t bits;
};
constexpr Dtype dtypes[] = {{"BF16", 16},       {"BOOL", 8},    {"C64", 64},        {"F16", 16},
                            {"F32", 32},        {"F4", 4},      {"F64", 64},        {"F6_E2M3", 6},
                            {"F6_E3M2", 6},     {"F8_E4M3", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2", 8},
                            {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"I16", 16},        {"I32", 32},
                            {"I64", 64},        {"I8", 8},      {"U16", 16},        {"U32", 32},
                            {"U64", 64},        {"U8", 8}};

/// A name for messages, which need its end as much as its beginning, unless it is a hostile one.
std::string in_quotes(const std::string& name) {
    constexpr std::size_t longest_shown = 200;
    return "'" + (name.size() > longest_shown ? name.substr(0, longest_shown) + "..." : name) + "'";
}

/// Takes the events of a header and refuses everything that is not in one. Nothing is kept but the
/// tensors and the keys of one object, so that memory does not grow with what else a file says.
class Reader : public json::json_sax_t {
   public:
    explicit Reader(std::vector<Tensor>& tensors) : tensors_(tensors) {}

    bool null() override { refuse("null"); }
    bool boolean(bool) override { refuse("a truth value"); }
    bool number_integer(json::number_integer_t) override { refuse("a negative number"); }
    bool number_float(json::number_float_t, const json::string_t&) override {
        refuse("a fraction, or a number of 2^64 or more");
    }
    bool binary(json::binary_t&) override { refuse("binary data"); }

    bool number_unsigned(json::number_unsigned_t number) override {
        if (place_ == Place::shape) {
            std::vector<std::uint64_t>& shape = tensors_.back().shape;
            if (shape.size() == max_rank) {
                throw Error(fmt::format("{} has more than {} dimensions", where(), max_rank));
            }
            shape.push_back(number);
        } else if (place_ == Place::offsets) {
            (offsets_++ == 0 ? tensors_.back().begin : tensors_.back().end) = number;
            if (offsets_ > 2) {
                throw Error(fmt::format("{} has more than two numbers", where()));
            }
        } else {
            refuse("a number");
        }
        return true;
    }

    bool string(json::string_t& text) override {
        if (place_ == Place::tensor && key_ == "dtype") {
            if (text.size() > max_dtype_bytes) {
                throw Error(fmt::format("{} has {} bytes; it may have at most {}", where(),
                                        text.size(), max_dtype_bytes));
            }
            tensors_.back().dtype = text;
        } else if (place_ != Place::metadata) {
            refuse("a string");
        }
        return true;
    }

    bool start_object(std::size_t) override {
        switch (place_) {
            case Place::document: place_ = Place::header; return true;
            case Place::header:
                place_ = key_ == "__metadata__" ? Place::metadata : Place::tensor;
                keys_.clear();
                return true;
            default: refuse("an object");
        }
    }

    bool end_object() override {
        if (place_ == Place::tensor) {
            for (const char* key : {"dtype", "shape", "data_offsets"}) {
                if (!keys_.contains(key)) {
                    throw Error(fmt::format("tensor {}: {} is missing",
                                            in_quotes(tensors_.back().name), key));
                }
            }
        }
        place_ = Place::header;
        return true;
    }

    bool start_array(std::size_t) override {
        if (place_ != Place::tensor || key_ == "dtype") {
            refuse("an array");
        }
        place_ = key_ == "shape" ? Place::shape : Place::offsets;
        offsets_ = 0;
        return true;
    }

    bool end_array() override {
        if (place_ == Place::offsets && offsets_ != 2) {
            throw Error(fmt::format("{} has {} numbers; it must have two: begin and end", where(),
                                    offsets_));
        }
        place_ = Place::tensor;
        return true;
    }

    bool key(json::string_t& name) override {
        key_ = name;
        if (place_ == Place::header && name != "__metadata__") {
            if (tensors_.size() == max_tensors) {
                throw Error(fmt::format("more than {} tensors", max_tensors));
            }
            if (name.size() > max_name_bytes) {
                throw Error(fmt::format("tensor {} has a name of {} bytes; it may have at most {}",
                                        in_quotes(name), name.size(), max_name_bytes));
            }
            tensors_.push_back({.name = name, .dtype = {}, .shape = {}});
            return true;
        }
        if (place_ == Place::header) {
            if (has_metadata_) {
                throw Error("the header has the key __metadata__ twice");
            }
            has_metadata_ = true;
            return true;
        }
        if (place_ == Place::tensor && name != "dtype" && name != "shape" &&
            name != "data_offsets") {
            throw Error(
                fmt::format("tensor {} has the key {}; the keys are dtype, shape and "
                            "data_offsets",
                            in_quotes(tensors_.back().name), in_quotes(name)));
        }
        if (keys_.size() == max_tensors) {
            throw Error(fmt::format("__metadata__ has more than {} keys", max_tensors));
        }
        if (!keys_.insert(name).second) {
            throw Error(fmt::format("{} has the key {} twice",
                                    place_ == Place::metadata
                                        ? std::string("__metadata__")
                                        : "tensor " + in_quotes(tensors_.back().name),
                                    in_quotes(name)));
        }
        return true;
    }

    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::detail::exception&) override {
        throw Error(fmt::format("the header is not valid JSON at byte {} of it", position));
    }

   private:
    enum class Place { document, header, tensor, metadata, shape, offsets };

    /// What is being read, for messages.
    std::string where() const {
        switch (place_) {
            case Place::document: return "the header";
            case Place::header:
                return key_ == "__metadata__" ? key_ : "tensor " + in_quotes(tensors_.back().name);
            case Place::metadata: return "__metadata__: the key " + in_quotes(key_);
            default: return fmt::format("tensor {}: {}", in_quotes(tensors_.back().name), key_);
        }
    }

    const char* rule() const {
        switch (place_) {
            case Place::document:
            case Place::header: return "an object";
            case Place::metadata: return "a string";
            case Place::tensor: return key_ == "dtype" ? "a string" : "an array of whole numbers";
            default: return "whole numbers below 2^64";
        }
    }

    [[noreturn]] void refuse(const char* what) const {
        throw Error(fmt::format("{} has {}; it must be {}", where(), what, rule()));
    }

    std::vector<Tensor>& tensors_;
    Place place_ = Place::document;
    std::string key_;             // the last one
    std::set<std::string> keys_;  // of the tensor, or of the metadata
    bool has_metadata_ = false;
    std::size_t offsets_ = 0;  // numbers in data_offsets so far
};

/// Bytes of a tensor of a known dtype. Dimensions of zero count as one in the check for overflow,
/// so that no product of some of the others can overflow in a caller.
std::uint64_t bytes_of(const Tensor& tensor, std::uint32_t bits) {
    const auto problem = [&](const char* rule) {
        return Error(fmt::format("tensor {}: shape {} of {} {}", in_quotes(tensor.name),
                                 shape_text(tensor.shape), tensor.dtype, rule));
    };
    std::uint64_t all_bits = bits;
    bool empty = false;
    for (const std::uint64_t dimension : tensor.shape) {
        empty = empty || dimension == 0;
        if (dimension > std::numeric_limits<std::uint64_t>::max() / all_bits) {
            throw problem("has 2^61 bytes or more");
        }
        all_bits *= std::max<std::uint64_t>(dimension, 1);
    }
    if (!empty && all_bits % 8 != 0) {
        throw problem("does not fill whole bytes");
    }
    return empty ? 0 : all_bits / 8;
}

void check_sizes(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
        if (tensor.begin > tensor.end) {
            throw Error(
                fmt::format("tensor {}: data_offsets are [{}, {}]; the end must not be "
                            "before the beginning",
                            in_quotes(tensor.name), tensor.begin, tensor.end));
        }
        const std::optional<std::uint32_t> bits = element_bits(tensor.dtype);
        if (!bits) {
            continue;
        }
        const std::uint64_t bytes = bytes_of(tensor, *bits);
        if (tensor.end - tensor.begin != bytes) {
            throw Error(fmt::format(
                "tensor {}: data_offsets are [{}, {}], {} bytes; shape {} of {} has {}",
                in_quotes(tensor.name), tensor.begin, tensor.end, tensor.end - tensor.begin,
                shape_text(tensor.shape), tensor.dtype, bytes));
        }
    }
}

/// Every byte of the data belongs to one tensor.
void check_places(const std::vector<Tensor>& tensors, std::uint64_t data_bytes) {
    std::vector<const Tensor*> by_place;
    for (const Tensor& tensor : tensors) {
        by_place.push_back(&tensor);
    }
    std::sort(by_place.begin(), by_place.end(), [](const Tensor* one, const Tensor* other) {
        return one->begin != other->begin ? one->begin < other->begin : one->end < other->end;
    });
    std::uint64_t end = 0;
    for (const Tensor* tensor : by_place) {
        if (tensor->begin < end) {
            throw Error(
                fmt::format("tensor {} begins at byte {} of the data, where another has "
                            "bytes up to {}; tensors must not overlap",
                            in_quotes(tensor->name), tensor->begin, end));
        }
        if (tensor->begin > end) {
            throw Error(
                fmt::format("tensor {} begins at byte {} of the data, and bytes {} to {} "
                            "belong to no tensor; there must be no hole",
                            in_quotes(tensor->name), tensor->begin, end, tensor->begin));
        }
        end = tensor->end;
    }
    if (end > data_bytes) {
        throw Error(fmt::format("cut off: the tensors have {} bytes, the file has {} of them", end,
                                data_bytes));
    }
    if (end < data_bytes) {
        throw Error(fmt::format("{} extra bytes after the data: the tensors have {} bytes",
                                data_bytes - end, end));
    }
}

void check_names(const std::vector<Tensor>& tensors) {
    std::vector<std::string_view> names;
    for (const Tensor& tensor : tensors) {
        names.push_back(tensor.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
        throw Error(
            fmt::format("the header has the tensor {} twice", in_quotes(std::string(*twice))));
    }
}

}  // namespace

std::optional<std::uint32_t> element_bits(std::string_view dtype) noexcept {
    const auto* found = std::find_if(std::begin(dtypes), std::end(dtypes),
                                     [dtype](const Dtype& row) { return row.name == dtype; });
    return found == std::end(dtypes) ? std::nullopt : std::optional(found->bits);
}

const Tensor* Header::find(std::string_view name) const noexcept {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [name](const Tensor& each) { return each.name == name; });
    return found == tensors.end() ? nullptr : &*found;
}

std::uint64_t header_length(std::span<const std::byte, length_bytes> start) noexcept {
    std::uint64_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) {
        length = length << 8 | std::to_integer<std::uint64_t>(start[i]);
    }
    return length;
}

Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes) {
    if (start.size() < length_bytes) {
        throw Error(fmt::format("cut off: {} bytes, but the header's length alone has {}",
                                start.size(), length_bytes));
    }
    const std::uint64_t header_bytes = header_length(start.first<length_bytes>());
    if (header_bytes > max_header_bytes) {
        throw Error(
            fmt::format("not a safetensors file: the header's length is {}; it may be at "
                        "most {}",
                        header_bytes, max_header_bytes));
    }
    if (header_bytes > file_bytes - length_bytes) {
        throw Error(fmt::format("cut off in the header: its length is {}, and {} bytes follow",
                                header_bytes, file_bytes - length_bytes));
    }
    const auto first = reinterpret_cast<const char*>(start.data()) + length_bytes;
    // Where only the beginning is present, its first character says whether to read the rest.
    const std::string_view text(first,
                                std::min<std::size_t>(start.size() - length_bytes, header_bytes));
    if (!text.starts_with('{')) {
        throw Error("not a safetensors file: the header does not begin with {");
    }
    // The parser would stop there, whatever follows.
    if (const std::size_t zero = text.find('\0'); zero != text.npos) {
        throw Error(fmt::format("the header has a byte of value 0 at {}", zero));
    }
    if (text.size() < header_bytes) {
        throw Error(
            fmt::format("cut off in the header: {} bytes of {}", text.size(), header_bytes));
    }
    Header header = {.data_offset = length_bytes + header_bytes, .tensors = {}};
    Reader reader(header.tensors);
    json::sax_parse(text, &reader);
    check_names(header.tensors);
    check_sizes(header.tensors);
    check_places(header.tensors, file_bytes - header.data_offset);
    return header;
}

}  // namespace vkrope::safetensors
