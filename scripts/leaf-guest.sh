#!/usr/bin/env bash
# Cores of JVMs of another CPU for the rules of the leaf, without a machine of it: qemu-user runs them, some ten times slower.
#   scripts/leaf-guest.sh DIR CPU JDK [REGEXP]   CPU: arm64 or amd64. JDK: 17, or 17=HOME. REGEXP: which programs of TestLeaf
# DIR/CPU has the cores and pcs then, of programs held back in DIR/CPU/held. To score them:
#   GOPROF_LEAF_KEEP=DIR/CPU go test ./testdata/oracle -run TestLeafKept -v
# arm64's JDKs and libraries are those of the emulated machine (scripts/arm64.sh build JDK). A program takes two minutes and 0.7 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 3 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 1; }
mkdir -p "$1"
dir=$(realpath "$1") cpu=$2 jdk=$3 programs=${4:-.}
scripts/tools.sh qemu-aarch64 debugfs
image=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/arm64/image/root.img
root=$dir/root

# The machine's files, as far as a JVM reads them. Links lead to the root of the machine, so they are made anew.
unpack() {
    [ ! -e "$root/done" ] || return 0
    mkdir -p "$root/usr/lib"
    for part in /usr/lib/jvm /usr/lib/aarch64-linux-gnu; do
        debugfs -R "rdump $part $root/usr/lib" "$image" >&2
    done
    debugfs -R "rdump /etc $root" "$image" >&2
    ln -sfn usr/lib "$root/lib"
    ln -sfn aarch64-linux-gnu/ld-linux-aarch64.so.1 "$root/usr/lib/ld-linux-aarch64.so.1"
    chmod -R u+rwX,a+rX "$root/usr/lib"
    find "$root/usr/lib/jvm" -type l -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link"
    done
    touch "$root/done"
}

home=${jdk#*=}
case $cpu in
    arm64)
        scripts/arm64.sh build "${jdk%=*}"
        unpack
        home=$root/usr/lib/jvm/java-${jdk%=*}-openjdk-arm64
        qemu="qemu-aarch64 -L $root -cpu neoverse-n1"
        ;;
    amd64) qemu="qemu-x86_64 -cpu max" ;;
    *) echo "CPU is arm64 or amd64" >&2; exit 1 ;;
esac
mkdir -p "$dir/blocks" "$dir/jdk/$cpu-${jdk%=*}/bin"
gcc -D_GNU_SOURCE -O2 -shared -fPIC -o "$dir/blocks.so" testdata/qemu/blocks.c -lpthread
java=$dir/jdk/$cpu-${jdk%=*}/bin/java
printf '#!/bin/sh\nexec %s -plugin %s,name=%s/$$ %s/bin/java "$@"\n' "$qemu" "$dir/blocks.so" "$dir/blocks" "$home" >"$java"
chmod 755 "$java"
classes=$(go test -count 1 -v -run '^TestClasses$' ./testdata/jvmtest | sed -n 's/.*classes are in //p')
GOPROF_SLOW=20 GOPROF_CLASSES=$classes GOPROF_JDKS="${jdk%=*}-$cpu=${java%/bin/java}" GOPROF_LEAF_KEEP=$dir/$cpu GOPROF_LEAF_BLOCKS=$dir/blocks \
    go test ./testdata/oracle -count 1 -v -timeout 2h -run "^TestLeafGuestKeep\$/./$programs"
