#!/usr/bin/env bash
# What a machine lacks before `python -m pip install nox uv` and the matrix can run.
#
#   bash ci/interpreters.sh 3.11 3.14     get these CPython releases, and say where each is
#   source ci/interpreters.sh             the same as functions, for .ci/run:
#     need_compiler, need_python VERSION…, find_python VERSION
#
# A release is taken from PATH or pyenv where they have it, else from the system's packages, else from Debian's unstable
# distribution (ci/debian.sh). What has to be fetched is kept in one cache folder and linked into its bin/, where
# noxfile.py looks too. Each function ends the script with one clear line when it can't do what it is named for.

CI_FOLDER="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
INTERPRETERS="${DYNACORE_INTERPRETERS:-${XDG_CACHE_HOME:-$HOME/.cache}/dynacore/interpreters}"

fail() {
    printf 'ci: %s\n' "$*" >&2
    exit 1
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] || return 1
    [ -n "${apt_updated:-}" ] || apt-get update -qq || return 1
    apt_updated=1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

need_compiler() {
    command -v cc >/dev/null || apt_install build-essential || fail "no C compiler, and apt can't install one"
}

# Prints the path of an interpreter that runs, is of that release and can build extensions; nothing where there is none.
find_python() {
    local candidate
    for candidate in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python \
        "$INTERPRETERS/bin/python$1"; do
        if [ -n "$candidate" ] && "$candidate" - "$1" 2>/dev/null <<'PYTHON'; then
import os, ssl, sys, sysconfig
right = sys.argv[1] == "%d.%d" % sys.version_info[:2]
sys.exit(not (right and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))
PYTHON
            printf '%s\n' "$candidate"
            return
        fi
    done
}

need_python() {
    local version
    for version in "$@"; do
        [ -n "$(find_python "$version")" ] || apt_install "python$version-dev" "python$version-venv" || true
        [ -n "$(find_python "$version")" ] || bash "$CI_FOLDER/debian.sh" "$version" "$INTERPRETERS" || true
        [ -n "$(find_python "$version")" ] ||
            fail "no CPython $version with its headers: neither PATH, pyenv, apt nor Debian's unstable distribution" \
                "gave one. Install it (pyenv install $version, or your system's packages), then run this again."
        printf 'ci: CPython %s is %s\n' "$version" "$(find_python "$version")"
    done
}

# Python needs no bash of its own to be run by: only the script itself, not who sources it, acts on arguments.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    [ "$#" -gt 0 ] || fail "name the releases to get, as in: bash ci/interpreters.sh 3.14 3.15"
    need_compiler
    need_python "$@"
fi
