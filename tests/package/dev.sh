#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests ./dev without a network, on a slow machine, and in a path that shells, CMake and Ninja could
# misread. The programs that ./dev calls are stubs, so nothing is installed or built here.
# shellcheck disable=SC2016 # text for other shells
set -u
(. /etc/os-release && echo "$ID $VERSION_ID") 2>/dev/null | grep -qE '^debian (12|13)$' || {
    echo 'package_dev: skipped: this is neither Debian 12 nor 13'
    exit 77
}
rm -rf "$SCRATCH" && mkdir -p "$SCRATCH/bin" "$SCRATCH/a \$b 'c'" || exit 1
cd "$SCRATCH/a \$b 'c'" || exit 1
# take_dev FOLDER: copies the entry script and the scripts that it sources.
take_dev() {
    mkdir -p "$1/host/packaging" "$1/bench" && cp "$SOURCE/dev" "$1" &&
        cp -r "$SOURCE/host/dev" "$1/host" &&
        cp "$SOURCE"/host/packaging/*.sh "$1/host/packaging"
}
take_dev . || exit 1
failed=0
wrong() { echo "FAILED: $*" && failed=1; }

stub() {
    { echo '#!/bin/sh' && cat; } >"$SCRATCH/bin/$1"
    chmod +x "$SCRATCH/bin/$1"
}
echo 'echo "apt-get $*" >>"$CALLED"; echo "${APT_SAYS:-}" >&2; exit 100' | stub apt-get
echo 'shift 3; for name; do [ "$name" = "${MISSING:-}" ] || echo "installed $name"; done' |
    stub dpkg-query
echo 'echo 0' | stub id
# The groups unit and device take 1.5 times and 100 times their budgets of the quick level.
budget() { sed -n "s/^\(budgets='\)*$1 \([0-9]*\) .*/\2/p" "$SOURCE/host/dev/test.sh"; }
unit=$(($(budget unit) * 3 / 2)) device=$(($(budget device) * 100))
stub ctest <<END
echo "ctest \$*, \$VKROPE_TIME_FACTOR"
echo "unit = $unit.0 sec*proc (1 test)"
echo "device = $device.0 sec*proc (1 test)"
END
stub cmake <<'END'
case " $* " in *' -n ') echo 'no work to do' ;; esac
for folder in dev release asan clang; do mkdir -p build/$folder/CMakeFiles; done
END
PATH=$SCRATCH/bin:$PATH
CALLED=$SCRATCH/called
export PATH CALLED
unset CXX VULKAN_SDK VKROPE_TIME_FACTOR MISSING APT_SAYS

# says CODE TEXT COMMAND...: checks that ./dev COMMAND... returns CODE and prints TEXT.
says() {
    expected=$1
    text=$2
    shift 2
    code=0
    ./dev "$@" >"$SCRATCH/log" 2>&1 || code=$?
    [ "$code" = "$expected" ] ||
        wrong "./dev $* returned $code, not $expected: $(cat "$SCRATCH/log")"
    grep -qF -e "$text" "$SCRATCH/log" ||
        wrong "./dev $* does not say '$text': $(cat "$SCRATCH/log")"
}
tool() {
    mkdir -p "build/$1/bin"
    printf '#!/bin/sh\n%s\n' "$3" >"build/$1/bin/$2"
    chmod +x "build/$1/bin/$2"
}

# ./dev must refuse paths in which a build cannot work before it makes any file.
here=$PWD
for character in '"' '#' ';' '<' '>' '[' ']' '\' ':'; do
    mkdir "$SCRATCH/a${character}b" && take_dev "$SCRATCH/a${character}b" &&
        cd "$SCRATCH/a${character}b" || exit 1
    says 1 'cannot handle a path with one of' build
    [ ! -e build ] || wrong 'a refused ./dev build leaves a folder build'
    cd "$here" || exit 1
done

# Without a network missing packages cannot be installed, and the message must say so.
mkdir -p build/deps
export APT_SAYS="Err:1 Temporary failure resolving 'mirror.invalid'" MISSING=libfmt-dev
for command in run test build 'install prefix' bench conform; do
    # shellcheck disable=SC2086 # words of a command line
    says 1 'apt-get could not install libfmt-dev, because there is no network' $command
done
# The form to copy and the crates need neither that package nor a build.
for name in amalgamate crate; do
    echo ':' >host/packaging/$name.sh
    says 0 'written: ' $name folder
    [ ! -e build/release ] || wrong "./dev $name configures a build"
done
APT_SAYS='E: Unable to locate package libfmt-dev'
says 1 'apt-get could not install libfmt-dev' run
! grep -q 'no network' "$SCRATCH/log" || wrong 'another failure of apt-get is blamed on the network'
unset MISSING
APT_SAYS="Could not resolve 'mirror.invalid'"
if (. /etc/os-release && [ "$VERSION_ID" = 12 ]); then
    says 1 "apt's sources name no Debian mirror, because there is no network" 'install' prefix
fi
[ ! -e prefix ] || wrong 'a failed ./dev install leaves a prefix'

# With all packages installed, ./dev must work without a network.
mkdir -p build/deps/vma build/deps/swiftshader build/deps/debian13 build/deps/arm64/usr/bin
: >build/deps/swiftshader/mock_icd.json
: >build/deps/arm64/usr/bin/env
: >"$CALLED"
tool dev vkrope 'echo "vkrope $1"'
tool dev vkrope_pace 'echo 2.5'
says 0 'vkrope rotate' run
says 0 'installed: ' install prefix
says 0 'built: ' build
says 1 "'plan9' is not a system for which there is a kit" bundle --for plan9
mkdir -p tests/python && echo 'import sys; print("cases of", sys.argv[1:])' >tests/python/cases.py
says 0 "cases of ['here', '--json']" cases here --json

# A violation must fail ./dev check. Git must not find the checkout around this folder.
GIT_CEILING_DIRECTORIES=$(dirname "$(pwd -P)")
export GIT_CEILING_DIRECTORIES
mkdir -p tests/package/check &&
    echo 'echo "checked $1"' >tests/package/check/check.sh && : >bench/pages.sh &&
    : >tests/package/check/budgets.sh || exit 1
says 0 "checked $PWD" check
echo 'exit 1' >tests/package/check/budgets.sh
says 1 "checked $PWD" check

# A release is what git has of a commit. Its archives have the time of the commit, so a second run
# makes the same bytes. The stubs below write what programs would.
says 1 'this folder is no clone' release out
git init -q . && mkdir -p host/include/vkrope host/python && echo build >.gitignore &&
    cp "$SOURCE/host/include/vkrope/version.h" host/include/vkrope && : >LICENSE &&
    printf '%s\n' 'mkdir -p "$2"; echo 1 | tee "$2/vkrope.h" "$2/vkrope.hpp" >"$2/vkrope.cpp"' \
        >host/packaging/amalgamate.sh &&
    echo 'echo $SOURCE_DATE_EPOCH >"$2/vkrope-1.whl"' >host/python/wheel.sh &&
    echo 'bundle() { echo kit | tee build/vkrope-kit-1.zip >build/vkrope-kit-1.tar.gz; }' \
        >host/dev/bundle.sh || exit 1
echo 'for folder; do :; done; echo package >"$folder/vkrope_1.deb"' | stub cpack
version=$(sed -n 's/^#define VKROPE_VERSION_[A-Z]* \([0-9]*\).*/\1/p' \
    host/include/vkrope/version.h | paste -sd . -)
printf '## %s\n' 'NEXT (unreleased)' "$version (today)" 0.0.1 |
    sed 's/## \(.*\)/&\n\nnews of \1/' >CHANGELOG.md
says 1 'commit or remove these files first' release out
commit() {
    git add -A && GIT_COMMITTER_DATE='2001-02-03T04:05:06Z' git -c user.name=n -c user.email=e \
        commit -q --allow-empty -m all
}
commit || wrong 'git cannot commit'
says 0 "no tag v$version" release out
(cd out && sha256sum -c --quiet SHA256SUMS) || wrong 'SHA256SUMS is wrong'
copy=vkrope-copy-$version
[ "$(tar -tzf "out/$copy.tar.gz" | sort | paste -sd ' ' -)" = \
    "$copy/ $copy/LICENSE $copy/vkrope.cpp $copy/vkrope.h $copy/vkrope.hpp" ] ||
    wrong "the archive of the form to copy: $(tar -tzf "out/$copy.tar.gz")"
git ls-files >"$SCRATCH/tracked"
tar -tzf "out/vkrope-$version.tar.gz" | sed -n "s|^vkrope-$version/\(.*[^/]\)\$|\1|p" |
    LC_ALL=C sort | cmp - "$SCRATCH/tracked" || wrong 'the source archive has other files than git'
[ "$(TZ=UTC tar -tvzf "out/$copy.tar.gz" | grep -vc '2001-02-03 04:05')" = 0 ] &&
    grep -qx "$(git log -1 --format=%ct)" out/vkrope-1.whl ||
    wrong 'the time is not that of the commit'
[ "$(grep '^news' out/notes.md)" = "news of $version (today)" ] ||
    wrong "the notes have: $(grep '^news' out/notes.md)"
for file in out/*; do
    case $file in
        */notes.md | */SHA256SUMS) ;;
        *) grep -q "^| ${file#*/} | [0-9]* | [^ ]" out/notes.md ||
            wrong "the notes do not say what $file is" ;;
    esac
done
says 1 'out is not empty' release out
mv out "$SCRATCH/first" && touch -d 2020-01-01 LICENSE && git tag "v$version" || exit 1
says 0 'the release is in' release out
! grep -q 'no tag' "$SCRATCH/log" || wrong 'a commit with the tag is called a trial'
diff -r out "$SCRATCH/first" || wrong 'a second release has other bytes'

# A slow machine has longer time limits, and a group that exceeds its budget only because of that is
# named but does not fail. The stub of ctest prints its arguments.
limit=$(sed -n 's/^time_limit=//p' host/dev/test.sh)
limit_prove=$(sed -n 's/^time_limit_prove=//p' host/dev/test.sh)
says 0 'took 2.5 times' test
for text in "--timeout $((3 * limit)) -C quick, 3" 'slow machine' 'over budget'; do
    grep -qF -e "$text" "$SCRATCH/log" ||
        wrong "./dev test does not say '$text': $(cat "$SCRATCH/log")"
done
grep -q '^unit  *[0-9.]*  *[0-9]*  *slow' "$SCRATCH/log" || wrong 'the group unit is not slow'
grep -q '^device  *[0-9.]*  *[0-9]*  *over' "$SCRATCH/log" || wrong 'the group device is not over'
! grep -q '^bench ' "$SCRATCH/log" || wrong './dev test names a group that it does not run'
says 0 "--timeout $((3 * limit)) -C thorough" test --thorough
says 0 "--timeout $((3 * limit)) -C all" test --all
says 0 "--timeout $((3 * limit_prove)) -C prove -L ^prove_floats\$" prove floats
says 1 'no part' prove everything
says 0 floats prove
tool dev vkrope_pace 'echo 0.7'
says 0 "--timeout $limit -C quick, 1" test
! grep -q 'slow machine' "$SCRATCH/log" || wrong 'a fast machine is called slow'
# The argument selects a group by its name, or tests by their names.
says 0 '-C all -L ^unit$, 1' test unit
says 0 '-C prove -R conformance_random.lavapipe, 1' test conformance_random.lavapipe
says 2 '' test --some
[ ! -s "$CALLED" ] || wrong "apt-get was called: $(cat "$CALLED")"

# A long build says every minute how far it is; here a minute takes no time. The stub of cmake waits
# until that has been said.
mv "$SCRATCH/bin/cmake" "$SCRATCH/cmake"
stub sleep </dev/null
stub cmake <<'END'
case " $* " in
    *' --build '*' -n ') ;;
    *' --build '*)
        echo '[3/12] a step'
        for try in 1 2 3 4 5 6 7 8 9; do grep -q steps "$SCRATCH/log" || /bin/sleep 1; done
        ;;
esac
END
export SCRATCH
says 0 'dev: 3 of 12 steps, about ' build
mv "$SCRATCH/cmake" "$SCRATCH/bin/cmake" && rm "$SCRATCH/bin/sleep"

# An interrupted run must leave no process.
printf 'sleep 321 & echo $! >"%s/sleeps"; wait\n' "$SCRATCH" | stub ctest
./dev test >"$SCRATCH/log" 2>&1 &
for second in 1 2 3 4 5 6 7 8 9 10; do
    [ ! -s "$SCRATCH/sleeps" ] || break
    sleep "$second"
done
kill $! && wait $!
read -r sleeps <"$SCRATCH/sleeps" || wrong "./dev test ran no test: $(cat "$SCRATCH/log")"
for second in 1 2 3; do
    ! kill -0 "$sleeps" 2>/dev/null || sleep "$second"
done
! kill "$sleeps" 2>/dev/null || wrong 'an interrupted ./dev test leaves a process'
exit $failed
