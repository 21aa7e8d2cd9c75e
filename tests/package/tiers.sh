#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the dependencies between the tiers, and between the folders of the tools: a file includes
# no header of ours that its folder may not know (host/README.md, host/tools/README.md).
set -eu
cd "$SOURCE/host"
failed=0

# may_include FOLDER PATTERN: checks that all our headers in files of FOLDER match PATTERN.
may_include() {
    bad=$(grep -rnE '^#include "' "$1" --include='*.cpp' --include='*.hpp' |
        grep -vE "#include \"($2)\"" || true)
    [ -z "$bad" ] || { echo "$1 includes what it may not know:"; echo "$bad"; failed=1; }
}
shared='base/.*|interface\.h|vkrope/(vkrope\.hpp|version\.h)'
may_include base "$shared"
may_include frequencies "$shared|frequencies/.*"
may_include kernel "$shared|kernel/.*|(rope|positions)\.inc"
may_include model "$shared|model/.*"
may_include model/hf "$shared|model/(hf/.*|[a-z_]+\.hpp)"
may_include model/gguf "$shared|model/(gguf/.*|[a-z_]+\.hpp)"
may_include runtime "$shared|runtime/.*"
may_include verify/oracle 'verify/oracle/.*'
may_include verify/shader_source 'verify/shader_source/.*|frequencies/.*|base/.*|vkrope/vkrope\.hpp|interface\.h'
for folder in verify/*.?pp verify/oracle; do
    may_include "$folder" 'verify/.*|base/meaning\.hpp|vkrope/vkrope\.hp?p?'
done
for file in operation.hpp definition.hpp definition.cpp compare.hpp compare.cpp; do
    may_include "verify/$file" 'verify/(oracle/.*|operation|definition|compare)\.hpp|vkrope/vkrope\.h'
done

# The folders of the tools, in the order of their dependencies. Each may include the tiers' headers.
oracle='oracle|turns|rows|ops|element|quantise|quantise_verdict|verdict|code_edges'
tiers="vkrope/.*|base/(meaning|divide_up)\.hpp|verify/[a-z_]+\.hpp|verify/oracle/($oracle)\.hpp"
may_include tools/cli "$tiers|cli/.*"
may_include tools/io \
    "$tiers|(cli|io)/.*|model/(gguf/model|hf/config|json_document|import_error)\.hpp"
may_include tools/copy_roof \
    "$tiers|copy_roof/.*|base/status\.hpp|runtime/device_impl\.hpp|kernel/vulkan/program\.hpp|copy\.inc"
may_include tools/rotate "$tiers|(cli|io|copy_roof|operation|rotate)/.*"
may_include tools/operation "$tiers|(cli|io|operation)/.*"
may_include tools/check "$tiers|(cli|io|operation|check)/.*"
may_include tools/explain "$tiers|(cli|io|explain)/.*"
conformance='verify/shader_source/.*|model/(import_error|json_document)\.hpp|interface\.h|frequencies/.*'
may_include tools/conformance "$tiers|(cli|io|conformance)/.*|$conformance"

# Only one file may include Vulkan Memory Allocator. Public headers must not use JSON, formatting,
# iostream or a command line, and must throw nothing.
[ "$(grep -rlE 'vk_mem_alloc' . --include='*.?pp' | sort | tr '\n' ' ')" = \
    './runtime/allocator.cpp ' ] || { echo 'vk_mem_alloc.h is included elsewhere'; failed=1; }
for header in include/vkrope/*; do
    ! grep -HnE 'nlohmann|fmt/|CLI/|\bthrow |iostream' "$header" || failed=1
    grep -q 'SPDX-License-Identifier: MIT' "$header" ||
        { echo "$header has no SPDX line"; failed=1; }
done
exit $failed
