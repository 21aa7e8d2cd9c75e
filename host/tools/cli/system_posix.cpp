// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "cli/system.hpp"

#if defined(VKROPE_STANDALONE) && defined(__GLIBC__)
// The C++ library in a program for other machines takes this function from glibc 2.36, which Ubuntu
// 22.04 and JetPack 6 lack, unless the program has it.
extern "C" std::uint32_t arc4random() noexcept {
    std::uint32_t number = 0;
    if (::getentropy(&number, sizeof number) != 0) std::abort();
    return number;
}
#endif

namespace vkrope::tools {

std::filesystem::path path_of(const std::string& utf8) {
    return utf8;
}

std::string text_of(const std::filesystem::path& path) {
    return path.string();
}

bool open_standard_streams() noexcept {
    std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes becomes an error of write()
    bool stdout_was_open = true;
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
            stdout_was_open = stdout_was_open && stream != STDOUT_FILENO;
            // open() returns the lowest free number, which is `stream`, because the lower ones are
            // already open.
            if (::open("/dev/null", O_RDWR) != stream) return false;
        }
    }
    return stdout_was_open;
}

bool is_terminal(std::FILE* stream) noexcept {
    return ::isatty(::fileno(stream)) == 1;
}

int open_to_read(const std::string& path) noexcept {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

std::ptrdiff_t read_at(int file, void* to, std::size_t size, std::uint64_t offset) noexcept {
    return ::pread(file, to, size, off_t(offset));
}

std::filesystem::path real_path(const std::filesystem::path& path, std::error_code& problem) {
    return std::filesystem::canonical(path, problem);
}

bool names_file(const std::filesystem::path& path) {
    return path.has_filename();
}

bool same_path(const std::filesystem::path& one, const std::filesystem::path& other) noexcept {
    return one.native() == other.native();
}

int error_of_creating_in(const std::filesystem::path& folder) noexcept {
    return ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

int create_temporary(std::string& path, const std::filesystem::path& target) noexcept {
    const int file = ::mkstemp(path.data());
    if (file < 0) return -1;
    struct stat old = {};
    const mode_t hidden = ::umask(0);
    ::umask(hidden);
    mode_t mode = 0666 & ~hidden;
    if (::stat(target.c_str(), &old) == 0) {
        mode = old.st_mode & 0777;
        // A group other than the old one gets at most the rights of others.
        if (::fchown(file, uid_t(-1), old.st_gid) != 0) mode &= ~mode_t{070} | mode << 3;
    }
    // A file system without modes is no error.
    [[maybe_unused]] const int kept = ::fchmod(file, mode);
    return file;
}

int flush_to_disk(int file) noexcept {
    return ::fsync(file) == 0 ? 0 : errno;
}

int replace_file(const std::string& from, const std::filesystem::path& to) noexcept {
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace vkrope::tools
