// SPDX-License-Identifier: MIT
#include "cli/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/failure.hpp"

namespace vkrope::tools {
namespace {

std::filesystem::path existing_target(const std::string& option, const std::string& path,
                                      const struct stat& about) {
    if (!S_ISREG(about.st_mode)) {
        fail(ExitCode::bad_file, "{}: '{}' {}; it must be a new or a regular file", option, path,
             S_ISDIR(about.st_mode) ? "is a directory" : "is not a regular file");
    }
    if (::access(path.c_str(), W_OK) != 0) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option, path,
             std::strerror(errno));
    }
    return std::filesystem::canonical(path);
}

std::filesystem::path new_target(const std::string& option, const std::string& path) {
    struct stat about = {};
    if (::lstat(path.c_str(), &about) == 0)
        fail(ExitCode::bad_file, "{}: '{}' is a symbolic link to nothing", option, path);
    const std::filesystem::path given = path;
    const std::filesystem::path parent = given.has_parent_path() ? given.parent_path() : ".";
    std::error_code problem;
    const std::filesystem::path folder = std::filesystem::canonical(parent, problem);
    if (problem || !std::filesystem::is_directory(folder, problem)) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: there is no folder '{}'", option,
             path, parent.string());
    }
    if (!given.has_filename())
        fail(ExitCode::bad_file, "{}: '{}' names a folder, not a file", option, path);
    return folder / given.filename();
}

std::filesystem::path find_target(const std::string& option, const std::string& path) {
    struct stat about = {};
    if (path.empty()) fail(ExitCode::usage, "{}: the path is empty", option);
    if (::stat(path.c_str(), &about) == 0) return existing_target(option, path, about);
    if (errno != ENOENT) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option, path,
             std::strerror(errno));
    }
    return new_target(option, path);
}

}  // namespace

OutputFile::OutputFile(std::string option, const std::string& path)
    : option_(std::move(option)), path_(path), target_(find_target(option_, path)) {
    if (::access(target_.parent_path().c_str(), W_OK | X_OK) != 0) {
        fail(ExitCode::bad_file,
             "{}: '{}' cannot be written: no file can be created in its folder: {}", option_, path_,
             std::strerror(errno));
    }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : option_(std::move(other.option_)), path_(std::move(other.path_)),
      target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
    if (file_ >= 0) ::close(file_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::make_temporary() {
    temporary_ = target_.parent_path() / ".vkrope-XXXXXX";
    file_ = ::mkstemp(temporary_.data());
    if (file_ < 0) {
        temporary_.clear();
        fail_with(errno);
    }
    struct stat old = {};
    const mode_t hidden = ::umask(0);
    ::umask(hidden);
    mode_t mode = 0666 & ~hidden;
    if (::stat(target_.c_str(), &old) == 0) {
        mode = old.st_mode & 0777;
        // A group other than the old one gets at most the rights of others.
        if (::fchown(file_, uid_t(-1), old.st_gid) != 0) mode &= ~mode_t{070} | mode << 3;
    }
    // A file system without modes is no error.
    [[maybe_unused]] const int kept = ::fchmod(file_, mode);
}

void OutputFile::write(std::span<const std::byte> bytes) {
    if (temporary_.empty()) make_temporary();
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) fail_with(errno);
        bytes = bytes.subspan(written < 0 ? 0 : std::size_t(written));
    }
}

void OutputFile::check_distinct_from(const char* option, const std::string& path) const {
    std::error_code not_there_yet;
    if (!path.empty() && std::filesystem::equivalent(path, target_, not_there_yet)) {
        fail(ExitCode::usage, "{}: '{}' is the file of {}; an output must be another file", option_,
             path_, option);
    }
}

void OutputFile::publish(std::vector<OutputFile>& files) {
    for (OutputFile& file : files) {
        // Some network file systems report a full disk only here.
        if (::fsync(file.file_) != 0 || ::close(std::exchange(file.file_, -1)) != 0)
            file.fail_with(errno);
    }
    for (auto file = files.begin(); file != files.end(); ++file) {
        if (::rename(file->temporary_.c_str(), file->target_.c_str()) != 0) {
            const int error = errno;
            std::for_each(files.begin(), file,
                          [](const OutputFile& published) { ::unlink(published.target_.c_str()); });
            file->fail_with(error);
        }
        file->temporary_.clear();
    }
}

void OutputFile::fail_with(int error) const {
    fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option_, path_,
         std::strerror(error));
}

}  // namespace vkrope::tools
