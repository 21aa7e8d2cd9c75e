#!/bin/sh
# SPDX-License-Identifier: MIT
# The built-in suite as a command: what there is, what a report says, what a failure prints, one table of several reports.
# Arguments: those of cases.sh, then the tool with seeded faults.
seeded=$5
. "$(dirname "$0")/cases.sh"

# has FILE TEXT...: each of the texts is in FILE.
has() {
    file=$1
    shift
    for text in "$@"; do
        checks=$((checks + 1))
        grep -qF -e "$text" "$file" || {
            wrong "no '$text' in $(basename "$file")"
            cat "$file"
        }
    done
}

# What there is: every group, more of it in full, and ids once each.
works "$tool" --list
cp "$logs/out" quick
works "$tool" --list --level full
cp "$logs/out" full
for group in arithmetic pairings elements layouts positions axes angles limits in_place replays algebra same_bits; do
    [ "$(grep -c "^$group/" quick)" -ge 8 ] || wrong "the group $group has fewer than 8 checks"
done
[ -z "$(sort full | uniq -d)" ] || wrong 'an id is there twice'
[ "$(wc -l <full)" -gt "$(wc -l <quick)" ] || wrong 'full has no more than quick'
while read -r id; do grep -qxF -e "$id" full || wrong "$id is not in full"; done <quick
works "$tool" --list --filter 'algebra/*'
[ "$(grep -c '^algebra/' "$logs/out")" = "$(wc -l <"$logs/out")" ] || wrong '--filter lets others through'
expect 2 '--filter' "$tool" --filter 'algebra'

# A report.
works "$tool" --filter 'algebra/composition_*_computed' --json report.json
has report.json '"version": ' '"level": "quick"' '"driver": ' '"api_version": ' '"limits": ' '"storage_buffer_range": ' '"subgroup_size": ' \
    '"subnormals": ' '"rounding": "to nearest even"' '"specials": "kept"' '"f16": ' '"nan": ' '"tools": ' '"max_u": ' '"max_ulp": ' '"seconds": ' '"status": "pass"' \
    '"verdict": "not judged"' '"verdict_reason": "only a part of the suite ran"'
for word in "$(hostname)" "$(id -un)" "$HOME" "$PWD" "$tool" uuid; do
    ! grep -qiF -e "\"$word" report.json || wrong "the report holds '$word'"
    [ "${#word}" -lt 6 ] || ! grep -qiF -e "$word" report.json || wrong "the report holds '$word'"
done
works "$tool" --filter 'algebra/norm_*_computed' --with-uuid --json with_uuid.json
grep -q '"uuid": "[0-9a-f]\{32\}"' with_uuid.json || wrong '--with-uuid names none'
has "$logs/err" 'algebra ' '2 pass' 'subnormals of f32' 'rounding of f32' 'specials of f32' 'f16 it converts' 'verdict'

# What is unsupported is no failure, and no pass either.
expect 0 'unsup.' "$seeded" --level full --filter 'seeded/[gr]*'
has "$logs/out" 'unsupported  seeded/refusal  seeded: a refusal'
expect 1 '' "$seeded" --level full --filter seeded/refusal

# A tool between us and the driver that alters features: nothing is conformant then.
works "$seeded" --filter seeded/good --validation --json validation.json
has validation.json '"alters_features": true' '"verdict": "not judged"'
works "$tool" --validation --filter 'positions/*'

# A failure, and the command that repeats it.
expect 1 'of 2 checks, 1 pass, 1 fail' "$seeded" --json fault.json
has fault.json '"verdict": "not conformant"' '"verdict_reason": "1 of 2 checks failed"' 'seeded: other frequencies give other bits'
has "$logs/err" 'note: to repeat it: vkrope-conformance --filter seeded/fault' '1 pass, 1 FAIL'
expect 1 '' "$seeded" --level full --device llvmpipe
has "$logs/err" "to repeat it: vkrope-conformance --device llvmpipe --level full --filter 'seeded/fault of full'" \
    'the check looked at nothing' '1 pass, 3 FAIL, 1 unsup., 1 ERROR'
expect 1 'seeded/fault of full' "$seeded" --device llvmpipe --level full --filter 'seeded/fault of full'

# One table.
works "$tool" --table report.json with_uuid.json --missing 'SwiftShader=not here' --missing 'a=b=c'
has "$logs/out" '  1  llvmpipe' '  2  llvmpipe' '  -  SwiftShader: not run: not here' '  -  a: not run: b=c' 'algebra ' '  2  not judged: '
expect 1 'a device has failed' "$tool" --table report.json fault.json
has "$logs/out" '  2  not conformant: 1 of 2 checks failed' 'seeded faults '
works "$tool" --missing 'SwiftShader=not here'
expect 2 'NAME=REASON' "$tool" --table report.json --missing SwiftShader
expect 5 'cannot be read' "$tool" --table none.json
for text in '' '{' '{"devices": 3}' '{"devices": [{"name": "x"}]}' '[]'; do
    printf '%s' "$text" >broken.json
    expect 5 'is no report' "$tool" --table broken.json
done
finish
