// SPDX-License-Identifier: MIT
// Implements the command "vkrope-bench" with its options and those of Google Benchmark.
#include <benchmark/benchmark.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/command_line.hpp"
#include "cli/device_text.hpp"
#include "cli/exit_guard.hpp"
#include "cli/failure.hpp"
#include "cli/output_file.hpp"
#include "cli/program.hpp"
#include "cli/terminal.hpp"
#include "results.hpp"
#include "rows.hpp"

namespace vkrope::bench {
namespace {

using tools::ExitCode;
using tools::Subject;
using tools::value_of;

struct Options {
    std::string device, commit;
    std::optional<std::string> tune, json;
    std::vector<std::string> benchmark_flags;
};

constexpr const char* footer =
    "Flags of Google Benchmark: --benchmark_filter=REGEX, --benchmark_list_tests, "
    "--benchmark_repetitions=N,\n"
    "--benchmark_min_time=SECONDS, --benchmark_out=FILE.json, --benchmark_format=console|json, "
    "and its others.\n"
    "Rows: rope/SHAPE/DTYPE/ANGLES/PLACE, copy/..., copy_buffer/..., empty/..., rival/WHO/..., "
    "ops/...,\n"
    "cache/..., layer/..., cpu/..., host/...; bench/README.md says what each one times.\n"
    "Counters: bytes_per_second read and written; roof, its share of the fastest copy shader's; "
    "error_u, the\n"
    "largest error in 2^-24 (|x0| + |x1|) over the share `checked` of all elements; host_ns, "
    "to record one call;\n"
    "..._over_fused, the time of another way over the time of one dispatch.\n"
    "--tune prints a line for each tuning, the fastest first, and last what to write in C++.\n\n";

void add_options(tools::CommandLine& program, Options& options) {
    program.add_text("--device", "D", options.device, "an index, a UUID or part of a name")
        .from_environment("VKROPE_DEVICE");
    program.add_text("--commit", "ID", options.commit,
                     "commit that is measured, recorded in the results");
    const tools::Option tune = program.add_text(
        "--tune", "ROW", options.tune,
        "time tunings of the call of a row, rope/SHAPE/DTYPE[/ANGLES[/PLACE]], ops/SHAPE/DTYPE, "
        "cache/SHAPE/TYPE or layer/SHAPE/TYPE, instead of rows");
    program.add_text("--json", "FILE", options.json, "write the tunings").needs(tune);
    program.keep_extras(options.benchmark_flags);
}

// Passes flags to Google Benchmark as an argv. The last flag of a name applies, so the defaults
// come first.
bool initialize(const Options& options) {
    std::vector<std::string> words = {"vkrope-bench", "--benchmark_repetitions=3",
                                      "--benchmark_min_time=0.1" VKROPE_BENCH_SECONDS,
                                      "--benchmark_counters_tabular=true"};
    words.insert(words.end(), options.benchmark_flags.begin(), options.benchmark_flags.end());
    static std::vector<std::string> kept;  // Google Benchmark keeps a pointer to the program name
    kept = words;
    std::vector<char*> argv;
    argv.reserve(kept.size() + 1);
    for (std::string& word : kept) argv.push_back(word.data());
    auto argc = int(argv.size());
    argv.push_back(nullptr);
    {
        const tools::ExitGuard guard(ExitCode::usage,
                                     "a flag of Google Benchmark has an invalid value");
        benchmark::Initialize(&argc, argv.data());
    }
    for (int i = 1; i < argc; ++i)
        tools::print_error(
            fmt::format("{}: not a valid option (see vkrope-bench --help)", argv[std::size_t(i)]));
    return argc <= 1;
}

// Returns the file of --benchmark_out: from the last flag or, as in Google Benchmark, the
// environment. Empty: none.
std::string benchmark_out(const Options& options) {
    constexpr std::string_view flag = "--benchmark_out=";
    const char* from_environment = std::getenv("BENCHMARK_OUT");
    std::string path = from_environment ? from_environment : "";
    for (const std::string& word : options.benchmark_flags)
        if (word.starts_with(flag)) path = word.substr(flag.size());
    return path;
}

// Checks the file early, because Google Benchmark opens it only after the device and ends the
// program on failure. Google Benchmark writes to an existing file, including a pipe.
void check_benchmark_out(const std::string& path) {
    struct stat about = {};
    if (path.empty()) return;
    if (::stat(path.c_str(), &about) != 0) {
        tools::OutputFile("--benchmark_out", path);  // reports an error
    } else if (S_ISDIR(about.st_mode) || ::access(path.c_str(), W_OK) != 0) {
        tools::fail(ExitCode::bad_file, "--benchmark_out: '{}' cannot be written: {}", path,
                    std::strerror(S_ISDIR(about.st_mode) ? EISDIR : errno));
    }
}

// Returns the console reporter of Google Benchmark, limited to one line for each row; null for
// another format.
std::unique_ptr<benchmark::BenchmarkReporter> console(const Options& options) {
    for (const std::string& flag : options.benchmark_flags)
        if (flag.starts_with("--benchmark_format=") && flag != "--benchmark_format=console")
            return nullptr;
    using Console = benchmark::ConsoleReporter;
    return std::make_unique<Console>(tools::colour_allowed(stdout) ? Console::OO_ColorTabular
                                                                   : Console::OO_Tabular);
}

// Adds to the figures what describes the measurement.
void add_context(const Options& options, const tools::KnownDevice& device) {
    benchmark::AddCustomContext("device", tools::printable(device.name));
    benchmark::AddCustomContext("driver", tools::printable(device.driver));
    benchmark::AddCustomContext("uuid", device.uuid);
    benchmark::AddCustomContext("api_version", tools::version_text(device.api_version));
    benchmark::AddCustomContext("vkrope_version", VKROPE_PROJECT_VERSION);
    if (!options.commit.empty()) benchmark::AddCustomContext("commit", options.commit);
}

Bench open(const Options& options) {
    DeviceOptions device_options;
    device_options.select = options.device.c_str();
    device_options.on_message = tools::print_message;
    return Bench(value_of(Device::open(device_options), Subject::device));
}

// Runs every selected row on a device, which is closed at the end.
ExitCode run_rows(const Options& options, MedianReporter& reporter) {
    Bench bench = open(options);
    add_context(options, bench.device().info());
    bench.register_rows();
    for (const std::string& sentence : bench.left_out()) tools::print_note(sentence);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    return bench.outcome();
}

// Prints the tunings of a row, and writes them to a file if there is one.
ExitCode tune(const Options& options) {
    if (!options.benchmark_flags.empty())
        tools::fail(ExitCode::usage, "{} has no effect with --tune", options.benchmark_flags[0]);
    std::vector<tools::OutputFile> files;
    if (options.json) files.emplace_back("--json", *options.json);
    Bench bench = open(options);
    bench.register_rows();
    const Tuned tuned = bench.tune(*options.tune);
    tools::write_output(table(tuned));
    if (options.json) files[0].write(json(tuned, bench.device().info(), options.commit));
    tools::OutputFile::publish(files);
    return ExitCode::success;
}

ExitCode run_benchmarks(const Options& options) {
    check_benchmark_out(benchmark_out(options));
    if (!initialize(options)) return ExitCode::usage;
    MedianReporter reporter(console(options));
    const ExitCode outcome = run_rows(options, reporter);
    for (const std::string& failure : reporter.failures()) tools::print_error(failure);
    return outcome;
}

ExitCode run(int argc, char** argv) {
    tools::CommandLine program(
        "Times RoPE on a Vulkan device against a plain copy of the same bytes. Every row is "
        "checked before it is timed.",
        "vkrope-bench", VKROPE_PROJECT_VERSION, std::string(footer) + tools::exit_codes);
    Options options;
    add_options(program, options);
    program.on_run([&options] { return options.tune ? tune(options) : run_benchmarks(options); });
    return program.run(argc, argv);
}

}  // namespace
}  // namespace vkrope::bench

int main(int argc, char** argv) {
    return vkrope::tools::run_program(
        "the --benchmark_out file may be incomplete",
        [=] { return vkrope::bench::run(argc, argv); });
}
