#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the kit, unpacked from its archive, in an empty Debian that has only lavapipe. With a driver
# that crashes, one that hangs and one that is right, ./report must end within its limits with one
# report whose page shows all three. Then tests the kit without a Vulkan loader, and with a glibc
# that is too old. The arguments are the archive, the folder of the bad drivers, Debian's suite, the
# folder for that Debian, whether a missing tool is a failure, and arguments for ./report.
set -u
archive=$1
drivers=$2
suite=$3
root=$4
complete=$5
shift 5
failed=0
wrong() { echo "FAILED: $*" && failed=1; }
skip() {
    [ "$complete" != ON ] || { wrong "$*" && exit 1; }
    echo "package_kit: skipped: $*" && exit 77
}
[ -e "$archive" ] || skip "there is no $archive: ./dev bundle makes it"
# shellcheck source=tests/package/empty_debian.sh
. "$(dirname "$0")/empty_debian.sh"
reason=$(why_no_debian)
[ -z "$reason" ] || skip "$reason"
if [ -z "${VKROPE_NAMESPACE:-}" ]; then
    in_namespace sh "$0" "$archive" "$drivers" "$suite" "$root" "$complete" "$@"
    exit
fi
if [ ! -e "$root/complete" ]; then
    make_debian "$suite" --include=mesa-vulkan-drivers ||
        skip "debootstrap could not make Debian $suite (see $root.log)"
    touch "$root/complete"
fi
mount_debian
mount -t tmpfs none "$root/mnt"
tar -xzf "$archive" -C "$root/mnt"
kit=/mnt/$(basename "$archive" .tar.gz)
list=
for name in crash hang right; do
    cp "$drivers/libvkrope_icd_$name.so" "$root/mnt/"
    {
        echo '{"file_format_version": "1.0.0", "ICD": {"api_version": "1.3.0",'
        echo "\"library_path\": \"/mnt/libvkrope_icd_$name.so\"}}"
    } >"$root/mnt/$name.json"
    list=$list${list:+:}/mnt/$name.json
done

echo "$suite: $(inside getconf GNU_LIBC_VERSION); $(inside sh -c 'command -v g++ cc python3' || echo 'no compiler')"

started=$(date +%s)
code=0
inside VK_DRIVER_FILES=$list VK_ICD_FILENAMES=$list \
    sh -c "cd /mnt && $kit/report --timeout 2 --check-timeout 60 \"\$@\"" sh "$@" \
    >"$root/mnt/out" 2>"$root/mnt/err" || code=$?
echo "./report: $(($(date +%s) - started)) s, exit code $code"
[ "$code" = 4 ] || { wrong "exit code $code, not 4" && tail -n 20 "$root/mnt/err"; }
set -- "$root"/mnt/vkrope-report-3_devices-*.json
[ -s "$1" ] || wrong 'there is no report of three devices'
inside $kit/lib/bin/vkrope-conformance --page /mnt/page.html "/mnt/${1##*/}" ||
    wrong 'there is no page of the report'
for text in 'crashed, signal 11 (SIGSEGV), ' 'took more than 60 seconds, ' \
    '<span class="bad">not conformant</span>' 'Error against position'; do
    grep -qF -e "$text" "$root/mnt/page.html" || wrong "the page has no '$text'"
done
for name in "$(hostname)" "$kit"; do
    ! grep -qw -e "$name" "$1" || wrong "the report names '$name'"
done

# The other commands of the kit.
inside $kit/vkrope devices | grep -q llvmpipe || wrong './vkrope devices lists no llvmpipe'
ln -s "$kit/conform" "$root/mnt/link"
inside /mnt/link --filter 'chains/f16_*' | grep -q '^pass ' ||
    wrong 'a link to ./conform passes nothing'
inside $kit/bench --help | grep -q benchmark_filter || wrong './bench has no help'

# Without a loader in the system, the commands must use the loader in the kit.
loader=$(inside sh -c 'readlink -f /usr/lib/*/libvulkan.so.1')
mv "$root$loader" "$root/hidden_loader"
inside ldconfig
inside $kit/vkrope devices >"$root/mnt/out" 2>"$root/mnt/err" ||
    wrong 'without a loader nothing is found'
grep -q 'the one in the kit is used' "$root/mnt/err" ||
    wrong 'it is not said that the loader is ours'
grep -q llvmpipe "$root/mnt/out" || wrong 'the loader inside finds no driver'
mv "$root/hidden_loader" "$root$loader"
inside ldconfig

[ "$suite" != bookworm ] || [ "$(cat "$root$kit/lib/glibc")" = 2.35 ] ||
    wrong "the kit needs glibc $(cat "$root$kit/lib/glibc"); Ubuntu 22.04 has 2.35"
# The kit must refuse a C library that is too old.
echo 9.99 >"$root$kit/lib/glibc"
code=0
inside $kit/vkrope devices >"$root/mnt/out" 2>"$root/mnt/err" || code=$?
[ "$code" = 2 ] || wrong "exit code $code on a system with an old glibc"
grep -q 'this kit needs glibc 9.99 or newer; this system has 2' "$root/mnt/err" ||
    wrong 'the versions are not named'
exit $failed
