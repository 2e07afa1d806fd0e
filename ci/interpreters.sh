# To be sourced: what a bare machine needs before `python -m pip install nox uv` can run.
#
#   need_compiler           a C compiler, from apt where there is none
#   need_python 3.11 3.12   these interpreters, from pyenv where it has them, else from apt
#
# Each ends the script with one clear line when it can't do what it is named for.

fail() {
    printf 'ci: %s\n' "$*" >&2
    exit 1
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] || return 1
    [ -n "${apt_updated:-}" ] || apt-get update -qq || return 1
    apt_updated=1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

need_compiler() {
    command -v cc >/dev/null || apt_install build-essential || fail "no C compiler, and apt can't install one"
}

# Prints the path of an interpreter that runs and can build extensions; nothing where there is none.
find_python() {
    local candidate
    for candidate in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if [ -n "$candidate" ] && "$candidate" - "$1" 2>/dev/null <<'PYTHON'; then
import ensurepip, os, sys, sysconfig
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
        [ -n "$(find_python "$version")" ] ||
            fail "no CPython $version with its headers: pyenv and PATH lack it, and apt doesn't have it." \
                "Install it (pyenv install $version, or your system's packages), then run this again."
        printf 'ci: CPython %s is %s\n' "$version" "$(find_python "$version")"
    done
}
