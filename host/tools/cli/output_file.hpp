// SPDX-License-Identifier: MIT
// Output files, which appear complete and all together, or not at all.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vkrope::tools {

/// A file written under a temporary name next to its final name. The destructor removes the file
/// unless it was published. A file that replaces another gets the mode of the old file, and its
/// owner and group if the system permits that.
class OutputFile {
   public:
    /// Checks the path, creates the temporary file and reserves its space, so that everything that
    /// can fail early fails here.
    ///
    /// option  the command-line option, for errors
    /// bytes   number of bytes that will be written, above 0
    OutputFile(const std::string& option, const std::string& path, std::uint64_t bytes);
    ~OutputFile();
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(const std::string& text) { write(std::as_bytes(std::span(text))); }

    const std::string& option() const noexcept { return option_; }

    /// The final path, absolute and without symbolic links.
    const std::filesystem::path& target() const noexcept { return target_; }

    /// Throws Failure if this file is also the file of another option, which must not be
    /// overwritten.
    void check_distinct_from(const char* option, const std::string& path) const;

    /// Flushes all files to disk, then renames them to their final names. If a step fails for one
    /// file, no file is left.
    static void publish(std::vector<OutputFile>& files);

   private:
    OutputFile(std::string option, const std::string& path, std::filesystem::path target);
    void make_temporary(mode_t mode);
    void take_over_access(const struct stat& old) noexcept;
    void reserve(std::uint64_t bytes);
    void close_flushed();
    [[noreturn]] void fail_with(int error) const;

    std::string option_;
    std::string path_;
    std::filesystem::path target_;
    std::uint64_t unwritten_ = 0;
    int file_ = -1;
    int slot_ = -1;  // index in the temporary files that a signal handler removes; -1: no file left
};

/// Removes all temporary files; for signal handlers.
void remove_temporaries() noexcept;

}  // namespace vkrope::tools
