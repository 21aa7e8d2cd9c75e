// SPDX-License-Identifier: MIT
// Tests folders in which no pipeline cache can be saved, full disks, several processes, and the
// limit of the size. Where the pipelines cannot be saved, nothing else fails.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "cached_device.hpp"
#include "support/fake_vulkan/host_memory.hpp"

namespace vkrope::test {

namespace {

namespace fs = std::filesystem;

const std::uint64_t default_bytes = std::uint64_t{64} << 20;

// Simulates a full disk: while the object exists, no file of this process grows beyond `bytes`.
class FullDisk {
   public:
    explicit FullDisk(rlim_t bytes) : old_signal_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &old_);
        const rlimit now{bytes, old_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FullDisk() {
        setrlimit(RLIMIT_FSIZE, &old_);
        std::signal(SIGXFSZ, old_signal_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

   private:
    void (*old_signal_)(int);
    rlimit old_ = {};
};

CacheIdentity identity(std::uint32_t driver_version) {
    CacheIdentity of;
    of.driver_version = driver_version;
    return of;
}

void check_not_kept(const fs::path& folder) {
    CAPTURE(folder.string());
    CachedDevice device(folder);
    device.compile(64);
    const Status saved = device.save();
    check_error(saved, VKROPE_ERROR_INVALID_ARGUMENT, "pipeline_cache_folder");
    CHECK(device.warnings().empty());  // save() has returned the error instead
    device.close();
    CHECK(device.warns("pipelines"));
}

}  // namespace

TEST_CASE("pipeline cache: if its folder is unusable, there is a warning and the device works") {
    const Folder folder;
    check_not_kept(folder.path() / "missing");
    const fs::path file = folder.path() / "file";
    replace(file, {});
    check_not_kept(file);
    check_not_kept("/proc");  // no user may create files there
    const fs::path read_only = folder.path() / "read-only";
    fs::create_directory(read_only);
    fs::permissions(read_only, fs::perms::owner_read | fs::perms::owner_exec);
    if (geteuid() == 0)
        MESSAGE("a read-only folder: not tried, since root may write to it");
    else
        check_not_kept(read_only);
}

TEST_CASE("pipeline cache: without a folder there is no cache") {
    CachedDevice device("");
    device.compile(64);
    CHECK(device.save());
    CHECK(fake().count("vkCreatePipelineCache") == 0);
}

TEST_CASE("pipeline cache: a full disk leaves the old file and no other file") {
    const Folder folder;
    {
        CachedDevice device(folder.path());
        device.compile(64);
    }
    const auto old = content(only_file(folder));
    for (const rlim_t bytes : {0, 1, 40, 80, 81, 100}) {
        const FullDisk full(bytes);
        replace(only_file(folder), {});
        CachedDevice device(folder.path());
        device.compile(32);
        CHECK(device.save().code == VKROPE_ERROR_INVALID_ARGUMENT);
        device.close();
        CHECK(only_file(folder).extension() == ".pipelines");
    }
    replace(only_file(folder), old);
    CachedDevice device(folder.path(), {}, {{old.begin() + cache_header_bytes, old.end()}});
    CHECK(!given_to_driver().empty());
}

TEST_CASE("pipeline cache: a driver that fails or returns no data changes no file") {
    const Folder folder;
    { const CachedDevice nothing_compiled(folder.path()); }
    CHECK(folder.names().empty());
    for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_UNKNOWN, VK_INCOMPLETE}) {
        CachedDevice device(folder.path());
        device.compile(64);
        const std::size_t first = fake().points().size() + 1;
        for (const std::size_t at : {first, first + 1}) {
            if (result == VK_INCOMPLETE && at == first) continue;
            fake().failure = {at, result, false};
            const Status saved = device.save();
            CHECK(saved.vk_result == result);
            CHECK(folder.names().empty());
        }
        fake().failure = {fake().points().size() + 1, VK_ERROR_OUT_OF_HOST_MEMORY, true};
        device.close();
        CHECK(device.warns("vkGetPipelineCacheData"));
        CHECK(folder.names().empty());
    }
}

TEST_CASE("pipeline cache: the files together have at most pipeline_cache_bytes") {
    const Folder folder;
    const CacheData data(1000);
    const std::uint64_t one = data.size() + cache_header_bytes;
    const auto write = [&](std::uint32_t version, std::uint64_t most) {
        const fs::path file = cache_file(folder.path(), identity(version));
        const Status status = write_cache_file(file, identity(version), data, most);
        if (status)  // the file system's clock may be too coarse to order the files by time
            fs::last_write_time(
                file, fs::file_time_type::clock::now() - std::chrono::minutes(100 - version));
        return status;
    };
    const auto exists = [&](std::uint32_t version) {
        return fs::exists(cache_file(folder.path(), identity(version)));
    };
    check_error(write(1, one - 1), VKROPE_ERROR_LIMIT_EXCEEDED, "1080 bytes");
    CHECK(folder.names().empty());
    for (std::uint32_t version = 1; version <= 3; ++version) CHECK(write(version, 3 * one));
    CHECK((exists(1) && exists(2) && exists(3)));
    CHECK(write(4, 3 * one));
    CHECK((!exists(1) && exists(2) && exists(3) && exists(4)));
    // Files of other programs stay; a temporary file stays while its process may be writing it.
    const fs::path foreign = folder.path() / "weights.bin",
                   fresh = folder.path() / "vkrope-0.pipelines.1.tmp",
                   stale = folder.path() / "vkrope-0.pipelines.2.tmp";
    for (const fs::path& file : {foreign, fresh, stale}) replace(file, CacheData(5000));
    fs::last_write_time(stale, fs::file_time_type::clock::now() - std::chrono::hours(2));
    CHECK(write(5, one));
    CHECK((!exists(2) && !exists(3) && !exists(4) && exists(5)));
    CHECK((fs::exists(foreign) && fs::exists(fresh) && !fs::exists(stale)));
}

TEST_CASE("pipeline cache: a file larger than pipeline_cache_bytes is not read") {
    const Folder folder;
    {
        CachedDevice device(folder.path());
        device.compile(64);
    }
    const std::uint64_t bytes = content(only_file(folder)).size();
    CachedDevice device(folder.path(), {}, {}, bytes - 1);
    CHECK(given_to_driver().empty());
    CHECK(device.warns("pipeline_cache_bytes"));
    device.compile(64);
    CHECK(device.save().code == VKROPE_ERROR_LIMIT_EXCEEDED);
}

TEST_CASE("pipeline cache: any number of processes may write and read one file") {
    const Folder folder;
    const fs::path file = cache_file(folder.path(), identity(1));
    std::vector<pid_t> writers;
    for (int writer = 0; writer < 4; ++writer) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child != 0) {
            writers.push_back(child);
            continue;
        }
        bool written = true;
        for (std::size_t i = 0; i < 100; ++i) {
            const CacheData data(1000 + 5000 * std::size_t(writer) + i, std::byte(writer));
            written &= bool(write_cache_file(file, identity(1), data, default_bytes));
        }
        _exit(written ? 0 : 1);
    }
    std::size_t whole = 0;
    for (std::size_t left = writers.size(); left != 0;) {
        const auto read = read_cache_file(file, identity(1), default_bytes);
        CHECK_MESSAGE(read, std::string(read.status.what));
        whole += read && read.value;
        int status = 0;
        if (waitpid(-1, &status, WNOHANG) <= 0) continue;
        CHECK(status == 0);
        --left;
    }
    CHECK(whole > 0);
    CHECK(folder.names().size() == 1);
}

TEST_CASE("pipeline cache: if any allocation fails, the file is whole or absent") {
    const Folder folder;
    std::size_t allocations = 1;
    for (std::size_t at = 0; at <= allocations; ++at) {
        CAPTURE(at);
        CachedDevice device(folder.path());
        device.compile(64);
        observe_host_memory(at);
        const Status saved = device.save();
        const std::size_t seen = observed_allocations();
        if (at == 0) {
            CHECK(saved);
            allocations = seen;
        }
        for (const std::string& name : folder.names()) {
            const Unobserved unobserved;
            CHECK(fs::path(name).extension() == ".pipelines");
        }
        device.close();
        fs::remove(only_file(folder));
    }
    CHECK(allocations > 1);
}

}  // namespace vkrope::test
