// SPDX-License-Identifier: MIT
// A safetensors file on disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/safetensors.hpp"

namespace vkrope::safetensors {
namespace {

Error unreadable(int error) {
    return Error(fmt::format("cannot be read: {}", std::strerror(error)));
}

void read_at(int file, std::uint64_t offset, std::span<std::byte> to) {
    while (!to.empty()) {
        const ssize_t count = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
        if (count < 0 && errno != EINTR) {
            throw unreadable(errno);
        }
        if (count == 0) {
            throw Error("became shorter while it was read");
        }
        const std::size_t done = count < 0 ? 0 : static_cast<std::size_t>(count);
        to = to.subspan(done);
        offset += done;
    }
}

}  // namespace

File::Descriptor::~Descriptor() {
    if (number >= 0) {
        ::close(number);
    }
}

File::File(const std::string& path) {
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) {
        throw unreadable(errno);
    }
    if (!S_ISREG(about.st_mode)) {  // opening a pipe would wait for its other end
        throw Error(S_ISDIR(about.st_mode) ? "is a directory" : "is not a regular file");
    }
    file_.number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_.number < 0) {
        throw unreadable(errno);
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(about.st_size);
    std::vector<std::byte> start(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 4096)));
    read_at(file_.number, 0, start);
    if (start.size() > length_bytes) {
        const std::uint64_t length = header_length(std::span(start).first<length_bytes>());
        // What cannot be a header is refused by its beginning, before a size that the file claims
        // is believed.
        if (length <= std::min(max_header_bytes, bytes - length_bytes) &&
            start[length_bytes] == std::byte{'{'}) {
            start.resize(static_cast<std::size_t>(length_bytes + length));
            read_at(file_.number, 0, start);
        }
    }
    header_ = parse_header(start, bytes);
}

void File::read(std::uint64_t offset, std::span<std::byte> to) const {
    read_at(file_.number, offset, to);
}

}  // namespace vkrope::safetensors
