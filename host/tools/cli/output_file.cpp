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
#include "cli/system.hpp"

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
    std::error_code problem;
    std::filesystem::path target = real_path(path_of(path), problem);
    if (problem)
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option, path, problem.message());
    return target;
}

std::filesystem::path new_target(const std::string& option, const std::string& path) {
    const std::filesystem::path given = path_of(path);
    std::error_code problem;
    if (std::filesystem::is_symlink(given, problem))
        fail(ExitCode::bad_file, "{}: '{}' is a symbolic link to nothing", option, path);
    const std::filesystem::path parent = given.has_parent_path() ? given.parent_path() : ".";
    const std::filesystem::path folder = real_path(parent, problem);
    if (problem || !std::filesystem::is_directory(folder, problem)) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: there is no folder '{}'", option,
             path, text_of(parent));
    }
    if (!names_file(given))
        fail(ExitCode::bad_file, "{}: '{}' is not the name of a file", option, path);
    return folder / given.filename();
}

std::filesystem::path find_target(const std::string& option, const std::string& path) {
    struct stat about = {};
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
    if (const int error = error_of_creating_in(target_.parent_path()); error != 0) {
        fail(ExitCode::bad_file,
             "{}: '{}' cannot be written: no file can be created in its folder: {}", option_, path_,
             std::strerror(error));
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
    temporary_ = text_of(target_.parent_path() / ".vkrope-XXXXXX");
    file_ = create_temporary(temporary_, target_);
    if (file_ < 0) {
        temporary_.clear();
        fail_with(errno);
    }
}

void OutputFile::write(std::span<const std::byte> bytes) {
    if (temporary_.empty()) make_temporary();
    while (!bytes.empty()) {
        // Windows counts bytes in an unsigned int.
        const auto written = ::write(file_, bytes.data(),
                                     unsigned(std::min(bytes.size(), std::size_t{1} << 30)));
        if (written < 0 && errno != EINTR) fail_with(errno);
        bytes = bytes.subspan(written < 0 ? 0 : std::size_t(written));
    }
}

void OutputFile::check_distinct_from(const char* option, const std::string& path) const {
    std::error_code not_there_yet;
    if (!path.empty() && std::filesystem::equivalent(path_of(path), target_, not_there_yet)) {
        fail(ExitCode::usage, "{}: '{}' is the file of {}; an output must be another file", option_,
             path_, option);
    }
}

void OutputFile::publish(std::vector<OutputFile>& files) {
    for (OutputFile& file : files) {
        // Some network file systems report a full disk only here.
        if (const int error = flush_to_disk(file.file_); error != 0) file.fail_with(error);
        if (::close(std::exchange(file.file_, -1)) != 0) file.fail_with(errno);
    }
    for (auto file = files.begin(); file != files.end(); ++file) {
        std::error_code ignored;
        const bool is_published = std::any_of(
            files.begin(), file, [&](const OutputFile& published) {
                return std::filesystem::equivalent(published.target_, file->target_, ignored);
            });
        const int error = is_published ? EEXIST : replace_file(file->temporary_, file->target_);
        if (error != 0) {
            std::for_each(files.begin(), file, [&](const OutputFile& published) {
                std::filesystem::remove(published.target_, ignored);
            });
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
