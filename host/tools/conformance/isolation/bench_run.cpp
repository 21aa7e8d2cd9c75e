// SPDX-License-Identifier: MIT
#include "conformance/isolation/bench_run.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/failure.hpp"
#include "conformance/isolation/worker.hpp"
#include "conformance/reports/input_file.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::ExitCode;

constexpr const char* rows =
    "^(rope/prefill_llama3_8b/f(16|32)/factored_texture/out_of_place"
    "|rope/decode_b(1|64)/f16/factored_texture/|copy/prefill_llama3_8b/f(16|32))";
constexpr std::chrono::minutes limit(10);

/// A file that no other process writes to, removed by the destructor.
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

}  // namespace

BenchRun run_bench(const std::string& program, const FoundDevice& device,
                   const std::function<void(std::string_view)>& printed) {
    const TemporaryFile file;
    BenchRun run;
    try {
        ChildProcess child({program, "--device", device.select, "--benchmark_out=" + file.path(),
                            std::string("--benchmark_filter=") + rows, "--benchmark_min_time=0.02"},
                           {}, {.limit = limit, .printed = printed});
        while (child.next()) {
        }
        const ChildEnd& end = child.end();
        if (!end.exit_code) {
            run.problem = "the benchmark " + end.sentence;
            run.by_driver = true;
            return run;
        }
        if (*end.exit_code != 0) {
            run.problem = fmt::format("the benchmark ended with exit code {}", *end.exit_code);
            run.by_driver = *end.exit_code == static_cast<int>(ExitCode::device_failed);
        }
        if (run.by_driver) {
            return run;
        }
        Json figures = json_from("--bench", file.path());
        check_figures("--bench", file.path(), figures);
        for (const char* key : {"host_name", "executable", "uuid"}) {
            figures.at("context").erase(key);
        }
        run.figures = std::move(figures);
    } catch (const tools::Failure& failure) {
        run.problem += (run.problem.empty() ? "" : "; ") + std::string(failure.what());
    }
    return run;
}

}  // namespace vkrope::conformance
