#!/usr/bin/env bash
# Makes cores of JVMs of another CPU for the rules of the leaf. qemu-user runs the JVMs, some ten times slower.
#   scripts/leaf-guest.sh DIR arm64 17 [REGEXP [MODES]]        REGEXP: which programs of TestLeaf, as 'streams|maps'
#   scripts/leaf-guest.sh DIR amd64 17=HOME [REGEXP [MODES]]   HOME: a JDK of this machine; MODES: 'c2' or as 'c1|c1-profiled'
# The cores and pcs are in DIR/CPU, those of programs held back in DIR/CPU/held. To score them:
#   GOPROF_LEAF_KEEP=DIR/CPU go test ./testdata/oracle -run TestLeafKept -v
# arm64's JDKs and libraries are those of the emulated machine (scripts/arm64.sh build JDK). A program takes two minutes and 0.7 GB.
# The plugin was tried with qemu 7.2. Since 9.0 qemu has another interface for plugins.
set -euo pipefail
cd "$(dirname "$0")/.."
die() {
    echo "leaf-guest.sh: $*" >&2
    exit 1
}
[ $# -ge 3 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 1; }
mkdir -p "$1"
dir=$(realpath "$1") cpu=$2 jdk=$3 programs=${4:-.} modes=${5:-c2}
[[ $dir != *[,:]* ]] || die "no comma or colon in $dir: qemu and GOPROF_JDKS take them for separators"
machine=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/arm64/image
root=$dir/root

# The machine's files, as far as a JVM reads them. Links lead to the root of the machine, so they are made anew.
unpack() {
    local made
    made=$(cat "$machine/recipe" "$machine/jdks")
    [ "$(cat "$root/done" 2>/dev/null)" != "$made" ] || return 0
    rm -rf "$root"
    mkdir -p "$root/usr/lib"
    for part in /usr/lib/jvm /usr/lib/aarch64-linux-gnu; do
        debugfs -R "rdump $part \"$root/usr/lib\"" "$machine/root.img" >&2
    done
    debugfs -R "rdump /etc \"$root\"" "$machine/root.img" >&2
    ln -sfn usr/lib "$root/lib"
    ln -sfn aarch64-linux-gnu/ld-linux-aarch64.so.1 "$root/usr/lib/ld-linux-aarch64.so.1"
    chmod -R u+rwX,a+rX "$root"
    find "$root/usr/lib/jvm" -type l -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link"
    done
    echo "$made" >"$root/done"
}

case $cpu in
    arm64)
        [[ $jdk != *=* ]] || die "arm64's JDKs are those of the emulated machine: ${jdk%%=*} alone"
        scripts/tools.sh qemu-aarch64 debugfs
        scripts/arm64.sh build "$jdk"
        unpack
        home=$root/usr/lib/jvm/java-$jdk-openjdk-arm64
        qemu=(qemu-aarch64 -L "$root" -cpu neoverse-n1)
        small=("$root/usr/lib/ld-linux-aarch64.so.1" --version)
        ;;
    amd64)
        [[ $jdk == *=* ]] || die "amd64 takes a JDK of this machine: $jdk=HOME"
        scripts/tools.sh qemu-x86_64
        home=${jdk#*=}
        qemu=(qemu-x86_64 -cpu max)
        small=(/bin/true)
        ;;
    *) die "CPU is arm64 or amd64, not $cpu" ;;
esac
version=${jdk%%=*}
[ -x "$home/bin/java" ] || die "$home/bin/java is not there"
mkdir -p "$dir/blocks" "$dir/$cpu" "$dir/jdk/$cpu-$version/bin"
gcc -D_GNU_SOURCE -O2 -shared -fPIC -o "$dir/blocks.so" testdata/qemu/blocks.c -lpthread
"${qemu[@]}" -plugin "$dir/blocks.so,name=$dir/blocks/none" "${small[@]}" >/dev/null ||
    die "$("${qemu[0]}" --version | head -1) does not take testdata/qemu/blocks.c as a plugin; 7.2 does"
java=$dir/jdk/$cpu-$version/bin/java
# The JVM has the shell's process id then, so the test knows under which name the plugin counts.
printf '#!/usr/bin/env bash\nexec %s -plugin %q,name=%q/$$ %q/bin/java "$@"\n' \
    "$(printf '%q ' "${qemu[@]}")" "$dir/blocks.so" "$dir/blocks" "$home" >"$java"
chmod 755 "$java"
classes=$(go test -count 1 -v -run '^TestClasses$' ./testdata/jvmtest | sed -n 's/.*classes are in //p')
begun=$dir/begun
touch "$begun"
GOPROF_SLOW=20 GOPROF_CLASSES=$classes GOPROF_JDKS="$version-$cpu=${java%/bin/java}" GOPROF_LEAF_KEEP=$dir/$cpu GOPROF_LEAF_BLOCKS=$dir/blocks \
    go test ./testdata/oracle -count 1 -v -timeout 2h -run "^TestLeafGuestKeep\$/./^($modes)\$/($programs)"
[ -n "$(find "$dir/$cpu" -name '*.pcs' -newer "$begun" -size +0)" ] || die "no program of TestLeaf is called $programs"
