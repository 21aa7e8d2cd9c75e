#!/bin/sh
# SPDX-License-Identifier: MIT
# The wheel is built without a network from what is installed, holds what it needs, and passes the
# Python tests in a virtual environment of its own, on lavapipe and on SwiftShader.
#
# SOURCE, BUILD, SCRATCH  folders      CMAKE  the program
# VK_DRIVER_FILES         manifest of lavapipe        SWIFTSHADER  that of the second device
# COMPLETE                ON: what would be left out fails
set -eu
left_out() {
    echo "skipped: $*"
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}
[ -n "${VK_DRIVER_FILES:-}" ] || left_out 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
modules='build, setuptools, wheel, cffi, numpy, pytest, venv'
python=
for program in python3 /usr/bin/python3; do
    if [ -z "$python" ] && $program -c "import $modules" 2>/dev/null; then python=$program; fi
done
[ -n "$python" ] || left_out "no python3 has all of $modules (./dev test --thorough installs them)"

rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
sh "$SOURCE/host/python/wheel.sh" "$SCRATCH/installed" "$SCRATCH"
wheel=$(echo "$SCRATCH"/vkrope-*-py3-none-linux_*.whl)
[ -f "$wheel" ] || { echo "no wheel for this platform alone: $(ls "$SCRATCH")"; exit 1; }
for file in libvkrope.so vkrope py.typed _declarations.py _kernel.py; do
    $python -m zipfile -l "$wheel" | grep -q "^vkrope/$file " ||
        { echo "the wheel has no vkrope/$file"; exit 1; }
done
$python -m zipfile -l "$wheel" | grep -q '\.dist-info/LICENSE ' ||
    { echo 'the wheel has no licence'; exit 1; }

# numpy, cffi and pytest are the system's.
$python -m venv --system-site-packages "$SCRATCH/venv"
"$SCRATCH/venv/bin/pip" install --quiet --no-index --no-deps "$wheel"
rm -rf "$SCRATCH/installed/lib" "$SCRATCH/installed/bin" # the wheel carries its own

cp "$SOURCE"/tests/python/*.py "$SCRATCH"
cd "$SCRATCH"
export PYTHONDONTWRITEBYTECODE=1
export VKROPE_HEADER="$SCRATCH/installed/include/vkrope/vkrope.h"
export VKROPE_TEST_MODELS="$SOURCE/tests/data/models" VKROPE_PYTHON="$SOURCE/host/python"
"$SCRATCH/venv/bin/python" -c 'import vkrope; print(vkrope.__file__)' | grep -q "^$SCRATCH/venv/"

# on MANIFEST DEVICE FILE...: the tests of these files.
on() {
    manifest=$1
    device=$2
    shift 2
    VK_DRIVER_FILES=$manifest VK_ICD_FILENAMES=$manifest VKROPE_DEVICE=$device \
        "$SCRATCH/venv/bin/python" -m pytest -p no:cacheprovider -q -rs "$@"
}
on "$VK_DRIVER_FILES" llvmpipe .
[ -n "${SWIFTSHADER:-}" ] || left_out 'the second device: VKROPE_SWIFTSHADER_ICD is empty'
on "$SWIFTSHADER" SwiftShader test_rotate.py test_kernel.py
