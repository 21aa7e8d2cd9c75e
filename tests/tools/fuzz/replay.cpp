// SPDX-License-Identifier: MIT
// Runs the seeds of all targets through the parsers in the build of the other tests: complete, cut
// short at every length, and changed in ways that are the same in every run. Each input ends before
// an unmapped page, so that reading past its end crashes without any sanitizer.
//
//     vkrope_fuzz_replay SEEDS WORDS [CHANGES]
//
// SEEDS contains a folder with the name of each target, WORDS is a dictionary for libFuzzer, and
// CHANGES is the number of changed inputs for each target. A finding is an input that crashes,
// breaks a rule, throws, allocates more than 256 MiB at once or takes 10 seconds (times
// VKROPE_TIME_FACTOR). The program writes it to finding-TARGET in the current folder and exits with
// 1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "fuzz.hpp"

constexpr std::size_t largest_allocation = std::size_t{256} << 20;

// NOLINTBEGIN(cppcoreguidelines-no-malloc): replaces the allocation functions
void* operator new(std::size_t bytes) {
    vkrope::fuzz::require(bytes <= largest_allocation, "an allocation has at most 256 MiB");
    if (void* made = std::malloc(bytes != 0 ? bytes : 1)) return made;
    throw std::bad_alloc();
}
// A sanitizer has its own operator new, whose memory the functions below could not free.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return std::malloc(bytes != 0 ? bytes : 1);
}
void operator delete(void* made) noexcept {
    std::free(made);
}
void operator delete(void* made, std::size_t) noexcept {
    std::free(made);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace vkrope::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest = std::size_t{1} << 20;

struct Target {
    const char* name;
    bool (*parse)(Input);
};
constexpr Target targets[] = {{"config", parse_config},
                              {"gguf", parse_gguf},
                              {"npy", parse_npy},
                              {"safetensors", parse_safetensors}};

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "replay: %s\n", why.c_str());
    std::exit(2);
}

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file || bytes.size() > longest) give_up(path.string() + " cannot be read, or is too long");
    return bytes;
}

// Reads the words of a dictionary: text in quotes, without escapes.
std::vector<std::string> read_words(const fs::path& path) {
    std::ifstream file(path);
    std::vector<std::string> words;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        if (line.size() < 3 || line.find('\\') != line.npos) give_up("not a word: " + line);
        words.push_back(line.substr(1, line.size() - 2));
    }
    if (words.empty()) give_up(path.string() + " has no words");
    return words;
}

// Data that the process of a target passes to the process that waits for it.
struct Shared {
    std::size_t input_bytes = 0;
    std::uint64_t valid = 0, invalid = 0;
    char made_of[512] = {};
};

// Memory shared by both processes: `Shared`, then space for an input, then an inaccessible page.
class Room {
   public:
    Room() : page_(std::size_t(sysconf(_SC_PAGESIZE))) {
        void* made = mmap(nullptr, page_ + longest + page_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) give_up("mmap fails");
        shared = new (made) Shared;
        end_ = static_cast<std::uint8_t*>(made) + page_ + longest;
        if (mprotect(end_, page_, PROT_NONE) != 0) give_up("mprotect fails");
    }

    std::span<const std::uint8_t> put(std::string_view input) {
        shared->input_bytes = input.size();
        std::memcpy(end_ - input.size(), input.data(), input.size());
        return last();
    }
    std::span<const std::uint8_t> last() const {
        return {end_ - shared->input_bytes, shared->input_bytes};
    }

    Shared* shared;

   private:
    std::size_t page_;
    std::uint8_t* end_;
};

// Changes inputs by numbers that are the same on every platform, unlike the distributions of the
// standard library.
class Changer {
   public:
    Changer(const std::vector<std::string>& words, const std::vector<std::string>& seeds)
        : words_(words), seeds_(seeds) {}

    std::string change(std::string input) {
        for (std::size_t left = 1 + below(4); left != 0; --left) change_once(input);
        if (input.size() > longest) input.resize(longest);
        return input;
    }

   private:
    std::size_t below(std::size_t end) { return end != 0 ? random_() % end : 0; }

    void change_once(std::string& input) {
        constexpr std::string_view bytes{"\0\x01\x7f\x80\xff\"{}[]:,-.0919eE\\ n", 23};
        constexpr std::uint64_t numbers[] = {0,
                                             1,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             0x100000000,
                                             0x2000000000000000,
                                             0x7fffffffffffffff,
                                             0x8000000000000000,
                                             0xffffffffffffffff};
        const std::size_t at = below(input.size()), left = input.size() - at;
        const std::size_t length = std::min(left, 1 + below(16));
        switch (below(8)) {
            case 0:  // changes a bit
                if (left != 0) input[at] = char(input[at] ^ 1 << below(8));
                break;
            case 1:  // changes a byte
                if (left != 0) input[at] = bytes[below(bytes.size())];
                break;
            case 2: {  // writes a number of 1 to 8 bytes
                const std::uint64_t number = numbers[below(std::size(numbers))];
                std::memcpy(input.data() + at, &number, std::min(left, std::size_t{1} << below(4)));
                break;
            }
            case 3: input.erase(at, length); break;
            case 4: input.insert(at, input.substr(below(input.size()), length)); break;
            case 5: input.insert(at, words_[below(words_.size())]); break;
            case 6: {  // overwrites with a word
                const std::string& word = words_[below(words_.size())];
                input.replace(at, std::min(left, word.size()), word);
                break;
            }
            default: {  // continues with the rest of another seed
                const std::string& other = seeds_[below(seeds_.size())];
                input.resize(at);
                input += other.substr(std::min(at, other.size()));
            }
        }
    }

    const std::vector<std::string>& words_;
    const std::vector<std::string>& seeds_;
    std::mt19937_64 random_{20240917};
};

// Runs all inputs of a target, in the child process.
void run(const Target& target, const fs::path& folder, const std::vector<std::string>& words,
         std::size_t changes, unsigned time_limit, Room& room) {
    std::vector<fs::path> files(fs::directory_iterator(folder), {});
    std::sort(files.begin(), files.end());
    std::vector<std::string> seeds(files.size());
    std::transform(files.begin(), files.end(), seeds.begin(), read);
    Changer changer(words, seeds);
    Shared& shared = *room.shared;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto parse = [&](const char* how, std::size_t number, std::string_view input) {
            std::snprintf(shared.made_of, sizeof shared.made_of, "%s, %s %zu",
                          files[i].filename().c_str(), how, number);
            const std::span<const std::uint8_t> bytes = room.put(input);
            alarm(time_limit);
            ++(target.parse(Input(bytes)) ? shared.valid : shared.invalid);
        };
        const std::string& seed = seeds[i];
        // Tries fewer lengths after 1024 bytes, since the beginning contains the header.
        for (std::size_t end = 0; end <= seed.size(); end += end < 1024 ? 1 : 101)
            parse("its bytes before", end, std::string_view(seed).substr(0, end));
        parse("its bytes before", seed.size(), seed);
        for (std::size_t change = 0; change < changes / seeds.size(); ++change)
            parse("change", change, changer.change(seed));
    }
}

// Returns true if the target has no finding.
bool passes(const Target& target, const fs::path& seeds, const std::vector<std::string>& words,
            std::size_t changes, unsigned time_limit) {
    Room room;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == -1) give_up("fork fails");
    if (child == 0) {
        run(target, seeds / target.name, words, changes, time_limit, room);
        std::_Exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const Shared& shared = *room.shared;
    std::printf("%s: %llu valid inputs, %llu invalid\n", target.name,
                static_cast<unsigned long long>(shared.valid),
                static_cast<unsigned long long>(shared.invalid));
    if (status != 0) {
        const std::string file = std::string("finding-") + target.name;
        const std::span<const std::uint8_t> input = room.last();
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(input.data()), std::streamsize(input.size()));
        std::printf("%s: FINDING, in %s: of %s: %s\n", target.name, file.c_str(), shared.made_of,
                    !WIFSIGNALED(status)          ? "it ends the program"
                    : WTERMSIG(status) == SIGALRM ? "it takes too long"
                                                  : strsignal(WTERMSIG(status)));
        return false;
    }
    // Without both valid and invalid inputs, the seeds or the changes test nothing.
    if (shared.valid < 10 || shared.invalid < 10) {
        std::printf("%s: too few inputs of a kind\n", target.name);
        return false;
    }
    return true;
}

}  // namespace
}  // namespace vkrope::fuzz

int main(int argc, char** argv) {
    using namespace vkrope::fuzz;
    if (argc != 3 && argc != 4) give_up("arguments: SEEDS WORDS [CHANGES]");
    const char* factor = std::getenv("VKROPE_TIME_FACTOR");
    const unsigned time_limit = 10 * unsigned(factor ? std::atoi(factor) : 1);
    const std::vector<std::string> words = read_words(argv[2]);
    const std::size_t changes = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 30000;
    bool all = true;
    for (const Target& target : targets)
        all = passes(target, argv[1], words, changes, time_limit) && all;
    return all ? 0 : 1;
}
