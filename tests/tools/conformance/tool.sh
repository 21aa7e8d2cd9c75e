# SPDX-License-Identifier: MIT
# What the tests in this folder share; they source this file. Their arguments: the command
# vkrope-conformance, the folder of model files, which they do not use, and lavapipe's manifest.
# shellcheck shell=sh disable=SC2034 # the scripts that source this file use `tool`
. "$(dirname "$0")/../command/check.sh"
tool=$vkrope
need_lavapipe
# Makes lavapipe optimise less, because compiling takes most of the time of these tests.
GALLIVM_PERF=nopt LP_NATIVE_VECTOR_WIDTH=128
export GALLIVM_PERF LP_NATIVE_VECTOR_WIDTH
