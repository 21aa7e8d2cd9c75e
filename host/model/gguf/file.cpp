// SPDX-License-Identifier: MIT
#include "model/gguf/file.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <string_view>

#include "model/gguf/cursor.hpp"
#include "model/names.hpp"

namespace vkrope {
namespace {

// Limits on the memory and time that a head takes. The size of the file bounds neither: a hole in a
// sparse file takes no space, and its zeros are valid entries. The largest real heads have some 100
// keys, 2000 tensors, a million strings (tokens and merges) and 50 MB.
constexpr std::uint64_t max_values = 16384;
constexpr std::uint64_t max_tensors = std::uint64_t{1} << 17;
constexpr std::uint64_t max_steps_together = std::uint64_t{1}
                                             << 22;  // elements that must be skipped one by one
constexpr std::uint64_t max_name_bytes = 65535;      // the format's own limit
constexpr std::uint64_t max_key_bytes_together = 1 << 20;  // keys are kept to detect duplicates
constexpr std::uint64_t longest_text = 256;
constexpr std::uint64_t longest_list = 65536;  // one number per layer
constexpr std::uint64_t max_list_numbers_together = 1 << 20;
constexpr std::uint64_t max_dimensions = 4;
constexpr std::uint64_t longest_factors = 32767;  // pairs of the widest head row
constexpr std::uint32_t deepest_list = 8;
constexpr std::uint32_t float32_tensor = 0;
constexpr const GgufType& float32 = gguf_types[6];

// Minimum bytes of a metadata value and of a tensor info.
constexpr std::uint64_t least_value_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t least_tensor_bytes = 8 + 4 + 4 + 8;

constexpr auto frequency_tensors = names("rope_freqs.weight", "rope_factors_long.weight",
                                         "rope_factors_short.weight");

constexpr auto norms = names(".attn_kv_a_norm.weight", ".attn_q_norm.weight", ".attn_k_norm.weight",
                             ".attn_q_norm.bias", ".attn_k_norm.bias");

// Returns the layer of a tensor named "blk.<layer>....", and removes this from the name. Returns
// -1 for other names and for layers of more than four digits, so that few layers are stored.
int take_layer(std::string_view& title) {
    if (!title.starts_with("blk.")) return -1;
    const char *const digits = title.data() + 4, *const end = title.data() + title.size();
    unsigned layer = 0;  // accepts no sign
    const char* const rest =
        std::from_chars(digits, digits + std::min<std::ptrdiff_t>(4, end - digits), layer).ptr;
    if (rest == digits || rest == end || *rest != '.') return -1;
    title.remove_prefix(std::size_t(rest - title.data()));
    return int(layer);
}

// Remaining limits for all lists of a file.
struct Room {
    std::uint64_t numbers = max_list_numbers_together;  // numbers that may still be stored
    // Elements of variable length that may still be skipped.
    std::uint64_t steps = max_steps_together;
};

// Skips the elements of a list, after its type and count were read. Skips numbers in one step.
void skip_elements(GgufCursor& cursor, const GgufType& type, std::uint64_t count, Room& room,
                   std::uint32_t depth = 1) {
    if (type.bytes != 0) {
        cursor.skip(count, type.bytes);
        return;
    }
    if (depth > deepest_list)
        invalid_data("{} is nested more than {} deep", cursor.what(), deepest_list);
    if (count > room.steps) {
        invalid_data(
            "{} has {} elements: strings and lists in lists must be at most {} in the whole file",
            cursor.what(), count, max_steps_together);
    }
    room.steps -= count;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (type.kind == 's') {
            cursor.skip(cursor.u64());
        } else {
            const GgufType& inner = cursor.type();
            skip_elements(cursor, inner, cursor.u64(), room, depth + 1);
        }
    }
}

json read_number(GgufCursor& cursor, const GgufType& type) {
    const std::uint64_t bits = cursor.whole(std::size_t(type.bytes));
    if (type.kind == 'b' && bits > 1)
        invalid_data("{} is a boolean of {}: it must be 0 or 1", cursor.what(), bits);
    return json_number(gguf_number(type, bits));
}

GgufValue read_value(GgufCursor& cursor, Room& room) {
    const GgufType& type = cursor.type();
    GgufValue value = {type.name};
    if (type.bytes != 0) {
        value.value = read_number(cursor, type);
        if (type.kind == 'b') value.value = value.value != 0;
    } else if (type.kind == 's') {
        const std::uint64_t bytes = cursor.u64();
        bytes <= longest_text ? void(value.value = cursor.text(bytes)) : cursor.skip(bytes);
    } else {
        const GgufType& inner = cursor.type();
        const std::uint64_t count = cursor.u64();
        if (inner.bytes == 0 || count > std::min(longest_list, room.numbers)) {
            skip_elements(cursor, inner, count, room);
            return value;
        }
        room.numbers -= count;
        value.value = json::array();
        for (std::uint64_t i = 0; i < count; ++i) value.value.push_back(read_number(cursor, inner));
    }
    return value;
}

// Reads the name of a key or a tensor.
std::string read_name(GgufCursor& cursor) {
    const std::uint64_t bytes = cursor.u64();
    if (bytes > max_name_bytes) {
        invalid_data("{} has a name of {} bytes: it must be at most {}", cursor.what(), bytes,
                     max_name_bytes);
    }
    return cursor.text(bytes);
}

// Checks the magic number. Failed downloads and Git LFS pointers begin with text.
void check_magic(GgufCursor& cursor) {
    constexpr std::string_view magic = "GGUF";
    const std::string begins = cursor.text(std::min<std::uint64_t>(magic.size(), cursor.left()));
    if (begins == magic) return;
    std::string bytes;
    for (const char c : begins) {
        constexpr std::string_view digits = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        bytes += {' ', digits[byte >> 4], digits[byte & 15]};
    }
    invalid_data(
        "the file does not begin with GGUF, the bytes 47 47 55 46: it begins with \"{}\",{}, so it "
        "is not a GGUF file",
        shown_key(begins), bytes.empty() ? " nothing" : bytes);
}

void check_version(GgufCursor& cursor) {
    const std::uint32_t version = cursor.u32();
    if (version != 0 && (version & 0xffff) == 0)
        not_supported("the file is big-endian: only little-endian GGUF is read");
    if (version != 2 && version != 3) {
        not_supported("the file is GGUF version {}: it must be 2 or 3; convert the model again",
                      version);
    }
}

// Fails if `count` is above `most`, or if items of at least `least` bytes exceed the file.
void check_count(const GgufCursor& cursor, const char* what, std::uint64_t count,
                 std::uint64_t most, std::uint64_t least) {
    if (count > most)
        invalid_data("the file says that it has {} {}: it must be at most {}", count, what, most);
    if (count > cursor.left() / least) {
        invalid_data("the file says that it has {} {}: they do not fit in its {} bytes", count,
                     what, cursor.left() + cursor.at());
    }
}

}  // namespace

GgufFile::GgufFile(std::uint64_t file_bytes, const GgufRead& read)
    : parts_{{.bytes = file_bytes, .read = read}} {
    GgufCursor cursor(file_bytes, parts_.front().read);
    check_magic(cursor);
    check_version(cursor);
    const std::uint64_t tensors = cursor.u64();
    const std::uint64_t values = cursor.u64();
    check_count(cursor, "tensors", tensors, max_tensors, least_tensor_bytes);
    check_count(cursor, "keys", values, max_values, least_value_bytes);
    read_values(cursor, values);
    read_tensors(cursor, tensors);
}

void GgufFile::read_values(GgufCursor& cursor, std::uint64_t count) {
    Room room;
    std::uint64_t key_bytes = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        cursor.inside("key " + std::to_string(i + 1));
        const std::string key = read_name(cursor);
        key_bytes += key.size();
        if (key_bytes > max_key_bytes_together)
            invalid_data("the keys have more than {} bytes together", max_key_bytes_together);
        cursor.inside(shown_key(key));
        if (values_.count(key) != 0) invalid_data("the key {} appears twice", shown_key(key));
        values_[key] = read_value(cursor, room);
    }
    if (const Field alignment = find("general.alignment")) {
        const bool is_uint32 = std::string_view(alignment.type) == "uint32";
        const auto bytes = is_uint32 ? std::uint32_t(finite_number(alignment)) : 0;
        if (!std::has_single_bit(bytes)) refuse(alignment, "a uint32, a power of two");
        parts_.front().alignment = bytes;
    }
}

void GgufFile::read_tensors(GgufCursor& cursor, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        cursor.inside("tensor " + std::to_string(i + 1));
        const std::string title = read_name(cursor);
        const std::uint32_t dimensions = cursor.u32();
        if (dimensions > max_dimensions) {
            invalid_data("tensor {} has {} dimensions: it must have at most {}", shown_key(title),
                         dimensions, max_dimensions);
        }
        Tensor tensor;
        for (std::uint32_t dimension = 0; dimension < dimensions; ++dimension)
            tensor.extents.push_back(cursor.u64());
        tensor.element = cursor.u32();
        tensor.offset = cursor.u64();
        std::string_view rest = title;
        const int layer = take_layer(rest);
        if (layer >= 0) layers_.insert(layer);
        const bool is_norm = layer >= 0 && contains(norms, rest);
        if (is_norm || contains(frequency_tensors, title)) keep(title, std::move(tensor));
    }
    has_tensors_ = count != 0;
    Part& part = parts_.front();
    part.data = (cursor.at() + part.alignment - 1) / part.alignment * part.alignment;
}

void GgufFile::keep(const std::string& title, Tensor tensor) {
    if (!tensors_.emplace(title, std::move(tensor)).second)
        invalid_data("the tensor {} is given twice", shown_key(title));
}

void GgufFile::add_part(std::uint64_t number, std::uint64_t file_bytes, const GgufRead& read) {
    GgufFile other(file_bytes, read);
    const std::uint64_t count = split("split.count"), its_number = other.split("split.no"),
                        its_count = other.split("split.count");
    if (its_number != number || its_count != count) {
        invalid_data(
            "split.no is {} and split.count is {} in part {} of {}: it is of another model",
            its_number, its_count, number + 1, count);
    }
    has_tensors_ = has_tensors_ || other.has_tensors_;
    for (auto& [title, tensor] : other.tensors_) {
        tensor.part = parts_.size();
        keep(title, std::move(tensor));
    }
    layers_.merge(other.layers_);
    parts_.push_back(std::move(other.parts_.front()));
}

std::uint64_t GgufFile::split(const char* key) const {
    const Field field = find(key);
    return field ? whole_number(field, 0, 65535) : 0;
}

const std::vector<std::uint64_t>* GgufFile::norm_extents(const std::string& tensor) const {
    const auto found = tensors_.find(tensor);
    return found == tensors_.end() ? nullptr : &found->second.extents;
}

bool GgufFile::has_layer(int layer) const {
    return layer < 0 ? !layers_.empty() : layers_.count(layer) != 0;
}

std::string GgufFile::layer_with(const std::string& norm) const {
    for (const auto& [title, tensor] : tensors_)
        if (title.ends_with(norm)) return title.substr(0, title.size() - norm.size());
    return {};
}

Field GgufFile::find(const std::string& key) const {
    const auto found = values_.find(key);
    const std::size_t architecture = key.find('.') + 1;  // each part is shortened by itself
    const std::string name = shown_key(key.substr(0, architecture)) +
                             shown_key(key.substr(architecture));
    if (found == values_.end()) return {name};
    return {name, &found->second.value, found->second.type};
}

std::vector<double> GgufFile::factors(const std::string& title) const {
    const auto found = tensors_.find(title);
    if (found == tensors_.end()) return {};
    const Tensor& tensor = found->second;
    const Part& part = parts_[tensor.part];
    const std::uint64_t count = tensor.extents.empty() ? 0 : tensor.extents[0];
    if (tensor.element != float32_tensor || tensor.extents.size() != 1 || count == 0 ||
        count > longest_factors) {
        invalid_data(
            "the tensor {} has {} dimensions, {} elements and the type {}: it must have 1, 1 to {} "
            "and 0, float32",
            title, tensor.extents.size(), count, tensor.element, longest_factors);
    }
    if (tensor.offset % part.alignment != 0) {
        invalid_data(
            "the tensor {} is at {} of the data: it must be a multiple of general.alignment, {}",
            title, tensor.offset, part.alignment);
    }
    const std::uint64_t bytes = 4 * count;
    if (part.data > part.bytes || tensor.offset > part.bytes - part.data ||
        bytes > part.bytes - part.data - tensor.offset) {
        invalid_data("the file is cut off: the tensor {} is beyond its {} bytes", title,
                     part.bytes);
    }
    std::vector<unsigned char> raw(std::size_t{bytes});
    if (part.read(part.data + tensor.offset, raw.data(), raw.size()) != raw.size())
        invalid_data("the tensor {} cannot be read", title);
    std::vector<double> numbers;
    for (std::size_t i = 0; i < raw.size(); i += 4)
        numbers.push_back(gguf_number(float32, little_endian(&raw[i], 4)));
    return numbers;
}

}  // namespace vkrope
