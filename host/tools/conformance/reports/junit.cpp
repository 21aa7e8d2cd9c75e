// SPDX-License-Identifier: MIT
#include "conformance/reports/junit.hpp"

#include <vector>

#include "conformance/reports/html.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;

struct Suite {
    std::string name, cases;
    std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
    double seconds = 0;
};

std::string attribute(const Json& object, const char* key) {
    return html::text(object.at(key).get_ref<const std::string&>());
}

void add(Suite& suite, const Json& check) {
    const auto status = check.at("status").get<std::string>();
    const double seconds = check.at("seconds").get<double>();
    const auto outcome = [&](const char* element, std::size_t& count) {
        ++count;
        return fmt::format("<{} message=\"{}\">{}</{}>", element, attribute(check, "reason"),
                           attribute(check, "repeat"), element);
    };
    std::string inside;
    if (status == word_for(Verdict::fail) || status == word_for(Verdict::unstable)) {
        inside = outcome("failure", suite.failures);
    } else if (status == word_for(Verdict::error)) {
        inside = outcome("error", suite.errors);
    } else if (status == word_for(Verdict::unsupported) || status == word_for(Verdict::waived)) {
        ++suite.skipped;
        inside = fmt::format("<skipped message=\"{}\"/>", attribute(check, "reason"));
    }
    suite.cases += fmt::format(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">{}</testcase>\n",
        html::text(suite.name), attribute(check, "id"), seconds, inside);
    ++suite.tests;
    suite.seconds += seconds;
}

}  // namespace

std::string junit_of(const Json& report) {
    std::vector<Suite> suites;
    for (const Json& device : report.at("devices")) {
        const std::string name = device.at("name").get<std::string>();
        std::string group;
        for (const Json& check : device.at("cases")) {
            if (suites.empty() || check.at("group") != group ||
                suites.back().name != name + ": " + group) {
                group = check.at("group").get<std::string>();
                suites.push_back({.name = name + ": " + group, .cases = {}});
            }
            add(suites.back(), check);
        }
    }
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
    for (const Suite& suite : suites) {
        xml += fmt::format(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
            "time=\"{:.3f}\">\n{}  </testsuite>\n",
            html::text(suite.name), suite.tests, suite.failures, suite.errors, suite.skipped,
            suite.seconds, suite.cases);
    }
    return xml + "</testsuites>\n";
}

}  // namespace vkrope::conformance
