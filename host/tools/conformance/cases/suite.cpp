// SPDX-License-Identifier: MIT
#include "conformance/cases/suite.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/output_file.hpp"
#include "conformance/cases/compare.hpp"
#include "conformance/cases/run.hpp"
#include "conformance/shell_word.hpp"
#include "io/element_type.hpp"

namespace vkrope::conformance {
namespace {

namespace fs = std::filesystem;

/// Finds the folders of cases below `root`. Ignores symbolic links to folders, because they may
/// form cycles.
std::vector<fs::path> folders_below(const fs::path& root, const std::string& given) {
    std::vector<fs::path> found;
    std::error_code problem;
    const auto look = [&found](const fs::path& folder) {
        std::error_code none;
        if (fs::symlink_status(folder / "case.json", none).type() != fs::file_type::not_found) {
            found.push_back(folder);
        }
    };
    look(root);
    fs::recursive_directory_iterator entry(root, problem);
    for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
        std::error_code none;
        if (!entry->is_symlink(none) && entry->is_directory(none)) {
            look(entry->path());
        }
    }
    if (problem) {
        tools::fail(tools::ExitCode::bad_file, "--cases: '{}' cannot be read: {}", given,
                    problem.message());
    }
    std::sort(found.begin(), found.end());
    return found;
}

void write_array(const fs::path& file, npy::Type type, const std::vector<std::uint64_t>& shape,
                 std::span<const std::byte> bytes, std::vector<tools::OutputFile>& files) {
    tools::OutputFile& output = files.emplace_back("--write-outputs", file.string());
    output.write(npy::make_header(type, shape));
    output.write(bytes);
}

class CaseCheck : public Check {
   public:
    CaseCheck(fs::path root, fs::path folder, std::string given, std::string outputs)
        : id_(folder.lexically_relative(root).generic_string()), given_(std::move(given)),
          outputs_(std::move(outputs)), files_(std::move(root), std::move(folder)) {
        try {
            id_ = id_of(parse_document(files_.document()));
        } catch (const Refusal& refusal) {
            refused_ = refusal.outcome();
        }
    }

    const std::string& id() const noexcept override { return id_; }

    std::string source_options() const override {
        return "--no-builtin --cases " + shell_word(given_);
    }

    Outcome run(DeviceUnderTest& device) override {
        if (refused_) {
            return *refused_;
        }
        const CaseDescription description = describe(parse_document(files_.document()));
        const CaseResult result = run_case(device, files_, description);
        if (!outputs_.empty()) {
            write(description, result.tensors);
        }
        return judge(description, result);
    }

    /// Refuses a case with a duplicate id. The case keeps the id derived from its folder.
    void refuse(const std::string& reason) {
        refused_ = Outcome{.verdict = Verdict::error, .reason = reason};
    }

   private:
    Outcome judge(const CaseDescription& description, const CaseResult& result) const {
        const std::vector<Actual>& all = result.tensors;
        Outcome outcome = {.verdict = Verdict::computed};
        std::size_t compared = 0;
        std::uint64_t elements = 0;
        for (const Actual& actual : all) {
            const Comparison comparison = compare(files_, description, actual);
            if (comparison.expected) {
                ++compared;
                elements += actual.bytes.size();
                outcome.max_error = std::max(outcome.max_error.value_or(0), comparison.max_error);
            }
            if (!comparison.problem.empty() && outcome.reason.empty()) {
                outcome.reason = comparison.problem;
            }
        }
        if (outcome.reason.empty()) {
            outcome.reason = result.problem;
        }
        if (!outcome.reason.empty()) {
            outcome.verdict = Verdict::fail;
            if (!description.quirk.empty()) {
                outcome.reason += "; the case notes a quirk: " + description.quirk;
            }
        } else if (compared == all.size() && elements == 0) {
            outcome.reason = "the tensors are empty";
        } else if (compared == all.size()) {
            outcome.verdict = Verdict::pass;
        } else {
            outcome.reason = "no expected output";
        }
        return outcome;
    }

    /// Checks that no link leads out of the outputs folder, which may be the folder of the cases.
    void check_inside(const fs::path& path) const {
        std::error_code problem;
        const fs::path outputs = fs::canonical(outputs_, problem),
                       there = fs::weakly_canonical(path, problem);
        const bool below =
            std::mismatch(outputs.begin(), outputs.end(), there.begin(), there.end()).first ==
            outputs.end();
        if (problem || !below || fs::is_symlink(path, problem)) {
            wrong_file("--write-outputs: a symbolic link leads out of the folder");
        }
    }

    void write(const CaseDescription& description, const std::vector<Actual>& all) const {
        const fs::path folder = fs::path(outputs_) / description.id;
        check_inside(folder);
        std::error_code problem;
        fs::create_directories(folder, problem);
        if (problem) {
            wrong_file("--write-outputs: cannot make the folder '{}': {}", description.id,
                       problem.message());
        }
        try {
            std::vector<tools::OutputFile> files;
            const auto write_one = [&](const std::string& name, npy::Type type,
                                       const std::vector<std::uint64_t>& shape,
                                       std::span<const std::byte> bytes) {
                const fs::path file = folder / ("actual_" + name + ".npy");
                check_inside(file);
                write_array(file, type, shape, bytes, files);
            };
            for (const Actual& actual : all) {
                write_one(actual.tensor.name, tools::npy_type(actual.output.element),
                          actual.output.shape, actual.bytes);
                if (actual.scales) {
                    write_one(actual.tensor.name + "_scales", npy::Type::f4, actual.scales->shape,
                              std::as_bytes(std::span(actual.scales->values)));
                }
            }
            tools::OutputFile::publish(files);
        } catch (const tools::Failure& failure) {  // the message contains the whole path
            wrong_file("--write-outputs: the files of '{}' cannot be written", description.id);
        }
    }

    std::string id_, given_, outputs_;
    CaseFolder files_;
    std::optional<Outcome> refused_;
};

}  // namespace

Group find_cases(const std::vector<std::string>& folders, const std::string& outputs) {
    Group group = {.name = cases_group, .checks = {}};
    std::map<std::string, std::size_t> ids;
    for (const std::string& given : folders) {
        std::error_code problem;
        const fs::path root = fs::canonical(given, problem);
        if (problem || !fs::is_directory(root, problem)) {
            tools::fail(tools::ExitCode::bad_file, "--cases: '{}' is not a folder that can be read",
                        given);
        }
        const std::vector<fs::path> found = folders_below(root, given);
        if (found.empty()) {
            tools::fail(tools::ExitCode::bad_file,
                        "--cases: '{}' has no case.json in it or below it", given);
        }
        for (const fs::path& folder : found) {
            auto check = std::make_unique<CaseCheck>(root, folder, given, outputs);
            if (ids[check->id()]++ > 0) {
                check->refuse("another case has the same id");
            }
            group.checks.push_back(std::move(check));
        }
    }
    return group;
}

}  // namespace vkrope::conformance
