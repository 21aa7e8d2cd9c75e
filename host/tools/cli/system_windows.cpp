// SPDX-License-Identifier: MIT
// Names are narrow: the programs' manifest makes UTF-8 the code page of narrow functions.
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "cli/system.hpp"

// The start-up code of MinGW would replace an argument with * by the names of files.
extern "C" int _dowildcard = 0;

namespace vkrope::tools {
namespace {

int errno_of(DWORD error) noexcept {
    switch (error) {
        case ERROR_FILE_NOT_FOUND:
        case ERROR_PATH_NOT_FOUND: return ENOENT;
        case ERROR_ACCESS_DENIED:
        case ERROR_SHARING_VIOLATION: return EACCES;
        case ERROR_DISK_FULL:
        case ERROR_HANDLE_DISK_FULL: return ENOSPC;
        case ERROR_WRITE_PROTECT: return EROFS;
        case ERROR_NOT_ENOUGH_MEMORY: return ENOMEM;
        default: return EIO;
    }
}

HANDLE handle_of(int file) noexcept {
    return reinterpret_cast<HANDLE>(::_get_osfhandle(file));
}

// absolute() and canonical() of MinGW's library take \\SERVER for a folder of this machine.
std::filesystem::path full_path(const std::filesystem::path& path) {
    std::wstring full(32768, L'\0');  // more than any path has
    full.resize(::GetFullPathNameW(path.c_str(), DWORD(full.size()), full.data(), nullptr));
    return full;
}

}  // namespace

std::filesystem::path path_of(const std::string& utf8) {
    return std::u8string(utf8.begin(), utf8.end());
}

std::string text_of(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return {text.begin(), text.end()};
}

bool open_standard_streams() noexcept {
    // A crash ends the process, and no window waits for the user.
    ::SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
    static const UINT code_page =
        ::GetConsoleOutputCP();  // of the user's console; 0: there is none
    if (code_page != 0 && ::SetConsoleOutputCP(CP_UTF8) != 0)
        std::atexit([] {
            std::fflush(nullptr);
            ::SetConsoleOutputCP(code_page);
        });
    for (std::FILE* const stream : {stdin, stdout, stderr}) {
        ::_setmode(::_fileno(stream), _O_BINARY);
        DWORD mode = 0;
        if (::GetConsoleMode(handle_of(::_fileno(stream)), &mode) != 0 && stream != stdin)
            ::SetConsoleMode(handle_of(::_fileno(stream)),
                             mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
    return ::_fileno(stdout) >= 0;
}

// NUL is a character device like a console, but has no mode.
bool is_terminal(std::FILE* stream) noexcept {
    DWORD mode = 0;
    return ::GetConsoleMode(handle_of(::_fileno(stream)), &mode) != 0;
}

int open_to_read(const std::string& path) noexcept {
    return ::_open(path.c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
}

std::ptrdiff_t read_at(int file, void* to, std::size_t size, std::uint64_t offset) noexcept {
    OVERLAPPED where = {};
    where.Offset = DWORD(offset);
    where.OffsetHigh = DWORD(offset >> 32);
    DWORD done = 0;
    if (::ReadFile(handle_of(file), to, DWORD(std::min(size, std::size_t{1} << 30)), &done,
                   &where) != 0 ||
        ::GetLastError() == ERROR_HANDLE_EOF)
        return std::ptrdiff_t(done);
    errno = errno_of(::GetLastError());
    return -1;
}

std::filesystem::path real_path(const std::filesystem::path& path, std::error_code& problem) {
    problem.clear();
    const std::filesystem::path full = full_path(path);
    return full.native().starts_with(L"\\\\") ? full : std::filesystem::canonical(full, problem);
}

// NUL and some other names are those of devices, a colon begins a part of a file, and dots and
// spaces at the end are dropped.
bool names_file(const std::filesystem::path& path) {
    const std::wstring name = path.filename();
    return !name.empty() && name.back() != L'.' && name.back() != L' ' &&
           name.find_first_of(L"<>:\"|?*") == name.npos &&
           !full_path(path).native().starts_with(L"\\\\.\\");
}

bool same_path(const std::filesystem::path& one, const std::filesystem::path& other) noexcept {
    return ::CompareStringOrdinal(one.c_str(), -1, other.c_str(), -1, TRUE) == CSTR_EQUAL;
}

int error_of_creating_in(const std::filesystem::path& folder) noexcept {
    const HANDLE opened = ::CreateFileW(
        folder.c_str(), FILE_ADD_FILE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
        nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
    if (opened == INVALID_HANDLE_VALUE) return errno_of(::GetLastError());
    ::CloseHandle(opened);
    return 0;
}

// The folder's rights apply to a new file.
int create_temporary(std::string& path, const std::filesystem::path&) noexcept {
    return ::mkstemp(path.data());
}

int flush_to_disk(int file) noexcept {
    return ::_commit(file) == 0 ? 0 : errno;
}

int replace_file(const std::string& from, const std::filesystem::path& to) noexcept {
    return ::MoveFileExW(path_of(from).c_str(), to.c_str(),
                         MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0
               ? 0
               : errno_of(::GetLastError());
}

}  // namespace vkrope::tools
