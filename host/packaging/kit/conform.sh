#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests every Vulkan device of this machine: vkrope-conformance with these arguments (--help).
set -eu
kit=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=host/packaging/kit/start.sh
. "$kit/lib/start.sh"
case " $* " in
    *' --device'* | *' --list '* | *' --help '*) ;;
    *) [ -n "${VKROPE_DEVICE:-}" ] || set -- --device all "$@" ;;
esac
exec "$bin/vkrope-conformance" "$@"
