# SPDX-License-Identifier: MIT
# Functions for the tests in this folder. Each test sources this file, works in a temporary folder
# and ends with `finish`. The arguments of a test: the command vkrope, the folder of model files,
# and the driver manifest of lavapipe, which may be empty.
# shellcheck shell=sh disable=SC2034 # the scripts that source this file use the variables
set -u
LC_ALL=C
export LC_ALL
unset VKROPE_DEVICE NO_COLOR

vkrope=$1
models=$2
lavapipe=${3:-}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$logs/work"
cd "$logs/work" || exit 1
checks=0
failures=0

# A finding of a sanitizer ends a program with 1, like a failed verification, so this sets an exit
# code that no command of vkrope has.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99
export ASAN_OPTIONS

# Leaks are errors only without a driver. Drivers leak a little, and are unloaded before the
# sanitizer could name them in a suppression.
no_driver() { use_driver /nonexistent/no_driver.json; }
drivers_leak() {
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
}

use_driver() {
    VK_DRIVER_FILES=$1
    VK_ICD_FILENAMES=$1
    export VK_DRIVER_FILES VK_ICD_FILENAMES
}
skip() {
    [ "$failures" = 0 ] || finish
    echo "skipped after $checks checks: $*"
    exit 77
}
need_lavapipe() {
    [ -n "$lavapipe" ] || skip 'VKROPE_LAVAPIPE_ICD is empty: no software device'
    use_driver "$lavapipe"
    drivers_leak
}

wrong() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

# says PATTERN [FILE]: a line of FILE, or else of the last command's stdout, contains PATTERN, a
# pattern as in `case`: 'pass*angles' matches a line with pass and then angles.
# This file avoids calling programs, because starting one takes longer than reading a few lines.
says() {
    while IFS= read -r line || [ -n "$line" ]; do
        # shellcheck disable=SC2254 # a pattern
        case $line in *$1*) return 0 ;; esac
    done <"${2:-$logs/out}"
    return 1
}

# expect CODE PATTERN COMMAND...: checks the exit code, and that a line of stderr contains PATTERN:
# the error, an option or a field, and its value. A failing command prints nothing on stdout and one
# line "vkrope: error: ...".
expect() {
    expected=$1
    pattern=$2
    shift 2
    checks=$((checks + 1))
    code=0
    "$@" >"$logs/out" 2>"$logs/err" || code=$?
    [ "$code" = "$expected" ] || {
        wrong "exit code $code, not $expected: $*"
        cat "$logs/err"
    }
    [ -z "$pattern" ] || says "$pattern" "$logs/err" || {
        wrong "stderr has no line with '$pattern': $*"
        cat "$logs/err"
    }
    [ "$expected" != 0 ] || return 0
    errors=0
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in 'vkrope: error: '?*) errors=$((errors + 1)) ;; esac
    done <"$logs/err"
    [ "$errors" = 1 ] || wrong "not one line of error: $*"
    [ "$expected" = 1 ] || [ ! -s "$logs/out" ] || wrong "a failure wrote to stdout: $*"
}
works() { expect 0 '' "$@"; }

# Sets `present` to the names of the files in this folder and one level below.
list_files() {
    set -- * .[!.]* */*
    present=$*
}
# refuse CODE PATTERN COMMAND...: like expect, and the command does not change the list of files.
refuse() {
    list_files
    before=$present
    expect "$@"
    list_files
    [ "$present" = "$before" ] || wrong "files were left behind: $*: $before; $present"
}

# holds MESSAGE COMMAND...: the command succeeds; otherwise the test fails with MESSAGE.
holds() {
    message=$1
    shift
    checks=$((checks + 1))
    "$@" || wrong "$message"
}

# number KEY: prints the values of a key in the JSON on the last command's stdout, one per line.
number() { sed -n 's/.*"'"$1"'": \([-+.0-9e]*\),*$/\1/p' "$logs/out"; }

zeros() { head -c "$1" /dev/zero; }

# model_with FIELDS: prints a config.json with 4 query heads and 2 key heads of 64 channels.
model_with() {
    printf '{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,\n'
    printf ' "max_position_embeddings": 2048, %s}\n' "$1"
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$checks" -gt 0 ] && [ "$failures" = 0 ]
    exit
}
