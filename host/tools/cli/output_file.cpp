// SPDX-License-Identifier: MIT
#include "cli/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "cli/failure.hpp"
#include "cli/signals.hpp"

namespace vkrope::tools {
namespace {

// The paths are in fixed memory, because a signal handler cannot traverse objects that the signal
// interrupted.
struct Temporary {
    std::atomic<bool> exists = false;
    char path[PATH_MAX] = {};
};
static_assert(std::atomic<bool>::is_always_lock_free);
std::array<Temporary, 6> temporaries;  // at most six outputs: Q, K, V and their scales

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
    if (::lstat(path.c_str(), &about) == 0) {
        fail(ExitCode::bad_file, "{}: '{}' is a symbolic link to nothing", option, path);
    }
    const std::filesystem::path given = path;
    const std::filesystem::path parent = given.has_parent_path() ? given.parent_path() : ".";
    std::error_code problem;
    const std::filesystem::path folder = std::filesystem::canonical(parent, problem);
    if (problem || !std::filesystem::is_directory(folder, problem)) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: there is no folder '{}'", option,
             path, parent.string());
    }
    if (!given.has_filename()) {
        fail(ExitCode::bad_file, "{}: '{}' names a folder, not a file", option, path);
    }
    return folder / given.filename();
}

std::filesystem::path find_target(const std::string& option, const std::string& path) {
    struct stat about = {};
    if (path.empty()) {
        fail(ExitCode::usage, "{}: the path is empty", option);
    }
    if (::stat(path.c_str(), &about) == 0) {
        return existing_target(option, path, about);
    }
    if (errno != ENOENT) {
        fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option, path,
             std::strerror(errno));
    }
    return new_target(option, path);
}

}  // namespace

OutputFile::OutputFile(std::string option, const std::string& path, std::filesystem::path target)
    : option_(std::move(option)), path_(path), target_(std::move(target)) {}

// Delegating completes the construction, so the destructor cleans up if reserve() fails.
OutputFile::OutputFile(const std::string& option, const std::string& path, std::uint64_t bytes)
    : OutputFile(option, path, find_target(option, path)) {
    struct stat old = {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    make_temporary(replaces ? 0600 : 0666);
    if (replaces) {
        take_over_access(old);
    }
    reserve(bytes);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : option_(std::move(other.option_)), path_(std::move(other.path_)),
      target_(std::move(other.target_)), unwritten_(other.unwritten_),
      file_(std::exchange(other.file_, -1)), slot_(std::exchange(other.slot_, -1)) {}

OutputFile::~OutputFile() {
    if (file_ >= 0) {
        ::close(file_);
    }
    if (slot_ >= 0) {
        Temporary& temporary = temporaries[static_cast<std::size_t>(slot_)];
        ::unlink(temporary.path);
        temporary.exists = false;
    }
}

void OutputFile::make_temporary(mode_t mode) {
    const auto free = std::find_if(temporaries.begin(), temporaries.end(),
                                   [](const Temporary& each) { return !each.exists; });
    // A process with the same PID, in another container on the same folder, may have taken the
    // first names.
    for (int attempt = 0; free != temporaries.end() && attempt < 1000; ++attempt) {
        const std::string path = target_.parent_path() /
                                 fmt::format(".vkrope-{}-{}.tmp", ::getpid(), attempt);
        if (path.size() >= sizeof free->path) {
            fail_with(ENAMETOOLONG);
        }
        const SignalsHeld
            held;  // a signal between creating and listing the file would leave the file behind
        file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file_ >= 0) {
            path.copy(free->path, path.size());
            free->path[path.size()] = '\0';
            free->exists = true;
            slot_ = static_cast<int>(free - temporaries.begin());
            return;
        }
        if (errno != EEXIST) {
            fail(ExitCode::bad_file,
                 "{}: '{}' cannot be written: no file can be created in its folder: {}", option_,
                 path_, std::strerror(errno));
        }
    }
    fail_with(EEXIST);
}

/// Runs before anything is written, so that nobody can ever read data that they could not read
/// before. A file system without modes, or a system that does not permit a change of owner, is not
/// an error.
void OutputFile::take_over_access(const struct stat& old) noexcept {
    mode_t mode = old.st_mode & 07777;
    if (::fchown(file_, old.st_uid, old.st_gid) != 0) {
        mode &= 0777;  // no setuid or setgid, because the owner is another
        if (::fchown(file_, static_cast<uid_t>(-1), old.st_gid) != 0) {
            mode = (mode & 0707) | (mode & 07) << 3;  // gives the new group the rights of others
        }
    }
    [[maybe_unused]] const int kept = ::fchmod(file_, mode);
}

void OutputFile::reserve(std::uint64_t bytes) {
    unwritten_ = bytes;
    // If the file system cannot reserve space, a later write fails when it is full.
    const int error = ::posix_fallocate(file_, 0, static_cast<off_t>(bytes));
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
        fail_with(error);
    }
}

void OutputFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            fail_with(errno);
        }
        const std::size_t count = written < 0 ? 0 : static_cast<std::size_t>(written);
        bytes = bytes.subspan(count);
        unwritten_ -= count;
    }
}

void OutputFile::check_distinct_from(const char* option, const std::string& path) const {
    std::error_code not_there_yet;
    if (!path.empty() && std::filesystem::equivalent(path, target_, not_there_yet)) {
        fail(ExitCode::usage, "{}: '{}' is the file of {}; an output must be another file", option_,
             path_, option);
    }
}

void OutputFile::close_flushed() {
    if (unwritten_ != 0) {
        fail(ExitCode::bad_file, "{}: '{}': {} announced bytes were not written", option_, path_,
             unwritten_);
    }
    // Some network file systems report a full disk only here.
    if (::fsync(file_) != 0 || ::close(std::exchange(file_, -1)) != 0) {
        fail_with(errno);
    }
}

void OutputFile::publish(std::vector<OutputFile>& files) {
    for (OutputFile& file : files) {
        file.close_flushed();
    }
    const SignalsHeld held;
    for (auto file = files.begin(); file != files.end(); ++file) {
        Temporary& temporary = temporaries[static_cast<std::size_t>(file->slot_)];
        if (::rename(temporary.path, file->target_.c_str()) != 0) {
            const int error = errno;
            std::for_each(files.begin(), file,
                          [](const OutputFile& published) { ::unlink(published.target_.c_str()); });
            file->fail_with(error);
        }
        temporary.exists = false;
        file->slot_ = -1;
    }
}

void OutputFile::fail_with(int error) const {
    fail(ExitCode::bad_file, "{}: '{}' cannot be written: {}", option_, path_,
         std::strerror(error));
}

void remove_temporaries() noexcept {
    for (Temporary& temporary : temporaries) {
        if (temporary.exists) {
            ::unlink(temporary.path);
        }
    }
}

}  // namespace vkrope::tools
