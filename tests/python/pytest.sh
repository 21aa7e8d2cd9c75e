#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs tests of the command. The arguments are pytest's.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/python/find_python.sh
. "$folder/find_python.sh"
find_python 'numpy, pytest'
export PYTHONDONTWRITEBYTECODE=1 VKROPE_TEST_MODELS="${folder%/*}/data/models"
exec "$python" -m pytest -p no:cacheprovider -q -rs "$@"
