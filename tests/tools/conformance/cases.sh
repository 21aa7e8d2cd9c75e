# SPDX-License-Identifier: MIT
# Runs a folder of cases and examines the report. The tests in this folder source this file. Their
# arguments: the command vkrope-conformance, the folder of our own cases, and the driver manifests
# of lavapipe and of SwiftShader.
# shellcheck shell=sh
. "$(dirname "$0")/../command/check.sh"
tool=$vkrope
own=$models
need_lavapipe
# Makes lavapipe optimise less, because compiling takes most of the time of these tests.
GALLIVM_PERF=nopt LP_NATIVE_VECTOR_WIDTH=128
export GALLIVM_PERF LP_NATIVE_VECTOR_WIDTH

# runs CODE OPTION...: expects this exit code; the report is in $logs/report.json.
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

# verdicts: prints a line for each case of the report: id, tab, status, tab, reason.
verdicts() {
    awk '/^ *"(id|status|reason)": / {
        key = $1
        sub(/^ *"[a-z]*": "/, "")
        sub(/",?$/, "")
        if (key ~ /id/) id = $0
        else if (key ~ /status/) status = $0
        else print id "\t" status "\t" $0
    }' "$logs/report.json"
}

# reports STATUS PATTERN: expects a case of this status whose reason contains PATTERN.
reports() {
    checks=$((checks + 1))
    verdicts >"$logs/verdicts"
    says "	$1	*$2" "$logs/verdicts" || {
        wrong "no case is '$1' because of '$2'"
        cat "$logs/verdicts"
    }
}

# own_case NAME FOLDER: copies one of our cases to FOLDER.
own_case() {
    rm -rf "$2"
    mkdir -p "$2"
    cp --no-preserve=mode "$own/$1"/* "$2"
}

# Starting the tool takes longer than running a case, so one run takes many cases.
# tries STATUS PATTERN [NAME]: sets `folder` to a copy of one of our cases, to be changed. `tried`
# then expects this status, with a reason that contains PATTERN.
count=0
tries() {
    count=$((count + 1))
    folder=cases/$count
    mkdir -p $folder
    cp --no-preserve=mode "$own/${3:-half_f32_bshd}"/* $folder
    sed -i 's|"id": "[^"]*"|"id": "'$count'"|' $folder/case.json
    printf '%s %s\n' "$1" "$2" >>"$logs/tried"
}

# tried CODE: runs the copies; expects this exit code, the status of each, and no new files.
tried() {
    find . | sort >"$logs/before"
    runs "$1" --cases cases --write-outputs "$logs/outputs"
    find . | sort >"$logs/after"
    cmp -s "$logs/before" "$logs/after" || wrong 'files appeared'
    verdicts | sort -n >"$logs/verdicts"
    number=0
    while read -r status reason; do
        number=$((number + 1))
        checks=$((checks + 1))
        id='' is='' because=''
        IFS='	' read -r id is because <&3 || :
        # shellcheck disable=SC2254 # a pattern
        case "$id $is $because" in
            "$number $status "*$reason*) ;;
            *) wrong "the case $number is not '$status' because of '$reason': $id, $is, $because" ;;
        esac
    done <"$logs/tried" 3<"$logs/verdicts"
    [ "$number" = $count ] || wrong 'a case was not looked at'
    rm -r cases "$logs/tried"
    count=0
}

# changed STATUS PATTERN SED_EXPRESSION [NAME]: expects this status of a case after this change of
# its document.
changed() {
    tries "$1" "$2" "${4:-}"
    cp $folder/case.json "$logs/unchanged"
    sed -i "$3" $folder/case.json
    ! cmp -s $folder/case.json "$logs/unchanged" || wrong "changes nothing: $3"
}
refused() { changed error "$@"; }
unsupported() { changed unsupported "$@"; }

# with_file STATUS PATTERN NAME FILE COMMAND...: expects this status of a case whose FILE has been
# replaced by the output of COMMAND.
with_file() {
    tries "$1" "$2" "$3"
    file=$4
    shift 4
    "$@" >"$logs/file"
    mv "$logs/file" "$folder/$file"
}
# array BYTES DESCR SHAPE: writes an array of zeros.
array() { zeros "$1" | npy "$2" "$3"; }
