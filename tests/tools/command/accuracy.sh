#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope accuracy`: the picture in the tree is what every device at hand measures, byte for byte;
# the library's own errors are within their bounds, and those of other ways are where their
# arithmetic puts them.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
picture=$(cd "$(dirname "$0")/../../../shaders" && pwd)/accuracy.svg
. "$(dirname "$0")/check.sh"

no_driver
refuse 3 '' "$vkrope" accuracy --svg none.svg
refuse 2 '--seq-len requires --model' "$vkrope" accuracy --seq-len 5
need_lavapipe

# errors NAME: the errors of one way in the JSON on the last command's stdout, a line each.
errors() { tr -d ' \n' <"$logs/out" | sed 's/.*"name":"'"$1"'",[^[]*\[\([^]]*\)\].*/\1/' |
    tr ',' '\n'; }
# measured NAME OCTAVES LIMIT: OCTAVES errors, all at most LIMIT.
measured() {
    holds "$1: $2 octaves" [ "$(errors "$1" | grep -c '[0-9]')" = "$2" ]
    # shellcheck disable=SC2046 # many numbers
    holds "$1: at most $3 u" below "$3" $(errors "$1")
}
# measure ICD: draws the picture, and looks at the numbers.
measure() {
    use_driver "$1"
    rm -f drawn.svg
    works "$vkrope" accuracy --json --svg drawn.svg
    measured factored_texture 23 6
    measured computed 32 4.5
    measured direct_buffer 19 2.5
    measured odd_integers 11 4.5
    holds 'centres of patches in float32 are further off than in integers, on every side' \
        sh -c 'echo "$1 $2" | awk "{ for (i = 1; i <= 11; i++) exit_code += \$(i + 11) < 2 * \$i }
            END { exit NF != 22 || exit_code }" RS=' \
        sh "$(errors odd_integers)" "$(errors float32_centres)"
    measured float32_product 32 33554432.01 # 2 (|x0| + |x1|): the opposite of what is right
    holds 'a float32 product loses digits in proportion' \
        sh -c 'echo "$1" | awk "NR == 18 { exit !(\$1 > 3e4 && \$1 < 4e5) }"' \
        sh "$(errors float32_product)"
}
measure "$lavapipe"
holds 'the picture in the tree is the one that lavapipe measures (vkrope accuracy --svg shaders/accuracy.svg)' \
    cmp "$picture" drawn.svg
holds 'no script, no link, no number that is none' \
    sh -c '! grep -qiE "script|href|url\(|nan|inf[^o_]" drawn.svg'
if command -v xmllint >/dev/null; then
    holds 'well-formed' xmllint --noout drawn.svg
fi

# As text, of a model with scaling and an attention factor.
works "$vkrope" accuracy --model "$models/qwen2.5-7b.yarn.json"
holds 'a row an octave, and none of patches' \
    [ "$(grep -cE '^ *[0-9]+  +[-0-9]' "$logs/out")" = 32 ]
holds 'the bounds with a factor' grep -qE '^ +bound +6.00 +4.50 +3.00 ' "$logs/out"
holds 'at most 120 columns' awk 'length > 120 { exit 1 }' "$logs/out"
cp "$models/llama-3.1-8b.json" model.json
refuse 2 'is the file of --model' "$vkrope" accuracy --model model.json --svg model.json
refuse 5 "--svg: 'missing/p.svg' cannot be written" "$vkrope" accuracy --svg missing/p.svg

[ -n "$swiftshader" ] || skip 'VKROPE_SWIFTSHADER_ICD is empty: no second device'
measure "$swiftshader"
holds 'and the one that SwiftShader measures' cmp "$picture" drawn.svg
finish
