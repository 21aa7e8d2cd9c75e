# SPDX-License-Identifier: MIT
# For the tests beside it, which source it: running a folder of cases and looking at the report.
# Their arguments: the command vkrope-conformance, the folder of our own cases, and the driver
# manifests of lavapipe and of SwiftShader.
# shellcheck shell=sh
. "$(dirname "$0")/../command/check.sh"
tool=$vkrope
own=$models
need_lavapipe

# runs CODE OPTION...: the exit code of the tool, whose report is in $logs/report.json.
runs() {
    expected=$1
    shift
    checks=$((checks + 1))
    code=0
    "$tool" --no-builtin --json "$logs/report.json" "$@" >"$logs/out" 2>"$logs/err" || code=$?
    if [ "$code" != "$expected" ]; then
        wrong "exit code $code, not $expected: $*"
        cat "$logs/err"
    fi
    [ "$expected" = 0 ] || [ "$(grep -c '^vkrope: error: .' "$logs/err")" = 1 ] ||
        wrong "not one line of error: $*"
}

# reports STATUS TEXT: a case of this status whose reason has TEXT.
reports() {
    checks=$((checks + 1))
    grep -A2 -F "\"status\": \"$1\"" "$logs/report.json" | grep -qF -e "$2" || {
        wrong "no case is '$1' because of '$2'"
        cat "$logs/report.json"
    }
}

# own_case NAME FOLDER: a copy of one of our cases.
own_case() {
    rm -rf "$2"
    mkdir -p "$(dirname "$2")"
    cp -r "$own/$1" "$2"
    chmod -R u+w "$2"
}

# changed STATUS CODE TEXT SED_EXPRESSION [NAME]: what becomes of a case with this change in its
# document.
changed() {
    own_case "${5:-half_f32_bshd}" case
    sed -i "$4" case/case.json
    ! cmp -s case/case.json "$own/${5:-half_f32_bshd}/case.json" || wrong "changes nothing: $4"
    find . | sort >"$logs/before"
    runs "$2" --cases case --write-outputs "$logs/outputs"
    reports "$1" "$3"
    find . | sort >"$logs/after"
    cmp -s "$logs/before" "$logs/after" || wrong "files appeared: $4"
}
refused() { changed error 5 "$@"; }
unsupported() { changed unsupported 1 "$@"; }

# with_file STATUS CODE TEXT NAME FILE COMMAND...: what becomes of a case one of whose files is
# what COMMAND writes.
with_file() {
    status=$1 code=$2 text=$3 name=$4 file=$5
    shift 5
    own_case "$name" case
    "$@" >"$logs/file"
    mv "$logs/file" "case/$file"
    runs "$code" --cases case
    reports "$status" "$text"
}
# array BYTES DESCR SHAPE: zeros.
array() { zeros "$1" | npy "$2" "$3"; }
