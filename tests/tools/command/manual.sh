#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual page and the completion of bash, zsh and fish that the program prints of itself have
# each option of --help; mandoc takes the page; and each shell completes with what it is given.
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

refuse 2 '--generate*ksh' "$vkrope" --generate ksh
for kind in man bash zsh fish; do
    works "$vkrope" --generate $kind
    cp "$logs/out" "vkrope.$kind"
done

"$vkrope" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' >commands
holds 'there are commands' [ -s commands ]
while read -r command; do "$vkrope" "$command" --help; done <commands |
    sed -n 's/^  \(-.,\)*\(--[a-z0-9-]*\).*/\2/p' | sort -u >options
holds 'there are options' [ -s options ]
# offers KIND: the options on the standard input are all.
offers() {
    sort -u | comm -23 options - >missing
    holds "$1 lacks $(cat missing)" [ ! -s missing ]
}
sed 's/\\-/-/g' vkrope.man | grep -oE -e '--[a-z0-9-]+' | offers man
grep -oE -e '--[a-z0-9-]+' vkrope.bash | offers bash
grep -oE -e '--[a-z0-9-]+' vkrope.zsh | offers zsh
grep -oE -e ' -l [a-z0-9-]+' vkrope.fish | sed 's/ -l /--/' | offers fish

if have mandoc; then
    # Pages of a release have no date: builds are reproducible.
    mandoc -T lint -W warning vkrope.man 2>&1 | grep -v 'missing date' >complaints
    holds "mandoc: $(cat complaints)" [ ! -s complaints ]
fi

touch model.json
if have bash; then
    cat >ask.bash <<'END'
. ./vkrope.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { :; }
_vkrope
printf '%s\n' "${COMPREPLY[@]}"
END
    # completed EXPECTED WORD...: what bash offers in the place of the last word.
    completed() {
        wanted=$1
        shift
        found=$(bash ask.bash "$@" | sort | paste -sd ' ' -)
        holds "bash: '$*' offers '$found', not '$wanted'" [ "$found" = "$wanted" ]
    }
    completed 'rotate' vkrope ro
    completed '--layer --layer-type --layout' vkrope rotate --lay
    completed 'bhsd bshd' vkrope rotate --layout b
    completed 'model.json' vkrope rotate --verify --model mo
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
    zsh -f ask.zsh >typed 2>&1
    holds "zsh: $(cat typed)" grep -qF 'GOT<rotate --layout bhsd --q model.json>' typed
fi

if have fish; then
    HOME=$logs fish -c "source vkrope.fish; complete -C 'vkrope rotate --lay'
        complete -C 'vkrope rotate --layout b'" | cut -f 1 | sort | paste -sd ' ' - >offered
    holds "fish: $(cat offered)" [ "$(cat offered)" = '--layer --layer-type --layout bhsd bshd' ]
fi

[ -z "$left_out" ] || skip "what needs${left_out} (Debian packages of these names)"
finish
