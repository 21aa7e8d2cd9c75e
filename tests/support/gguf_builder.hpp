// SPDX-License-Identifier: MIT
// Writes valid and invalid GGUF files in the format of docs/gguf.md of ggml.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

class GgufBuilder {
   public:
    explicit GgufBuilder(const std::string& architecture) : prefix_(architecture + ".") {
        text_of("general.architecture", architecture);
    }
    GgufBuilder() = default;

    std::uint32_t version = 3;
    std::uint64_t extra_values = 0, extra_tensors = 0;  // only counted in the header

    // These functions put the architecture before the key.
    GgufBuilder& u32(const std::string& key, std::uint32_t value) {
        return value_of(prefix_ + key, 4, little(value, 4));
    }
    GgufBuilder& f32(const std::string& key, float value) {
        return value_of(prefix_ + key, 6, little(std::bit_cast<std::uint32_t>(value), 4));
    }
    GgufBuilder& boolean(const std::string& key, unsigned char value) {
        return value_of(prefix_ + key, 7, little(value, 1));
    }
    GgufBuilder& text(const std::string& key, const std::string& value) {
        return text_of(prefix_ + key, value);
    }
    GgufBuilder& i32_list(const std::string& key, const std::vector<std::int32_t>& list) {
        std::string bytes = little(5, 4) + little(list.size(), 8);
        for (const std::int32_t number : list) bytes += little(std::uint32_t(number), 4);
        return value_of(prefix_ + key, 9, bytes);
    }
    GgufBuilder& f32_list(const std::string& key, const std::vector<float>& list) {
        std::string bytes = little(6, 4) + little(list.size(), 8);
        for (const float number : list) bytes += little(std::bit_cast<std::uint32_t>(number), 4);
        return value_of(prefix_ + key, 9, bytes);
    }
    GgufBuilder& boolean_list(const std::string& key, const std::vector<bool>& list) {
        std::string bytes = little(7, 4) + little(list.size(), 8);
        for (const bool one : list) bytes += little(one, 1);
        return value_of(prefix_ + key, 9, bytes);
    }

    // These functions use the key as given.
    GgufBuilder& text_of(const std::string& key, const std::string& value) {
        return value_of(key, 8, string(value));
    }
    GgufBuilder& text_list_of(const std::string& key, const std::vector<std::string>& list) {
        std::string bytes = little(8, 4) + little(list.size(), 8);
        for (const std::string& one : list) bytes += string(one);
        return value_of(key, 9, bytes);
    }
    GgufBuilder& value_of(const std::string& key, std::uint32_t type, const std::string& bytes) {
        values_ += string(key) + little(type, 4) + bytes;
        ++value_count_;
        return *this;
    }
    GgufBuilder& alignment(std::uint32_t bytes) {
        alignment_ = bytes;
        return value_of("general.alignment", 4, little(bytes, 4));
    }

    GgufBuilder& tensor(const std::string& name, const std::vector<float>& numbers,
                        std::uint32_t type = 0) {
        tensor_of(name, {numbers.size()}, type, data_.size());
        for (const float number : numbers) data_ += little(std::bit_cast<std::uint32_t>(number), 4);
        data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
        return *this;
    }
    GgufBuilder& tensor_of(const std::string& name, const std::vector<std::uint64_t>& extents,
                           std::uint32_t type, std::uint64_t offset) {
        tensors_ += string(name) + little(extents.size(), 4);
        for (const std::uint64_t extent : extents) tensors_ += little(extent, 8);
        tensors_ += little(type, 4) + little(offset, 8);
        ++tensor_count_;
        return *this;
    }

    // Returns everything before the tensors' data.
    std::string head() const {
        return "GGUF" + little(version, 4) + little(tensor_count_ + extra_tensors, 8) +
               little(value_count_ + extra_values, 8) + values_ + tensors_;
    }
    std::string file() const {
        std::string bytes = head();
        bytes.resize((bytes.size() + alignment_ - 1) / alignment_ * alignment_);
        return bytes + data_;
    }

    static std::string little(std::uint64_t value, int bytes) {
        std::string text;
        for (int i = 0; i < bytes; ++i) text.push_back(char(value >> 8 * i & 0xff));
        return text;
    }
    static std::string string(const std::string& content) {
        return little(content.size(), 8) + content;
    }

   private:
    std::string prefix_, values_, tensors_, data_;
    std::uint64_t value_count_ = 0, tensor_count_ = 0;
    std::uint32_t alignment_ = 32;
};
