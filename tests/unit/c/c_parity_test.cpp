// SPDX-License-Identifier: MIT
// vkrope.h offers everything that the C++ headers offer, under the same names. The functions and
// fields are read from the headers; a difference must be in a table here, with its reason.
#include <doctest/doctest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

using Words = std::set<std::string>;
using Table = std::map<std::string, std::string>;

std::string header(const std::string& name) {
    std::ifstream stream(VKROPE_TEST_SOURCE "/host/include/vkrope/" + name);
    REQUIRE(stream.good());
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    text = std::regex_replace(text, std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"), "");
    return std::regex_replace(text, std::regex("//[^\n]*|\n *#[^\n]*"), "");
}

/// The text from `open` to the brace that closes it.
std::string body(const std::string& text, std::size_t open) {
    int depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        if (text[at] == '{') ++depth;
        if (text[at] == '}' && --depth == 0) return text.substr(open + 1, at - open - 1);
    }
    return "";
}

/// Without what stands in braces or parentheses, and with ';' for the body of a function.
std::string outside_braces(const std::string& text) {
    std::string result;
    int braces = 0, parentheses = 0;
    for (const char c : text) {
        if (c == '(' && braces == 0) ++parentheses;
        if (c == '{' && parentheses == 0) ++braces;
        if (braces == 0 && parentheses == 0) result += c;
        if (c == ')' && braces == 0 && --parentheses == 0) result += "()";
        if (c == '}' && parentheses == 0 && --braces == 0) result += ';';
    }
    return result;
}

/// The data members of a struct, of either language.
Words fields_of(const std::string& text, const std::string& begin) {
    const std::size_t at = text.find(begin + " {");
    REQUIRE_MESSAGE(at != text.npos, begin);
    std::string code = outside_braces(body(text, text.find('{', at)));
    code = std::regex_replace(code, std::regex(R"(=[^,;]*)"), "");
    Words fields;
    const std::regex statement("[^;]+"), last(R"(([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$)");
    for (std::sregex_iterator each(code.begin(), code.end(), statement), end; each != end; ++each) {
        const std::string words = each->str();
        if (words.find('(') != words.npos || words.find("static") != words.npos) continue;
        const std::regex part("[^,]+");
        for (std::sregex_iterator one(words.begin(), words.end(), part); one != end; ++one) {
            std::smatch name;
            const std::string declared = one->str();
            if (std::regex_search(declared, name, last)) fields.insert(name[1]);
        }
    }
    return fields;
}

Words functions_of_c(const std::string& text) {
    Words functions;
    const std::regex name(R"(\bvkrope_\w+(?=\s*\())");
    for (std::sregex_iterator each(text.begin(), text.end(), name), end; each != end; ++each)
        functions.insert(each->str().substr(7));
    return functions;
}

/// Free functions, and public methods as Class::method.
Words functions_of_cpp(const std::string& text) {
    Words functions;
    const std::regex name(R"(([A-Za-z_]\w*)\s*\(\))");
    const auto collect = [&](const std::string& code, const std::string& prefix) {
        for (std::sregex_iterator each(code.begin(), code.end(), name), end; each != end; ++each)
            functions.insert(prefix + (*each)[1].str());
        functions.erase("size_t");  // the result of a std::function
    };
    const std::size_t space = text.find("namespace vkrope {");
    collect(outside_braces(body(text, text.find('{', space))), "");
    const std::regex type(R"(class (\w+) \{)");
    for (std::sregex_iterator each(text.begin(), text.end(), type), end; each != end; ++each) {
        std::string inside = body(text, text.find('{', std::size_t(each->position())));
        inside = inside.substr(0, inside.find("private:"));
        const std::string name_of_class = (*each)[1];
        collect(outside_braces(inside), name_of_class + "::");
        functions.erase(name_of_class + "::" + name_of_class);  // constructors
        functions.erase(name_of_class + "::impl");              // for the library itself
    }
    return functions;
}

// C++ function -> C function.
const Table functions = {
    {"create", "kernel_create"},
    {"create_positions", "position_kernel_create"},
    {"create_arena", "arena_create"},
    {"destroy", "kernel_destroy"},
    {"reset", "arena_reset"},
    {"requirements", "get_requirements"},
    {"dispatches", "get_dispatches"},
    {"boundary", "get_boundary"},
    {"angle_image_info", "get_angle_image_info"},
    {"angle_view_info", "get_angle_view_info"},
    {"angle_lines", "get_angle_lines"},
    {"kernel_info", "rotation_get_kernel_info"},
    {"from_hf_config", "rotation_from_hf_config"},
    {"from_gguf", "rotation_from_gguf"},
    {"from_gguf_file", "rotation_from_gguf_file"},
    {"devices", "device_list_create"},
    {"Device::open", "device_open"},
    {"Device::info", "device_get_info"},
    {"Device::ref", "device_get_ref"},
    {"Device::queue", "device_get_queue"},
    {"Device::queue_family", "device_get_queue"},
    {"Device::submit", "device_submit"},
    {"Device::save_pipeline_cache", "device_save_pipeline_cache"},
    {"Buffer::make", "buffer_create"},
    {"Buffer::upload", "buffer_upload"},
    {"Buffer::download", "buffer_download"},
    {"Buffer::whole", "buffer_whole"},
    {"AngleTable::make", "angle_table_create"},
    {"AngleTable::reach", "angle_table_reach"},
    {"AngleTable::angles", "angle_table_get"},
    {"AngleTable::plan", "angle_table_get"},
    {"HostRotation::make", "host_rotation_create"},
    {"HostRotation::upload", "host_rotation_upload"},
    {"HostRotation::download", "host_rotation_download"},
    {"HostRotation::run", "host_rotation_run"},
    {"HostRotation::q_bytes", "host_rotation_q_bytes"},
    {"HostRotation::k_bytes", "host_rotation_k_bytes"},
    {"HostRotation::v_bytes", "host_rotation_v_bytes"},
};

// C++ functions that C does not have -> why.
const Table functions_without_c = {
    {"own", "owners are of C++"},
    {"select_device", "vkrope_device_options::select does it"},
    {"HostRotation::buffers", "an application with buffers of its own calls vkrope_record"},
    {"HostRotation::angle_plan", "likewise"},
    {"Buffer::handle", "vkrope_buffer_whole gives the handle"},
};

struct Pair {
    const char *file, *cpp, *c;
};
const Pair structs[] = {
    {"types.hpp", "Sections", "sections"},
    {"types.hpp", "AnglePlan", "angle_plan"},
    {"types.hpp", "AngleLines", "angle_lines"},
    {"types.hpp", "HeadFormat", "head_format"},
    {"types.hpp", "Window", "window"},
    {"types.hpp", "Norm", "norm"},
    {"types.hpp", "Finish", "finish"},
    {"types.hpp", "ParameterItem", "parameter_item"},
    {"types.hpp", "TensorParameters", "tensor_parameters"},
    {"types.hpp", "ParameterPlan", "parameter_plan"},
    {"types.hpp", "KernelInfo", "kernel_info"},
    {"frequencies.hpp", "HadamardBlocks", "hadamard_blocks"},
    {"frequencies.hpp", "ParameterSource", "parameter_source"},
    {"frequencies.hpp", "TensorParameterSources", "tensor_parameter_sources"},
    {"frequencies.hpp", "ParameterSources", "parameter_sources"},
    {"frequencies.hpp", "Rotation", "rotation_info"},
    {"frequencies.hpp", "ProportionalScaling", "proportional_scaling"},
    {"frequencies.hpp", "DynamicNtkScaling", "dynamic_ntk_scaling"},
    {"frequencies.hpp", "YarnScaling", "yarn_scaling"},
    {"frequencies.hpp", "DeepseekYarnScaling", "deepseek_yarn_scaling"},
    {"frequencies.hpp", "LongRopeScaling", "longrope_scaling"},
    {"frequencies.hpp", "Llama3Scaling", "llama3_scaling"},
    {"frequencies.hpp", "GgmlScaling", "ggml_scaling"},
    {"frequencies.hpp", "QueryScale", "query_scale"},
    {"frequencies.hpp", "ModelFinish", "model_finish"},
    {"rotation_from.hpp", "GgmlRope", "ggml_rope"},
    {"rotation_from.hpp", "OnnxRope", "onnx_rope"},
    {"rotation_from.hpp", "FlashinferRope", "flashinfer_rope"},
    {"rotation_from.hpp", "MlxRope", "mlx_rope"},
    {"rotation_from.hpp", "TransformerEngineRope", "transformer_engine_rope"},
    {"kernel.hpp", "Requirements", "requirements"},
    {"kernel.hpp", "DeviceRef", "device_ref"},
    {"kernel.hpp", "Tensor", "tensor"},
    {"kernel.hpp", "PagedCache", "paged_cache"},
    {"kernel.hpp", "Positions", "positions"},
    {"kernel.hpp", "Angles", "angles"},
    {"kernel.hpp", "Call", "call"},
    {"kernel.hpp", "Boundary", "boundary"},
    {"kernel.hpp", "AngleUpload", "angle_upload"},
    {"kernel.hpp", "PositionCall", "position_call"},
    {"runtime.hpp", "DeviceInfo", "device_info"},
    {"runtime.hpp", "DeviceOptions", "device_options"},
    {"model.hpp", "ModelQuery", "model_query"},
};

// Fields that C spells differently, or has not -> why. A few arrays are flat in C.
const Table fields_in_c = {
    {"Rotation::finish", "vkrope_rotation_get_finish gives it"},
    {"AnglePlan::sections", "section_order, axes, section_pairs, leftover_axis: a plan is copied"},
};

}  // namespace

TEST_CASE("C: every function of the C++ headers is in vkrope.h, or has a reason not to be") {
    const Words c = functions_of_c(header("vkrope.h"));
    REQUIRE(c.count("kernel_create") == 1);
    Words known;
    for (const char* file : {"types.hpp", "frequencies.hpp", "rotation_from.hpp", "kernel.hpp",
                             "runtime.hpp", "model.hpp"}) {
        known.merge(functions_of_cpp(header(file)));
    }
    REQUIRE(known.count("record") == 1);
    REQUIRE(known.count("AngleTable::reach") == 1);
    for (const std::string& name : known) {
        if (functions_without_c.count(name) != 0) continue;
        const auto renamed = functions.find(name);
        const std::string& wanted = renamed == functions.end() ? name : renamed->second;
        CHECK_MESSAGE(c.count(wanted) == 1, name, ": no vkrope_", wanted);
    }
    for (const Table& table : {functions, functions_without_c}) {
        for (const auto& [name, other] : table)
            CHECK_MESSAGE(known.count(name) == 1, name, ": the C++ headers have no such function");
    }
}

TEST_CASE("C: every field of the C++ structs is in vkrope.h, or has a reason not to be") {
    const std::string c = header("vkrope.h");
    Words seen;
    for (const Pair& pair : structs) {
        const Words in_c = fields_of(c, "typedef struct vkrope_" + std::string(pair.c)),
                    in_cpp = fields_of(header(pair.file), "struct " + std::string(pair.cpp));
        CHECK_MESSAGE(in_cpp.size() >= 2, pair.cpp);
        for (const std::string& field : in_cpp) {
            const std::string name = std::string(pair.cpp) + "::" + field;
            if (fields_in_c.count(name) != 0) {
                seen.insert(name);
                CHECK_MESSAGE(in_c.count(field) == 0, name, ": C has it");
            } else {
                CHECK_MESSAGE(in_c.count(field) == 1, name, ": not a valid field in C");
            }
        }
    }
    for (const auto& [name, reason] : fields_in_c)
        CHECK_MESSAGE(seen.count(name) == 1, name, ": the C++ headers have no such field");
}
