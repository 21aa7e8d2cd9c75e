#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh PREFIX OUT: builds the wheel of the vkrope installed in PREFIX, in the folder OUT. Needs
# no network, but the Python packages build, setuptools, wheel and cffi.
set -eu
[ $# = 2 ] || { echo 'usage: wheel.sh PREFIX OUT' >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
VKROPE_PREFIX=$(cd "$1" && pwd)
export VKROPE_PREFIX
mkdir -p "$2"
out=$(cd "$2" && pwd)
python=
for program in python3 /usr/bin/python3; do
    if [ -z "$python" ] && $program -c 'import build, setuptools, wheel, cffi' 2>/dev/null; then
        python=$program
    fi
done
[ -n "$python" ] || {
    echo 'wheel.sh: no python3 has build, setuptools, wheel and cffi (Debian: python3-build' \
        'python3-setuptools python3-wheel python3-cffi)' >&2
    exit 1
}
# setuptools leaves files in the source folder, so it works in a copy.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here"/vkrope "$here"/*.py "$here/pyproject.toml" "$here/../../LICENSE" "$work"
chmod -R u=rwX,go=rX "$work" # modes that the wheel contains
cd "$work"
$python -m build --wheel --no-isolation --outdir "$out" . >build.log 2>&1 || {
    tail -n 20 build.log >&2
    exit 1
}
