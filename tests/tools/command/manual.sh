#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual page and the completion of bash, zsh and fish that the program prints of itself: the
# page is well-formed and complete, and each shell offers what --help offers.
# shellcheck disable=SC2016 # expressions for another shell
. "$(dirname "$0")/check.sh"
no_driver

left_out=
# have PROGRAM: whether it is installed; what is not is named in the end.
have() {
    command -v "$1" >/dev/null || {
        left_out="$left_out $1"
        return 1
    }
}

refuse 2 "'ksh' is not valid; the values are man|bash|zsh|fish" "$vkrope" --generate ksh
for kind in man bash zsh fish; do
    works "$vkrope" --generate $kind
    cp "$logs/out" "vkrope.$kind"
    holds "$kind: nothing on stderr" [ ! -s "$logs/err" ]
done

# Each option of --help is in each of them.
for command in devices frequencies explain positions rotate finish check permute accuracy \
    make-input dequantise spirv; do
    "$vkrope" $command --help | sed -n 's/^  .*\(--[a-z0-9-]*\).*/\1/p' | sort -u >options
    holds "$command has options" [ "$(wc -l <options)" -gt 1 ]
    while read -r option; do
        holds "man: $command $option" grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" vkrope.man
        holds "bash: $option" grep -qF -- "$option" vkrope.bash
        holds "zsh: $option" grep -qF -- "$option" vkrope.zsh
        holds "fish: $option" grep -qE -- " -l ${option#--}( |\$)" vkrope.fish
    done <options
done

if have mandoc; then
    mandoc -Tlint -Wwarning vkrope.man >lint 2>&1
    # Pages of a release have no date: builds are reproducible.
    grep -v 'missing date' lint >complaints
    holds "the manual page: $(cat complaints)" [ ! -s complaints ]
    mandoc -Tascii vkrope.man | sed 's/.\x08//g' >page
    holds 'the page has a command of two parts' grep -q '^   make-input$' page
    holds 'the page has an option with its words' grep -q -- '--layout bshd|bhsd|sbhd|thd' page
    holds 'the page has the exit codes' grep -q '4 device lost' page
fi

if have bash; then
    cat >ask.bash <<'END'
. ./vkrope.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { :; }
_vkrope
printf '%s\n' "${COMPREPLY[@]}"
END
    # offers EXPECTED WORD...: what bash offers in the place of the last word.
    offers() {
        expected=$1
        shift
        found=$(bash ask.bash "$@" | sort | paste -sd ' ' -)
        holds "bash: '$*' offers '$found', not '$expected'" [ "$found" = "$expected" ]
    }
    touch model.json
    offers 'rotate' vkrope ro
    offers '--layer --layer-type --layout' vkrope rotate --lay
    offers 'bhsd bshd' vkrope rotate --layout b
    offers 'model.json' vkrope rotate --verify --model mo
    offers '' vkrope rotate --seq-len ''
    offers '--version' vkrope --ver
fi

if have zsh; then
    # A terminal of its own, in which a function shows what was typed and completed.
    cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty -b shell zsh -f -i
line() { zpty -w shell "$1" }
line 'PS1='
line 'autoload -U compinit && compinit -u -D && source ./vkrope.zsh'
line 'vkrope() { print -r -- "G""OT<$*>" }' # not what its own echo shows
zpty -w -n shell $'vkrope rotate --layo\t bh\t --q mod\t\n'
for i in {1..100}; do
    sleep 0.1
    while zpty -r -t shell text; do all+=$text; done
    [[ $all != *GOT\<* ]] || break
done
zpty -d shell
print -r -- "$all"
END
    zsh -n vkrope.zsh || wrong 'zsh: the completion is not a program of zsh'
    touch model.json
    zsh -f ask.zsh >typed 2>&1
    holds "zsh: $(cat typed)" grep -qF 'GOT<rotate --layout bhsd --q model.json>' typed
fi

if have fish; then
    # offered LINE: what fish offers at its end.
    offered() {
        HOME=$logs fish -c "source vkrope.fish; complete -C '$1'" | cut -f 1 | sort |
            paste -sd ' ' -
    }
    holds 'fish: a command' [ "$(offered 'vkrope ro')" = rotate ]
    holds 'fish: options' \
        [ "$(offered 'vkrope rotate --lay')" = '--layer --layer-type --layout' ]
    holds 'fish: words' [ "$(offered 'vkrope rotate --layout b')" = 'bhsd bshd' ]
fi

[ -z "$left_out" ] || skip "what needs${left_out} (Debian packages of these names)"
finish
