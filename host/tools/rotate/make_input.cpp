// SPDX-License-Identifier: MIT
// vkrope make-input: writes a tensor of random numbers, the same on every machine.
#include <memory>
#include <sstream>

#include "base/meaning.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/system.hpp"
#include "io/element_type.hpp"
#include "io/npy.hpp"

namespace vkrope::tools {
namespace {

struct MakeInputOptions {
    std::vector<std::uint64_t> shape;
    Element element = VKROPE_F32;
    std::uint64_t seed = 0;
    std::string out;
};

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 40;  // more is a mistyped shape

// SplitMix64 (Steele, Lea, Flood 2014). Its n-th output depends only on seed + n * gamma.
class RandomBits {
   public:
    explicit RandomBits(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        return bits ^ (bits >> 31);
    }

    // Returns a number of a distribution with mean 0 and variance 1, within 6: the sum of twelve
    // uniform numbers. Uses integers and one exact scaling, so that the bits do not depend on a
    // math library. Has 36 significant bits, so that rounding to float is exercised.
    double next_normal() noexcept {
        std::int64_t sum = -6 * std::int64_t{0xffffffff};
        for (int draw = 0; draw < 6; ++draw) {
            const std::uint64_t bits = next();
            sum += std::int64_t((bits >> 32) + (bits & 0xffffffff));
        }
        return double(sum) * 0x1p-32;
    }

   private:
    std::uint64_t state_;
};

std::vector<std::uint64_t> parse_shape(const std::string& text) {
    std::vector<std::uint64_t> shape;
    std::istringstream stream(text);
    for (std::string dimension; std::getline(stream, dimension, ',');)
        shape.push_back(parse_integer<std::uint64_t>(dimension, 0, UINT32_MAX));
    if (shape.empty() || shape.size() > npy::max_rank || text.ends_with(',')) {
        throw BadValue(
            fmt::format("'{}' must be 1 to {} numbers, separated by commas", text, npy::max_rank));
    }
    return shape;
}

std::uint64_t checked_bytes(const MakeInputOptions& options) {
    try {
        const std::uint64_t bytes = npy::data_bytes(npy_type(options.element), options.shape);
        if (bytes <= max_file_bytes) return bytes;
        fail(ExitCode::usage, "--shape: {} bytes; at most {} can be made", bytes, max_file_bytes);
    } catch (const npy::Error& error) {
        fail(ExitCode::usage, "--shape: {}", error.what());
    }
}

// A mistyped shape must not fill the disk. Some file systems do not say their size.
void check_space(const OutputFile& file, std::uint64_t bytes) {
    std::error_code unknown;
    const auto space = std::filesystem::space(file.target().parent_path(), unknown);
    if (!unknown && space.capacity != 0 && bytes > space.available) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: it needs {} bytes, {} are free",
             file.option(), text_of(file.target()), bytes, space.available);
    }
}

ExitCode make_input(const MakeInputOptions& options) {
    const std::uint64_t bytes = checked_bytes(options);
    std::vector<OutputFile> files;
    files.emplace_back("--out", options.out);
    check_space(files.front(), bytes);
    files.front().write(npy::make_header(npy_type(options.element), options.shape));
    RandomBits random(options.seed);
    const std::size_t element_size = element_bytes(options.element);
    std::vector<std::byte> piece;
    for (std::uint64_t left = bytes / element_size; left > 0;) {
        const std::uint64_t count = std::min<std::uint64_t>(left, 1 << 18);
        piece.clear();
        for (std::uint64_t i = 0; i < count; ++i)
            append_element(piece, options.element, random.next_normal());
        files.front().write(piece);
        left -= count;
    }
    OutputFile::publish(files);
    return ExitCode::success;
}

}  // namespace

void add_make_input(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "make-input", "Write a tensor of standard normal numbers, the same on every machine.");
    const auto options = std::make_shared<MakeInputOptions>();
    const auto set_shape = [options](const std::string& text) {
        options->shape = parse_shape(text);
    };
    command.add_value("--shape", "N,N,...", set_shape, "Its dimensions, as in 1,4096,32,128.")
        .required();
    command.add_choice("--dtype", options->element, elements, "How an element is stored (f32).");
    command.add_integer("--seed", options->seed, std::uint64_t{0}, UINT64_MAX, "Which tensor (0).");
    command.add_text("--out", "FILE", options->out, "The .npy file to write.").required();
    command.on_run([options] { return make_input(*options); });
}

}  // namespace vkrope::tools
