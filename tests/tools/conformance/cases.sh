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
