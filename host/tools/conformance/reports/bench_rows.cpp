// SPDX-License-Identifier: MIT
#include "conformance/reports/bench_rows.hpp"

#include <map>

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;

double ns_of(const Json& row, double time) {
    const auto unit = row.value("time_unit", std::string("ns"));
    return time * (unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "us" ? 1e3 : 1);
}

}  // namespace

std::vector<BenchRow> bench_rows(const Json& bench) {
    std::vector<BenchRow> rows;
    std::map<std::string, std::size_t> index;
    for (const Json& entry : bench.at("benchmarks")) {
        std::string name = entry.at("run_name").get<std::string>();
        if (const std::size_t suffix = name.rfind("/manual_time"); suffix != std::string::npos) {
            name.resize(suffix);
        }
        const auto [found, is_new] = index.try_emplace(name, rows.size());
        if (is_new) {
            rows.push_back({.name = name});
        }
        BenchRow& row = rows[found->second];
        const auto aggregate = entry.value("aggregate_name", std::string());
        const double time = entry.value("real_time", 0.0);
        if (aggregate == "median" || (aggregate.empty() && row.ns == 0)) {
            row.ns = ns_of(entry, time);
            row.roof = entry.value("roof", 0.0);
        } else if (aggregate == "cv") {
            row.spread = time;
        }
    }
    return rows;
}

}  // namespace vkrope::conformance
