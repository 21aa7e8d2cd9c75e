// SPDX-License-Identifier: MIT
#include "io/regular_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/system.hpp"

namespace vkrope::tools {
namespace {

FileError unreadable(int error) {
    return FileError(fmt::format("cannot be read: {}", std::strerror(error)));
}

}  // namespace

RegularFile::Descriptor::~Descriptor() {
    if (number >= 0) ::close(number);
}

RegularFile::RegularFile(const std::string& path) {
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) throw unreadable(errno);
    if (!S_ISREG(about.st_mode)) {
        throw FileError(S_ISDIR(about.st_mode) ? "is a directory; it must be a regular file"
                                               : "is not a regular file");
    }
    file_.number = open_to_read(path);
    if (file_.number < 0) throw unreadable(errno);
    bytes_ = std::uint64_t(about.st_size);
}

void RegularFile::read(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
        const std::ptrdiff_t count = read_at(file_.number, to.data(), to.size(), offset);
        if (count < 0 && errno != EINTR) throw unreadable(errno);
        if (count == 0) throw FileError("became shorter while it was read");
        const std::size_t done = count < 0 ? 0 : std::size_t(count);
        to = to.subspan(done);
        offset += done;
    }
}

std::vector<std::byte> RegularFile::start(std::uint64_t most) const {
    std::vector<std::byte> bytes(std::size_t(std::min(bytes_, most)));
    read(0, bytes);
    return bytes;
}

}  // namespace vkrope::tools
