#!/usr/bin/env bash
# setup.sh - install what Bezel is built and tested with, and nothing that is already there.
#
#   tools/setup.sh chat     what `make chat` needs: a compiler, make and Python
#   tools/setup.sh run      what `make run` needs: LLVM for the WebAssembly module, Node
#   tools/setup.sh test     what `make test` needs: both, and a browser, software GPUs, tools for
#                           checking
#   ... --check             only say what is missing (exit 1 when something is)
#
# On Debian and Ubuntu it installs with apt-get; elsewhere it says what to install by hand. It may
# be run as often as you like.
set -euo pipefail
goal=${1:-test} mode=${2:-}
if [[ $goal != chat && $goal != run && $goal != test ]]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
fi

clang_lib=/usr/lib/llvm-19/lib/clang/19/lib fuzzer=$clang_lib/linux/libclang_rt.fuzzer
icd=/usr/share/vulkan/icd.d/lvp_icd

# command (or file) that shows it is there : Debian package : what it is for
needs=("make:make:the build")
needs+=("python3:python3:the kernels' parameters, checks and tools (standard library only)")
[[ $goal != run ]] && needs+=("gcc:gcc:the compiler")
[[ $goal != chat ]] && needs+=(
    "clang-19:clang-19:WebAssembly, and the second compiler for the tests"
    "wasm-ld-19:lld-19:the WebAssembly linker"
    "/usr/lib/wasm32-wasi/libc.a:wasi-libc:the C library of the WebAssembly module"
    "$clang_lib/wasi/libclang_rt.builtins-wasm32.a:libclang-rt-19-dev-wasm32:the same, arithmetic"
    "node:nodejs:the server and the Node host"
    "npm:npm:the packages that the package-lock.json files pin"
)
[[ $goal == test ]] && needs+=(
    "git:git:listing the files to check"
    "clang-format-19:clang-format-19:the style check"
    "$fuzzer-x86_64.a|$fuzzer-aarch64.a:libclang-rt-19-dev:the sanitizers' run-time"
    "/usr/lib/chromium/vk_swiftshader_icd.json:chromium:the browser tests, and a GPU in software"
    "firefox-esr:firefox-esr:the page in Firefox"
    "WebKitWebDriver:webkit2gtk-driver:the page in WebKit"
    "Xvfb:xvfb:a display for it"
    "$icd.x86_64.json|$icd.aarch64.json:mesa-vulkan-drivers:a second GPU in software, for Deno"
)

is_there() {
    local one
    IFS='|' read -ra any <<< "$1"
    for one in "${any[@]}"; do
        if [[ $one == /* ]]; then
            [[ -e $one ]] && return 0
        else
            command -v "$one" > /dev/null && return 0
        fi
    done
    return 1
}

missing=()
for need in "${needs[@]}"; do
    IFS=: read -r what package reason <<< "$need"
    is_there "$what" || missing+=("$package")
    if [[ $mode == --check ]] && ! is_there "$what"; then echo "missing: $package ($reason)"; fi
done

# Debian 12 has Node 18. The same program of a newer version is also a package of npm's.
newer_node=20.19.5
node_is_old() {
    [[ $goal != chat ]] && command -v node > /dev/null &&
        ! node -e 'const [a, b] = process.versions.node.split(".").map(Number);
            process.exit(a > 20 || (a === 20 && b >= 16) ? 0 : 1)'
}

if [[ ${#missing[@]} -eq 0 ]] && ! node_is_old; then
    [[ $mode == --check ]] && echo "everything is there"
    exit 0
fi
if [[ $mode == --check ]]; then
    node_is_old && echo "too old: node $(node --version); 20.16 or newer is needed"
    exit 1
fi

if [[ ${#missing[@]} -gt 0 ]] && ! command -v apt-get > /dev/null; then
    cat >&2 <<TEXT
setup: this system has no apt-get, so please install by hand what is missing:
    ${missing[*]}
  These are Debian's names. Elsewhere: a C11 compiler (gcc 12 or newer), GNU make, git, Python 3;
  clang, clang-format, lld and compiler-rt of LLVM 19 with wasi-libc; Node 20.16 with npm; Chromium,
  Firefox, WebKitGTK's driver, Xvfb and a software Vulkan driver for the browser tests.
    Fedora:  sudo dnf install gcc make git python3 clang clang-tools-extra compiler-rt lld \\
                 wasi-libc-devel nodejs chromium mesa-vulkan-drivers
    macOS:   xcode-select --install; brew install llvm@19 lld@19 wasi-libc node
  A C compiler and make are enough for the native tool: make all
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
if [[ ${#missing[@]} -gt 0 ]]; then
    echo "setup: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    install() {
        "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
    }
    if ! install 2> /dev/null; then # the list of packages may be old or empty
        "${as_root[@]}" apt-get update -qq
        install
    fi
fi
if node_is_old; then
    echo "setup: installing node $newer_node beside $(node --version)"
    "${as_root[@]}" npm install --global --silent "node@$newer_node"
    hash -r
    if node_is_old; then
        echo "setup: $(command -v node) is still $(node --version);" \
            "version 20.16 or newer must come first in PATH" >&2
        exit 1
    fi
fi
echo "setup: done"
