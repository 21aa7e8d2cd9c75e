// SPDX-License-Identifier: MIT
// Fuzzes case.json of vkrope-conformance: only the document, not the files that it names.
#include "conformance/cases/description.hpp"
#include "conformance/suite.hpp"
#include "fuzz.hpp"

bool vkrope::fuzz::parse_case(Input input) {
    try {
        const nlohmann::json document = conformance::parse_document(input.text());
        const std::string id = conformance::id_of(document);
        require(conformance::describe(document).id == id, "a case has one id");
        return true;
    } catch (const conformance::Refusal&) {
        return false;  // thrown for invalid documents
    }
}
