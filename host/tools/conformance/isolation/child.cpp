// SPDX-License-Identifier: MIT
#include "conformance/isolation/child.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/interrupt.hpp"

namespace vkrope::conformance {

using Json = nlohmann::json;

ChildProcess::ChildProcess(const std::vector<std::string>& words,
                           const std::map<std::string, std::string>& environment,
                           const Watch& watch)
    : watch_(watch), process_(words, environment), counted_(Clock::now()) {}

std::optional<Json> ChildProcess::next() {
    for (;;) {
        if (std::optional<Json> line = take_line()) {
            if (!line->contains("finished")) return line;
            finished_ = true;
            continue;
        }
        if (how_) {
            end_ = describe();
            return std::nullopt;
        }
        pass_interrupt_on();
        end_if_silent();
        how_ = process_.ended();
        read_pipes(how_ ? 0 : 100);
    }
}

std::optional<Json> ChildProcess::take_line() {
    const std::size_t end = received_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    // A driver that writes to a file descriptor of another owner can corrupt the pipe.
    Json line = Json::parse(received_.begin(), received_.begin() + std::ptrdiff_t(end), nullptr,
                            false);
    received_.erase(0, end + 1);
    return line.is_object() ? line : Json::object();
}

void ChildProcess::read_pipes(int wait_ms) {
    const auto take_lines = [this](std::string_view piece) {
        received_.append(piece);
        silent_ = {};
    };
    process_.read(wait_ms, take_lines, watch_.printed);
}

void ChildProcess::pass_interrupt_on() {
    if (const int signal = interrupted_by(); signal != 0 && passed_on_ == 0) {
        passed_on_ = signal;
        process_.interrupt(signal);
    }
}

void ChildProcess::end_if_silent() {
    // This process was held up itself where it comes here after more than a second: by a pager that
    // does not read, or by a machine that slept.
    const Clock::time_point now = Clock::now();
    silent_ += std::min<Clock::duration>(now - counted_, std::chrono::seconds(1));
    counted_ = now;
    if (!over_limit_ && silent_ > watch_.limit) {
        over_limit_ = true;
        process_.kill();
    }
}

ChildEnd ChildProcess::describe() const {
    if (over_limit_)
        return {.sentence = fmt::format("took more than {} seconds", watch_.limit.count())};
    if (how_->exit_code) {
        const int code = *how_->exit_code;
        return {.well = code == 0 && finished_,
                .sentence = fmt::format("was ended by a library that it uses, most likely the "
                                        "Vulkan driver (exit code {})",
                                        code)};
    }
    return {.out_of_memory = how_->out_of_memory,
            .interrupted = how_->signal != 0 && how_->signal == passed_on_,
            .sentence = how_->sentence};
}

}  // namespace vkrope::conformance
