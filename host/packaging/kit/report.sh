#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests every Vulkan device of this machine and writes one report into this folder.
# Arguments: those of vkrope-conformance (--help).
set -eu
kit=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=host/packaging/kit/start.sh
. "$kit/lib/start.sh"
case " $* " in
    *' --device'*) ;;
    *) [ -n "${VKROPE_DEVICE:-}" ] || set -- --device all "$@" ;;
esac
case " $* " in *' --json'*) ;; *) set -- --json . "$@" ;; esac
code=0
"$bin/vkrope-conformance" "$@" || code=$?
echo 'vkrope-kit: the report names no person or machine; please send it with what you saw' >&2
exit $code
