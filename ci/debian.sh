#!/usr/bin/env bash
# A CPython release from Debian's unstable distribution, for a machine whose own packages don't have it.
#
#   bash ci/debian.sh 3.14 FOLDER     puts it into FOLDER/debian-3.14 and links it as FOLDER/bin/python3.14
#
# debootstrap unpacks a minimal system; its interpreter is then patched to use that system's loader and libraries, so it
# runs here without a chroot. A folder counts only while its interpreter works: what an interrupted run left is thrown
# away by the next. Needs root (debootstrap does), and about 600 MB.
set -euo pipefail

version="$1"
folder="$2"
mirror="${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
root="$folder/debian-$version"
partial="$root.partial"
log="$root.log"

fail() {
    printf 'ci: CPython %s from Debian: %s\n' "$version" "$*" >&2
    exit 1
}

need_tools() {
    command -v debootstrap >/dev/null && command -v patchelf >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "debootstrap and patchelf aren't installed"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        debootstrap patchelf debian-archive-keyring >/dev/null 2>&1 || fail "apt can't install debootstrap and patchelf"
}

# The loader and the libraries are those of the unpacked system, wherever it lies: so the paths are written in last.
patch_interpreter() {
    local libraries="$1/usr/lib/$(uname -m)-linux-gnu" binary="$1/usr/bin/python$version" loader
    loader="$(ls "$libraries"/ld-linux-*.so.* | head -1)"
    patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$binary"
    # Debian keeps the real pyconfig.h in a folder per architecture; the plain one only includes it from /usr/include.
    cp "$1/usr/include/$(uname -m)-linux-gnu/python$version/pyconfig.h" "$1/usr/include/python$version/pyconfig.h"
}

check_interpreter() {
    "$1/usr/bin/python$version" -c "
import ctypes, math, sqlite3, ssl, sys, sysconfig, zlib
assert '%d.%d' % sys.version_info[:2] == '$version', sys.version
assert sysconfig.get_path('include').startswith(sys.prefix), sysconfig.get_path('include')
open(sysconfig.get_path('include') + '/Python.h').close()"
}

if ! check_interpreter "$root" 2>/dev/null; then
    [ "$(id -u)" = 0 ] || fail "debootstrap needs root"
    need_tools
    rm -rf "$root" "$partial"
    mkdir -p "$folder"
    debootstrap --variant=minbase --include="python$version,python$version-dev,python$version-venv" \
        sid "$partial" "$mirror" >"$log" 2>&1 || fail "debootstrap failed; the end of $log: $(tail -2 "$log")"
    rm -rf "$partial"/var/cache/apt/archives/*.deb
    mv "$partial" "$root"
    patch_interpreter "$root" || { rm -rf "$root"; fail "patchelf failed"; }
    check_interpreter "$root" || { rm -rf "$root"; fail "the interpreter that it gave doesn't work"; }
fi
mkdir -p "$folder/bin"
ln -sfn "$root/usr/bin/python$version" "$folder/bin/python$version"
