#!/usr/bin/env bash
# setup.sh - install what Bezel is built and tested with, and nothing that is already there.
#
#   tools/setup.sh          check and, on Debian or Ubuntu, install what is missing
#   tools/setup.sh --check  only say what is missing (exit 1 when something is)
#
# Called by `make run` and `make test`. It may be run as often as you like.
set -euo pipefail

# command (or file) that shows it is there : Debian package : what it is for
needs=(
    "make:make:the build"
    "gcc:gcc:the first compiler"
    "git:git:listing the files to check"
    "clang-19:clang-19:the second compiler, sanitizers and fuzzing"
    "clang-format-19:clang-format-19:the style check"
    "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a|/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-aarch64.a:libclang-rt-19-dev:the sanitizers' run-time"
    "python3:python3:checks and tools (standard library only)"
)

is_there() {
    local one
    IFS='|' read -ra any <<< "$1"
    for one in "${any[@]}"; do
        if [[ $one == /* ]]; then [[ -e $one ]] && return 0; else command -v "$one" > /dev/null && return 0; fi
    done
    return 1
}

missing=()
for need in "${needs[@]}"; do
    IFS=: read -r what package reason <<< "$need"
    is_there "$what" || missing+=("$package")
    if [[ ${1:-} == --check ]] && ! is_there "$what"; then echo "missing: $package ($reason)"; fi
done

if [[ ${#missing[@]} -eq 0 ]]; then
    [[ ${1:-} == --check ]] && echo "everything is there"
    exit 0
fi
[[ ${1:-} == --check ]] && exit 1

if ! command -v apt-get > /dev/null; then
    cat >&2 <<TEXT
setup: this system has no apt-get, so please install by hand what is missing:
    ${missing[*]}
  These are Debian's names. Elsewhere: a C11 compiler (gcc 12 or newer), clang, clang-format and
  compiler-rt of LLVM 19, GNU make, git and Python 3.
    Fedora:  sudo dnf install gcc make git clang clang-tools-extra compiler-rt python3
    macOS:   xcode-select --install; brew install llvm@19 make
  Only gcc (or clang) and make are needed to build: make all
TEXT
    exit 1
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo > /dev/null; then
        echo "setup: please run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null; }
if ! install 2> /dev/null; then # the list of packages may be old or empty
    "${as_root[@]}" apt-get update -qq
    install
fi
echo "setup: done"
