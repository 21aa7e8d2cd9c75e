// SPDX-License-Identifier: MIT
// Output files, which appear complete and all together, or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vkrope::tools {

// A file that is written under a temporary name next to its final name, from the first write() on.
// The destructor removes the temporary file, but a signal that ends the program while it writes
// leaves it. A file that replaces another gets its group and mode.
class OutputFile {
   public:
    // Checks that the path can be written, so that most errors are found before a long run.
    //
    // option  the command-line option, for errors
    OutputFile(std::string option, const std::string& path);
    ~OutputFile();
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(const std::string& text) { write(std::as_bytes(std::span(text))); }

    const std::string& option() const noexcept { return option_; }

    // The final path, absolute and without symbolic links.
    const std::filesystem::path& target() const noexcept { return target_; }

    // Throws Failure if this file is also the file of another option, which must not be
    // overwritten.
    void check_distinct_from(const char* option, const std::string& path) const;

    // Flushes all files to disk, then renames them to their final names. If a step fails for one
    // file, no file is left.
    static void publish(std::vector<OutputFile>& files);

   private:
    void make_temporary();
    [[noreturn]] void fail_with(int error) const;

    std::string option_, path_;
    std::filesystem::path target_;
    std::string temporary_;  // path of the temporary file; empty: there is none
    int file_ = -1;
};

}  // namespace vkrope::tools
