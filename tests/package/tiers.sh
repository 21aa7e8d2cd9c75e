#!/bin/sh
# SPDX-License-Identifier: MIT
# The arrows between the tiers: a file includes nothing of ours from a tier that its own may not know (host/README.md).
set -eu
cd "$SOURCE/host"
failed=0

# may_include FOLDER PATTERN: files in FOLDER include, of ours, only what matches PATTERN.
may_include() {
    bad=$(grep -rnE '^#include "' "$1" --include='*.cpp' --include='*.hpp' | grep -vE "#include \"($2)\"" || true)
    [ -z "$bad" ] || { echo "$1 includes what it may not know:"; echo "$bad"; failed=1; }
}
shared='status\.hpp|interface\.h|vkrope/types\.hpp'
may_include frequencies "$shared|frequencies/.*|vkrope/frequencies\.hpp"
may_include kernel "$shared|kernel/.*|vkrope/kernel\.hpp|(rope|positions)\.inc"
may_include model "$shared|model/.*|vkrope/(frequencies|model)\.hpp"
may_include runtime "$shared|runtime/.*|vkrope/(frequencies|kernel|runtime)\.hpp"
[ ! -d c ] || may_include c "$shared|c/.*|vkrope/(vkrope\.h|(frequencies|kernel|model|runtime)\.hpp)"
may_include reference 'reference/.*'

# Vulkan Memory Allocator is known to one file; JSON to one tier; exceptions never leave a header of ours.
[ "$(grep -rlE 'vk_mem_alloc' . --include='*.?pp' | sort | tr '\n' ' ')" = './runtime/allocator.cpp ' ] || { echo 'vk_mem_alloc.h is included elsewhere'; failed=1; }
for header in include/vkrope/*; do
    ! grep -HnE 'nlohmann|fmt/|CLI/|\bthrow |iostream' "$header" || failed=1
    grep -q 'SPDX-License-Identifier: MIT' "$header" || { echo "$header has no SPDX line"; failed=1; }
done
exit $failed
