#!/usr/bin/env bash
# Makes sure that the programs that the tests call are installed: gcc and binutils (readelf), and those that are named:
#   scripts/tools.sh             gcc, binutils
#   scripts/tools.sh chromium    also a browser
#   scripts/tools.sh gdb         also a debugger
#   scripts/tools.sh musl-gcc    also another C library
#   scripts/tools.sh podman runc also containers
# Installs from this machine's package sources if it may, else says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/quietly.sh

missing=()
need() { # command package
    command -v "$1" >/dev/null || missing+=("$2")
}

need go "Go (https://go.dev/dl)"
need gcc gcc
need readelf binutils
for tool in "$@"; do
    case $tool in
        chromium) command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || need chromium chromium ;;
        musl-gcc) need musl-gcc musl-tools ;;
        qemu-system-aarch64) need qemu-system-aarch64 qemu-system-arm ;;
        qemu-system-x86_64) need qemu-system-x86_64 qemu-system-x86 ;;
        aarch64-linux-gnu-gcc) need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu ;;
        busybox) need busybox busybox-static ;;
        qemu-aarch64) need qemu-aarch64 qemu-user ;;
        qemu-x86_64) need qemu-x86_64 qemu-user ;;
        debugfs) need debugfs e2fsprogs ;;
        nix-instantiate) need nix-instantiate nix-bin ;;
        depmod) need depmod kmod ;;
        mke2fs) need mke2fs e2fsprogs ;;
        cni) [ -x /usr/lib/cni/ptp ] || missing+=(containernetworking-plugins) ;; # the networks of pods
        xz) need xz xz-utils ;;
        *) need "$tool" "$tool" ;;
    esac
done
# gcc without the C library's headers links nothing.
if command -v gcc >/dev/null && ! echo '#include <stdlib.h>' | gcc -E -x c - >/dev/null 2>&1; then
    missing+=(libc6-dev)
fi

if [ ${#missing[@]} = 0 ]; then
    exit 0
fi

give_up() {
    echo "goprof's tests need these packages, which are missing: ${missing[*]}" >&2
    exit 1
}
if [[ " ${missing[*]} " == *" Go ("* ]] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    give_up
fi
if [[ " ${missing[*]} " == *" gcc "* ]]; then
    missing+=(libc6-dev)
fi

install() { apt-get -qq update && apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"; }
export DEBIAN_FRONTEND=noninteractive
quietly build/install-tools.log "installing ${missing[*]}" install || give_up
