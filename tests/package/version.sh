#!/bin/sh
# SPDX-License-Identifier: MIT
# One version: the project's, the tool's, and the newest of the change log.
set -eu
tool=$("$BUILD/bin/vkrope" --version)
[ "$tool" = "vkrope $VERSION" ] ||
    { echo "vkrope --version says '$tool', the project is $VERSION"; exit 1; }
newest=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' "$SOURCE/CHANGELOG.md" | head -n 1)
[ "$newest" = "$VERSION" ] ||
    { echo "CHANGELOG.md starts with '$newest', the project is $VERSION"; exit 1; }
