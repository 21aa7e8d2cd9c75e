#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the wheel is built without a network from the installed files, contains all that it
# needs, and passes the Python tests in a new virtual environment. These run on lavapipe only, since
# other tests compare devices.
#
# SOURCE, BUILD, SCRATCH  folders      CMAKE  the program
# VK_DRIVER_FILES         manifest of lavapipe
# COMPLETE                if ON, the test fails where it would be skipped
set -eu
[ -n "${VK_DRIVER_FILES:-}" ] || {
    echo 'skipped: no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}
python() {
    sh "$SOURCE/tests/python/python.sh" 'build, setuptools, wheel, cffi, numpy, pytest, venv' "$@"
}
python --version

rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
sh "$SOURCE/host/python/wheel.sh" "$SCRATCH/installed" "$SCRATCH"
wheel=$(echo "$SCRATCH"/vkrope-*-py3-none-linux_*.whl)
[ -f "$wheel" ] || { echo "no wheel for this platform alone: $(ls "$SCRATCH")"; exit 1; }
for file in libvkrope.so vkrope py.typed _declarations.py _kernel.py; do
    python -m zipfile -l "$wheel" | grep -q "^vkrope/$file " ||
        { echo "the wheel has no vkrope/$file"; exit 1; }
done
python -m zipfile -l "$wheel" | grep -q '\.dist-info/LICENSE ' ||
    { echo 'the wheel has no licence'; exit 1; }

# The environment uses the system's numpy, cffi and pytest.
python -m venv --system-site-packages "$SCRATCH/venv"
"$SCRATCH/venv/bin/pip" install --quiet --no-index --no-deps "$wheel"
rm -rf "$SCRATCH/installed/lib" "$SCRATCH/installed/bin" # the wheel has its own copies

cp "$SOURCE"/tests/python/*.py "$SCRATCH"
cd "$SCRATCH"
export PYTHONDONTWRITEBYTECODE=1
export VKROPE_HEADER="$SCRATCH/installed/include/vkrope/vkrope.h"
export VKROPE_TEST_MODELS="$SOURCE/tests/data/models" VKROPE_PYTHON="$SOURCE/host/python"
"$SCRATCH/venv/bin/python" -c 'import vkrope; print(vkrope.__file__)' | grep -q "^$SCRATCH/venv/"

VKROPE_DEVICE=llvmpipe "$SCRATCH/venv/bin/python" -m pytest -p no:cacheprovider -q -rs \
    --ignore test_cases.py . # conformance_cases runs it
