#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that outputs appear complete and together, or not at all.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"

model_with '"rope_theta": 10000.0' >model.json
works "$vkrope" make-input --shape 1,300,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,300,4,64 --seed 2 --out k.npy
works "$vkrope" make-input --shape 1,300,4,64 --seed 3 --out v.npy
cp q.npy q_before.npy
out_q() { "$vkrope" rotate --model model.json --q q.npy --out-q "$1"; }
out_all() {
    "$vkrope" rotate --model model.json --q q.npy --k k.npy --v v.npy --out-q "$1" --out-k "$2" \
        --out-v "$3"
}
out_both() { "$vkrope" rotate --model model.json --q q.npy --k k.npy --out-q "$1" --out-k "$2"; }

# make-input gives the same bytes on every machine and in every version; each seed gives others.
works "$vkrope" make-input --shape 1,300,4,64 --seed 1 --out again.npy
holds 'one seed, one file' cmp -s q.npy again.npy
holds 'two seeds, two files' sh -c '! cmp -s q.npy k.npy'
for known in f32:1472225240:384 f16:255443304:256 bf16:1509441208:256; do
    works "$vkrope" make-input --shape 64 --seed 7 --dtype "${known%%:*}" --out known.npy
    holds "the bytes of seed 7: $known, $(cksum <known.npy)" [ "$(cksum <known.npy)" = \
        "$(echo "${known#*:}" | tr : ' ')" ]
done

# Paths that cannot be written.
refuse 2 '--out-q:*empty' out_both '' k_out.npy
refuse 2 '--out:' "$vkrope" make-input --shape 1 --out ''
mkdir folder
mkfifo pipe
ln -s nowhere.npy dangling.npy
for path in missing/out.npy q.npy/out.npy . folder/ missing/ /dev/null pipe dangling.npy \
    "$(printf '%0300d' 0)"; do
    refuse 5 "--out-q:*$path" out_q "$path"
done
if [ "$(id -u)" != 0 ]; then # root can write everywhere
    : >read_only.npy && chmod a-w read_only.npy folder
    refuse 5 '--out-q:*read_only.npy' out_q read_only.npy
    refuse 5 '--out-q:*folder/out.npy' out_q folder/out.npy
    chmod u+w folder
fi

# An output that is an input or another output, by any name.
ln -s q.npy link.npy
ln q.npy hard.npy
ln -s . here
for path in q.npy "$PWD/q.npy" folder/../q.npy link.npy hard.npy here/q.npy; do
    refuse 2 '--out-q:*--q' out_q "$path"
done
refuse 2 '--out-k:*--q' out_both out.npy ./q.npy
refuse 2 '--out-q:*--k' out_both k.npy out.npy
refuse 2 '--out-q:*--model' out_q model.json
: >old.npy
ln -s old.npy old_link.npy
refuse 2 '--out-q' out_both out.npy here/out.npy
refuse 2 '--out-q' out_both old.npy old_link.npy
refuse 2 '--out-q:*--v' out_all v.npy k_out.npy v_out.npy
refuse 2 '--out-v:*--q' out_all q_out.npy k_out.npy q.npy
refuse 2 '--out-v:*--v' out_all q_out.npy k_out.npy v.npy
refuse 2 '/old.npy*--out-q' out_all old.npy k_out.npy old_link.npy
refuse 2 '/out.npy*--out-k' out_all q_out.npy out.npy ./out.npy
holds 'inputs are untouched' cmp -s q.npy q_before.npy

# An error in the third output is found as early, and leaves no file of the others.
refuse 2 '--out-v:*empty' out_all q_out.npy k_out.npy ''
refuse 5 '--out-v:*missing/out.npy' out_all q_out.npy k_out.npy missing/out.npy

# A full disk, simulated by a limit on file sizes, in blocks of 512 bytes. Each tensor has 300 KiB.
limited() { sh -c 'ulimit -f 200; exec "$@"' sh "$@"; }
echo 'old content' >old.npy
for path in out.npy old.npy; do
    refuse 5 "--out:*$path" limited "$vkrope" make-input --shape 1,300,4,64 --out $path
done
holds 'what an output would replace stays' grep -qx 'old content' old.npy

# A shape of rows of 1 KiB, for which the disk has no room; at most 1 TiB can be made.
rows=$(($(df -Pk . | awk 'END { print $4 }') + 1000000))
[ $rows -ge 1000000000 ] || refuse 5 '--out:*/out.npy*bytes*are free' limited "$vkrope" make-input \
    --shape $rows,256 --out out.npy

# A failed verification or run leaves nothing either.
no_driver
refuse 3 '' out_both out_q.npy out_k.npy

need_lavapipe
# The first output fits, but appears only with the second.
works "$vkrope" make-input --shape 1,300,1,64 --out small.npy
refuse 5 '--out-k:*out_k.npy' limited "$vkrope" rotate --model model.json --q small.npy --k k.npy \
    --out-q old.npy --out-k out_k.npy
holds 'what an output would replace stays' grep -qx 'old content' old.npy
umask 027
works out_both old_link.npy new.npy
holds 'a link stays a link' [ -h old_link.npy ]
holds 'and its file is replaced' [ "$(wc -c <old.npy)" = "$(wc -c <q.npy)" ]
holds 'the mode of a new file' [ "$(find new.npy -perm 640)" = new.npy ]
chmod 604 old.npy
works out_both old_link.npy new.npy
holds 'the mode of the old file' [ "$(find old.npy -perm 604)" = old.npy ]
works out_all q_out.npy old_link.npy v_out.npy
holds 'V is there' cmp v.npy v_out.npy
holds 'no temporary file of three is left' [ -z "$(find . -name '.vkrope-*')" ]
if [ "$(id -u)" = 0 ]; then # another user may write the file, but not replace it in this folder
    chmod 755 . "$logs" && chmod 644 q.npy model.json && chmod 666 old.npy && cp "$vkrope" vkrope
    refuse 5 '--out-q:*old.npy' setpriv --reuid 4321 --regid 4321 --clear-groups ./vkrope rotate \
        --model model.json --q q.npy --out-q old.npy
    # A user outside the old group: the rights of that group are not for another one.
    mkdir theirs && echo old >theirs/old.npy && chown -R 4321:5678 theirs &&
        chmod 640 theirs/old.npy
    works setpriv --reuid 4321 --regid 4321 --clear-groups ./vkrope make-input --shape 1 \
        --out theirs/old.npy
    holds 'another group has no rights' [ "$(find theirs/old.npy -gid 4321 -perm 600)" ]
    chgrp 5678 theirs/old.npy && chmod 640 theirs/old.npy
    works ./vkrope make-input --shape 1 --out theirs/old.npy
    holds 'group and mode of the old file' [ "$(find theirs/old.npy -gid 5678 -perm 640)" ]
fi
"$vkrope" rotate --model model.json --q q.npy --out-q closed.npy >&- 2>"$logs/err"
holds 'a closed stdout is found before anything is written' [ $? = 5 ] &&
    holds 'no output' [ ! -e closed.npy ]
finish
