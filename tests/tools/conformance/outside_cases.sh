#!/bin/sh
# SPDX-License-Identifier: MIT
# Cases that are not part of this repository, where VKROPE_CASES names a folder of them.
# Arguments: the command vkrope-conformance, and the folder that the build was configured with.
set -eu
cases=${VKROPE_CASES:-${2:-}}
if [ -z "$cases" ]; then
    echo 'conformance_outside: skipped: VKROPE_CASES names no folder of cases'
    exit 77
fi
exec "$1" --validation --no-builtin --cases "$cases"
