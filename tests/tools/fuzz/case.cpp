// SPDX-License-Identifier: MIT
// case.json of vkrope-conformance: only the document, not the files that it names.
#include "conformance/cases/description.hpp"
#include "conformance/suite.hpp"
#include "fuzz.hpp"

void vkrope::fuzz::parse(Input input) {
    try {
        const nlohmann::json document = conformance::parse_document(input.text());
        const std::string id = conformance::id_of(document);
        require(conformance::describe(document).id == id, "a case has one id");
    } catch (const conformance::Refusal&) {
        // thrown for invalid documents
    }
}
