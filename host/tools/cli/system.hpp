// SPDX-License-Identifier: MIT
// What POSIX and Windows do differently with files and standard streams. A file number is a file
// descriptor; a function that returns an error returns an errno, or 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace vkrope::tools {

// Converts paths from and to UTF-8, which std::filesystem does not do on Windows.
std::filesystem::path path_of(const std::string& utf8);
std::string text_of(const std::filesystem::path& path);

// Ensures that no file opened later gets the number of a standard stream, and that the streams
// carry bytes, which a terminal shows as UTF-8. Returns false if stdout was closed.
bool open_standard_streams() noexcept;

bool is_terminal(std::FILE* stream) noexcept;

// Opens a file for reading, which child processes do not inherit. Returns -1 and sets errno if it
// fails.
int open_to_read(const std::string& path) noexcept;

// Reads up to `size` bytes from `offset` on, and returns their number, or -1 with an errno.
std::ptrdiff_t read_at(int file, void* to, std::size_t size, std::uint64_t offset) noexcept;

// Returns the path of an existing file, absolute and without symbolic links.
std::filesystem::path real_path(const std::filesystem::path& path, std::error_code& problem);

// Returns true if a file can have the last name of this path.
bool names_file(const std::filesystem::path& path);

// Returns true if two paths of real_path() are the same: Windows does not tell X from x. On other
// systems this depends on the file system, so OutputFile::publish looks again.
bool same_path(const std::filesystem::path& one, const std::filesystem::path& other) noexcept;

// Returns the error of creating a file in this folder.
int error_of_creating_in(const std::filesystem::path& folder) noexcept;

// Creates a file whose name replaces the XXXXXX at the end of `path`, with the group and the mode
// of `target`, or the usual ones if there is no such file. Returns -1 and sets errno if it fails.
int create_temporary(std::string& path, const std::filesystem::path& target) noexcept;

// Waits until the content of the file is on the disk.
int flush_to_disk(int file) noexcept;

// Renames a file; one that has the name `to` is replaced.
int replace_file(const std::string& from, const std::filesystem::path& to) noexcept;

}  // namespace vkrope::tools
