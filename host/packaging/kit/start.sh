#!/bin/sh
# SPDX-License-Identifier: MIT
# Each command of the kit is a copy of this file: bench times the best Vulkan device, conform tests
# every one, report also writes a report into this folder, vkrope is the tool. Arguments: --help.
set -eu
self=$(readlink -f -- "$0") # of a link, the file that it points to
command=${self##*/}
kit=${self%/*}
needed=$(cat "$kit/lib/glibc")

refuse() {
    echo "vkrope-kit: error: $*" >&2
    exit 2
}

built_for=$(cat "$kit/lib/machine")
machine="$(uname -s) $(uname -m)"
[ "$machine" = "$built_for" ] || refuse "this kit is for $built_for; this is $machine"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) ||
    refuse "this kit needs glibc $needed or newer; getconf names none on this system"
found=${libc#glibc }
[ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" = "$needed" ] ||
    refuse "this kit needs glibc $needed or newer; this system has $found"

# The system's Vulkan loader takes precedence, because it finds the system's drivers.
has_loader() {
    for ldconfig in ldconfig /sbin/ldconfig /usr/sbin/ldconfig; do
        ! $ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1 ' || return 0
    done
    echo "${LD_LIBRARY_PATH:-}" | tr ':' '\n' | while read -r folder; do
        [ -z "$folder" ] || [ ! -e "$folder/libvulkan.so.1" ] || echo found
    done | grep -q found
}
if ! has_loader; then
    echo 'vkrope-kit: note: this system has no libvulkan.so.1: the one in the kit is used' >&2
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$kit/lib/loader
    export LD_LIBRARY_PATH
fi

case $command in
    bench) exec "$kit/lib/bin/vkrope-bench" "$@" ;;
    vkrope) exec "$kit/lib/bin/vkrope" "$@" ;;
    conform | report) ;;
    *) refuse "'$command' is no command of the kit: bench, conform, report or vkrope" ;;
esac
case " $* " in
    *' --device'* | *' --list '* | *' --help '*) ;;
    *) [ -n "${VKROPE_DEVICE:-}" ] || set -- --device all "$@" ;;
esac
[ "$command" = report ] || exec "$kit/lib/bin/vkrope-conformance" "$@"
case " $* " in *' --json'*) ;; *) set -- --json . "$@" ;; esac
code=0
"$kit/lib/bin/vkrope-conformance" "$@" || code=$?
echo 'vkrope-kit: a report names no person or machine; please send it with what you saw' >&2
exit $code
