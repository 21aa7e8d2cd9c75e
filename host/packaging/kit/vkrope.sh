#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the command vkrope with these arguments (--help).
set -eu
kit=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=host/packaging/kit/start.sh
. "$kit/lib/start.sh"
exec "$bin/vkrope" "$@"
