#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope accuracy`: the library's own errors are within their bounds, and those of other ways are
# where their arithmetic puts them. (vkrope-conformance holds other devices to the same bits.)
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"

no_driver
refuse 3 '' "$vkrope" accuracy --svg none.svg
refuse 2 '--seq-len' "$vkrope" accuracy --seq-len 5
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
holds 'a title' says '<title>?*</title>' drawn.svg
holds 'no script, no link' sh -c '! grep -qiE "script|href|url\(" drawn.svg'
! command -v xmllint >/dev/null || holds 'well-formed' xmllint --noout drawn.svg

# As text, of a model with scaling and an attention factor, which widens the bounds.
works "$vkrope" accuracy --model "$models/qwen2.5-7b.yarn.json"
holds 'the bounds with a factor' says 'bound*6.00*4.50*3.00'
cp "$models/llama-3.1-8b.json" model.json
refuse 2 '--svg:*model.json*--model' "$vkrope" accuracy --model model.json --svg model.json
refuse 5 '--svg:*missing/p.svg' "$vkrope" accuracy --svg missing/p.svg
finish
