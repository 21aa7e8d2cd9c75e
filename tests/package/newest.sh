#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs ./dev as a newcomer does in an empty Debian. In Debian 13 (trixie) it installs its packages,
# and README.md's commands must pass. In sid, whose compiler is the newest, it names the packages,
# which are installed here, and everything must build. The argument is Debian's suite.
set -u
root=$SCRATCH/root
suite=$1
# shellcheck source=tests/package/empty_debian.sh
. "$SOURCE/tests/package/empty_debian.sh"
enter_debian "$suite" "$suite"
mkdir "$root/vkrope" && tar -C "$SOURCE" --exclude=./build --exclude=./.git -cf - . |
    tar -C "$root/vkrope" --no-same-owner -xf - || exit 1

# dev ARGUMENT...: runs ./dev, and says how long it took.
dev() {
    began=$(date +%s)
    code=0
    inside sh -c 'cd /vkrope && exec ./dev "$@"' sh "$@" </dev/null 2>&1 || code=$?
    echo "$suite: ./dev $*: $(($(date +%s) - began)) s, exit code $code"
    return $code
}

if [ "$suite" = trixie ]; then
    dev run && dev test && dev build
else
    said=$(dev build) && { echo "./dev build needs no package: $said"; exit 1; }
    packages=$(echo "$said" | sed -n 's/([^)]*)//g; s/^dev: .*: //p')
    echo "./dev names these packages:" "$packages"
    # shellcheck disable=SC2086 # a word for each package
    inside DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages \
        >"$SCRATCH/apt.log" 2>&1 || { tail -n 20 "$SCRATCH/apt.log"; exit 1; }
    dev build && dev install /tmp/installed && dev bundle
fi
