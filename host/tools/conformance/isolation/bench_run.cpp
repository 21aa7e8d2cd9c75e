// SPDX-License-Identifier: MIT
#include "conformance/isolation/bench_run.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "conformance/reports/input_file.hpp"
#include "shell/failure.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::ExitCode;

constexpr const char* rows =
    "^(rope/prefill_llama3_8b/f(16|32)/factored_texture/out_of_place"
    "|rope/decode_b(1|64)/f16/factored_texture/|copy/prefill_llama3_8b/f(16|32))";
constexpr std::chrono::minutes limit(10);

/// A file that nobody else writes to, removed at the end.
class TemporaryFile {
   public:
    TemporaryFile() {
        std::error_code problem;
        const std::filesystem::path folder = std::filesystem::temp_directory_path(problem);
        path_ =
            ((problem ? std::filesystem::path("/tmp") : folder) / "vkrope-bench-XXXXXX").string();
        const int file = ::mkstemp(path_.data());
        if (file == -1) {
            tools::fail(ExitCode::bad_file, "--bench: no temporary file can be made: {}",
                        std::strerror(errno));
        }
        ::close(file);
    }
    ~TemporaryFile() { ::unlink(path_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const std::string& path() const noexcept { return path_; }

   private:
    std::string path_;
};

/// Runs the program and returns its status as waitpid() does.
int run_program(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const pid_t process = ::fork();
    if (process == 0) {
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    while (process != -1 && ::waitpid(process, &status, 0) == -1 && errno == EINTR) {
    }
    return process == -1 ? 127 << 8 : status;
}

}  // namespace

BenchRun run_bench(const std::string& program, const FoundDevice& device,
                   const std::function<void(std::string_view)>& printed) {
    const TemporaryFile file;
    ChildProcess child(
        [&](const Sender& sender, Activity&) {
            load_only(device.manifest);
            sender.send({{"status", run_program({program, "--device", device.select,
                                                 "--benchmark_out=" + file.path(),
                                                 std::string("--benchmark_filter=") + rows,
                                                 "--benchmark_min_time=0.02"})}});
        },
        {.call = limit, .whole = limit}, printed);
    std::optional<int> status;
    while (const std::optional<nlohmann::json> message = child.next()) {
        if (message->contains("status")) {
            status = message->at("status").get<int>();
        }
    }
    BenchRun run;
    if (!status) {
        run.problem = "the benchmark " + child.end().sentence;
        run.by_driver = true;
        return run;
    }
    if (WIFSIGNALED(*status)) {
        run.problem = fmt::format("the benchmark crashed, signal {}", WTERMSIG(*status));
        run.by_driver = true;
        return run;
    }
    const int code = WEXITSTATUS(*status);
    if (code == 127) {
        run.problem = fmt::format("--bench: '{}' cannot be run", program);
        return run;
    }
    if (code != 0) {
        run.problem = fmt::format("the benchmark ended with exit code {}", code);
        run.by_driver = code == static_cast<int>(ExitCode::device_failed);
    }
    try {
        ReportFile read = report_from("--bench", file.path());
        for (Json& bench : read.benches) {
            for (const char* key : {"host_name", "executable", "uuid"}) {
                bench.at("context").erase(key);
            }
            run.output = std::move(bench);
        }
    } catch (const tools::Failure& failure) {
        run.problem += (run.problem.empty() ? "" : "; ") + std::string(failure.what());
    }
    return run;
}

}  // namespace vkrope::conformance
