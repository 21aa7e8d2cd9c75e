#!/bin/sh
# SPDX-License-Identifier: MIT
# The command lines of README.md run as they are printed, one after the other, in a folder that is
# empty before: what one reads, another one has written.
page=$(cd "$(dirname "$0")/../../.." && pwd)/README.md
. "$(dirname "$0")/check.sh"
need_lavapipe
PATH=$(dirname "$vkrope"):$PATH
export PATH

sed -n '/^## The command$/,/^## /s/^    //p' "$page" >"$logs/lines"
for command in make-input devices explain rotate check; do
    holds "README.md has no line with $command" grep -q "^vkrope $command" "$logs/lines"
done
while IFS= read -r line <&3; do
    works sh -c "$line"
done 3<"$logs/lines"
finish
