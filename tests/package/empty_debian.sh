# SPDX-License-Identifier: MIT
# Functions for tests in an empty Debian, which debootstrap makes. Scripts source this file.
# shellcheck shell=sh disable=SC2154 # `root`, the folder of that Debian, is the script's variable

# Prints why this machine can make no empty Debian; prints nothing if it can.
why_no_debian() {
    if [ "$(id -u)" != 0 ]; then
        echo 'only root can make a chroot'
    elif ! command -v debootstrap >/dev/null; then
        echo 'there is no debootstrap'
    fi
}

# in_namespace COMMAND...: runs the command in a namespace of its own, with which its mounts end.
in_namespace() { VKROPE_NAMESPACE=made unshare --mount --propagation private "$@"; }

# make_debian SUITE [ARGUMENT...]: makes the system, with debootstrap's arguments.
make_debian() {
    suite=$1
    shift
    # shellcheck disable=SC2016 # the variable is apt's
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' | head -n 1)
    mkdir -p "$root"
    debootstrap --variant=minbase "$@" "$suite" "$root" "$mirror" >"$root.log" 2>&1
}

# Mounts what programs need. The devices are nodes of the system's own.
mount_debian() {
    mount -t tmpfs none "$root/dev"
    mknod -m 666 "$root/dev/null" c 1 3
    mknod -m 666 "$root/dev/zero" c 1 5
    mknod -m 666 "$root/dev/full" c 1 7
    mknod -m 666 "$root/dev/urandom" c 1 9
    mkdir "$root/dev/shm"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t proc none "$root/proc"
}

# enter_debian SUITE ARGUMENT...: makes the system in $root, below $SCRATCH, mounts it, and returns
# in a namespace of its own. The script that calls this runs a second time there, with these
# arguments; its first run ends here, when that one has ended, and removes $SCRATCH. Skips the test
# by name where there is no such system.
enter_debian() {
    suite=$1
    shift
    skip() { echo "skipped: $*" && exit 77; }
    reason=$(why_no_debian)
    [ -z "$reason" ] || skip "$reason"
    if [ -z "${VKROPE_NAMESPACE:-}" ]; then
        rm -rf --one-file-system "$SCRATCH" && mkdir -p "$SCRATCH" || exit 1
        code=0
        in_namespace sh "$0" "$@" || code=$?
        rm -rf --one-file-system "$SCRATCH" || code=1
        exit $code
    fi
    make_debian "$suite" ||
        skip "debootstrap could not make Debian $suite: $(tail -n 1 "$root.log")"
    mount_debian || exit 1
}

# inside VARIABLE=VALUE... COMMAND...: runs the command in the system, with only these variables,
# PATH and HOME.
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
