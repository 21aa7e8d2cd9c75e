// SPDX-License-Identifier: MIT
#include "verify/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace vkrope::verify {
namespace {

// Defines words_of(TYPE), the words of an enumeration from 0.
#define VKROPE_WORDS(type, ...)                               \
    std::span<const char* const> words_of(type) {             \
        static constexpr const char* words[] = {__VA_ARGS__}; \
        return words;                                         \
    }
#include "verify/fields.inc"
#undef VKROPE_WORDS

template <class Visit>
void each_field(Parameters& of, const Visit& visit) {
    visit("bias", of.bias);
    visit("weight", of.weight);
    visit("norm_bias", of.norm_bias);
    visit("store_scale", of.store_scale);
}
template <class Visit>
void each_field(Unplaced& of, const Visit& visit) {
    visit("info", of.info);
    visit("call", of.call);
    visit("inv_freq", of.inv_freq);
    visit("phase", of.phase);
    visit("attention_factor", of.attention_factor);
    visit("precision", of.precision);
    visit("max_position", of.max_position);
    visit("row_stride", of.row_stride);
    visit("parameters", of.parameters);
    visit("second", of.second);
    visit("memory", of.memory);
    visit("shape.batch", of.shape.batch);
    visit("shape.tokens", of.shape.tokens);
    visit("shape.groups", of.shape.groups);
    visit("shape.q_per_group", of.shape.q_per_group);
    visit("shape.own_q_heads", of.shape.own_q_heads);
    visit("shape.own_v_heads", of.shape.own_v_heads);
    visit("in", of.in);
    visit("out", of.out);
    visit("in_place", of.in_place);
    visit("absent", of.absent);
    visit("lead", of.lead);
    visit("rows", of.rows);
    visit("seed", of.seed);
    visit("counts", of.counts);
    visit("token_count", of.token_count);
    visit("ids", of.ids);
    visit("slots", of.slots);
    visit("sources", of.sources);
    visit("v_slots", of.v_slots);
    visit("v_sources", of.v_sources);
    visit("scales", of.scales);
    visit("pages_by_head", of.pages_by_head);
    visit("page_gaps", of.page_gaps);
    visit("beside", of.beside);
    visit("shares_weight", of.shares_weight);
    visit("cos", of.cos);
    visit("sin", of.sin);
    visit("limits.storage_buffers", of.limits.storage_buffers);
    visit("limits.storage_range", of.limits.storage_range);
    visit("limits.workgroups_x", of.limits.workgroups_x);
    visit("limits.workgroups_y", of.limits.workgroups_y);
    visit("limits.workgroups_z", of.limits.workgroups_z);
    visit("limits.no_push_descriptors", of.limits.no_push_descriptors);
}

std::span<const char* const> words_of(Arrangement) {
    static const auto words = [] {
        std::vector<const char*> found;
        for (const NamedArrangement& arrangement : arrangements) found.push_back(arrangement.name);
        return found;
    }();
    return words;
}

template <class T>
constexpr bool is_array = std::is_array_v<T>;
template <class T, std::size_t count>
constexpr bool is_array<std::array<T, count>> = true;

// Adds a field, or the fields of a struct or array.
class Collector {
   public:
    Collector(std::vector<Field>& fields, std::string prefix)
        : fields_(fields), prefix_(std::move(prefix)) {}

    template <class T>
    void operator()(const std::string& name, T& of) const {
        const std::string path = prefix_ + name;
        if constexpr (is_array<T>)
            for (std::size_t i = 0; i < std::size(of); ++i)
                (*this)(name + '[' + std::to_string(i) + ']', of[i]);
        else if constexpr (std::is_same_v<T, Arrangement>)
            fields_.push_back({path, Enumeration{&of, "verify::Arrangement::", words_of(of)}});
        else if constexpr (std::is_enum_v<T>)
            fields_.push_back({path, Enumeration{&of, "", words_of(of)}});
        else if constexpr (std::is_constructible_v<decltype(Field::value), T*>)
            fields_.push_back({path, &of});
        else
            each_field(of, Collector(fields_, path + '.'));
    }

   private:
    std::vector<Field>& fields_;
    std::string prefix_;
};

// ---- Values as text ----

template <class T>
std::string text_of_number(T number) {
    if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(number))
            return std::isnan(number) ? "NAN" : number < 0 ? "-INFINITY" : "INFINITY";
        char buffer[64];
        std::string text(buffer, std::to_chars(buffer, std::end(buffer), number).ptr);
        if (text.find_first_of(".e") == std::string::npos) text += ".0";
        return text + (std::is_same_v<T, float> ? "f" : "");
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        return number == INT64_MIN ? "INT64_MIN" : std::to_string(number);
    } else {
        return std::to_string(number);
    }
}

template <class T>
std::string text_of_list(const std::vector<T>& numbers) {
    std::string text;
    for (const T& number : numbers) text += (text.empty() ? "" : ", ") + text_of_number(number);
    return '{' + text + '}';
}

constexpr const char* zeros = "verify::Bytes(";
constexpr const char* words_list = "verify::bytes_of(std::vector<std::uint32_t>";
constexpr const char* bytes_list = "verify::bytes_of(std::vector<std::uint8_t>";

// Returns the bits of numbers of a type.
template <class T>
std::string text_of_bits(const Bytes& bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
        T bits = 0;
        std::memcpy(&bits, &bytes[i], sizeof bits);
        char buffer[16];
        text += (i == 0 ? "0x" : ", 0x") +
                std::string(buffer, std::to_chars(buffer, std::end(buffer), bits, 16).ptr);
    }
    return '{' + text + '}';
}

struct Printer {
    template <class T>
    std::string operator()(const T* number) const {
        return text_of_number(*number);
    }
    std::string operator()(const bool* yes) const { return *yes ? "true" : "false"; }
    std::string operator()(const std::int64_t* stride) const {
        return *stride == VKROPE_BROADCAST ? "VKROPE_BROADCAST" : text_of_number(*stride);
    }
    template <class T>
    std::string operator()(const std::vector<T>* numbers) const {
        return text_of_list(*numbers);
    }
    std::string operator()(const Enumeration& of) const { return of.prefix + of.words[of.value()]; }
    std::string operator()(const Bytes* bytes) const {
        if (*bytes == Bytes(bytes->size())) return zeros + std::to_string(bytes->size()) + ')';
        return bytes->size() % 4 == 0 ? words_list + text_of_bits<std::uint32_t>(*bytes) + ')'
                                      : bytes_list + text_of_bits<std::uint8_t>(*bytes) + ')';
    }
};

// ---- Text as values ----

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view spaces = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
    return text.substr(0, text.find_last_not_of(spaces) + 1);
}

// Removes both ends of a text. Returns false if it does not have them.
bool strip(std::string_view& text, std::string_view start, std::string_view end = "") {
    if (text.size() < start.size() + end.size() || !text.starts_with(start) || !text.ends_with(end))
        return false;
    text = text.substr(start.size(), text.size() - start.size() - end.size());
    return true;
}

// Calls visit(part) for each part of a text between separators.
template <class Visit>
void each_part(std::string_view text, char separator, const Visit& visit) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        visit(trimmed(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

[[noreturn]] void wrong(std::string_view text, const std::string& problem) {
    throw std::invalid_argument('\'' + std::string(text) + "' " + problem);
}

template <class T>
T number_of(std::string_view text) {
    if constexpr (std::is_same_v<T, std::int64_t>)
        if (text == "INT64_MIN" || text == "VKROPE_BROADCAST") return INT64_MIN;
    T number = 0;
    std::string_view digits = text;
    std::from_chars_result read = {};
    if constexpr (std::is_floating_point_v<T>) {
        if (std::is_same_v<T, float>) strip(digits, "", "f");
        read = std::from_chars(digits.begin(), digits.end(), number);
    } else {
        const int base = strip(digits, "0x") ? 16 : 10;
        read = std::from_chars(digits.begin(), digits.end(), number, base);
    }
    if (read.ec == std::errc::result_out_of_range) wrong(text, "is out of range");
    if (read.ec != std::errc() || read.ptr != digits.end())
        wrong(text, std::is_floating_point_v<T> ? "is no number" : "is no integer of this type");
    return number;
}

template <class T>
std::vector<T> list_of(std::string_view text) {
    std::string_view rest = text;
    if (!strip(rest, "{", "}")) wrong(text, "is no list {...}");
    std::vector<T> numbers;
    each_part(rest, ',', [&](std::string_view number) { numbers.push_back(number_of<T>(number)); });
    return numbers;
}

struct Reader {
    std::string_view text;

    template <class T>
    void operator()(T* number) const {
        *number = number_of<T>(text);
    }
    void operator()(bool* yes) const {
        if (text != "true" && text != "false") wrong(text, "is neither true nor false");
        *yes = text == "true";
    }
    template <class T>
    void operator()(std::vector<T>* numbers) const {
        *numbers = list_of<T>(text);
    }
    void operator()(const Enumeration& of) const {
        std::string known;
        for (std::uint32_t value = 0; value < of.words.size(); ++value) {
            const std::string word = of.prefix + of.words[value];
            if (word == text) return of.set(value);
            known += (known.empty() ? "" : ", ") + word;
        }
        wrong(text, "is none of " + known);
    }
    void operator()(Bytes* bytes) const {
        std::string_view list = text;
        if (strip(list, zeros, ")"))
            *bytes = Bytes(number_of<std::uint32_t>(list));
        else if (strip(list, words_list, ")"))
            *bytes = bytes_of(list_of<std::uint32_t>(list));
        else if (strip(list, bytes_list, ")"))
            *bytes = bytes_of(list_of<std::uint8_t>(list));
        else
            wrong(text, std::string("is no ") + words_list + "{...})");
    }
};

void read_statement(std::string_view statement, const std::vector<Field>& fields) {
    strip(statement, "operation.");
    const std::size_t equals = statement.find('=');
    if (equals == std::string_view::npos) wrong(statement, "is no assignment");
    const std::string_view path = trimmed(statement.substr(0, equals));
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& of) { return of.path == path; });
    if (field == fields.end()) wrong(path, "is no field of an operation");
    read(*field, trimmed(statement.substr(equals + 1)));
}

}  // namespace

std::uint32_t Enumeration::value() const {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
}

void Enumeration::set(std::uint32_t value) const {
    std::memcpy(at, &value, sizeof value);
}

std::vector<Field> fields_of(Unplaced& operation) {
    std::vector<Field> fields;
    each_field(operation, Collector(fields, ""));
    return fields;
}

std::string text_of(const Field& field) {
    return std::visit(Printer(), field.value);
}

void read(const Field& field, std::string_view text) {
    try {
        std::visit(Reader{text}, field.value);
    } catch (const std::invalid_argument& problem) {
        throw std::invalid_argument(field.path + ": " + problem.what());
    }
}

std::string text_of(const Unplaced& operation) {
    static const std::vector<std::string> defaults = [] {
        Unplaced made;
        std::vector<std::string> texts;
        for (const Field& field : fields_of(made)) texts.push_back(text_of(field));
        return texts;
    }();
    Unplaced copy = operation;
    const std::vector<Field> fields = fields_of(copy);
    std::string text;
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (const std::string value = text_of(fields[i]); value != defaults[i])
            text += "operation." + fields[i].path + " = " + value + ";\n";
    return text;
}

Unplaced operation_of(std::string_view text) {
    Unplaced operation;
    std::size_t number = 0;
    each_part(text, '\n', [&](std::string_view line) {
        ++number;
        if (line.starts_with("//")) return;
        try {
            each_part(line, ';', [&](std::string_view statement) {
                if (!statement.empty()) read_statement(statement, fields_of(operation));
            });
        } catch (const std::invalid_argument& problem) {
            throw std::invalid_argument("line " + std::to_string(number) + ": " + problem.what());
        }
    });
    return operation;
}

}  // namespace vkrope::verify
