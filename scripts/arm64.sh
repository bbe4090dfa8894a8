#!/usr/bin/env bash
# An arm64 machine for the tests, on any x86-64 machine: a real arm64 kernel under qemu-system-aarch64 in full emulation. ptrace,
# /proc and the JVMs behave as on arm hardware. Times do not: emulated code is some ten times slower.
#   scripts/arm64.sh build [JDK...]
#                                makes the machine, if it does not exist or lacks one of these JDKs
#   scripts/arm64.sh run [--share DIR] [--timeout SECONDS] [--env NAME=VALUE]... COMMAND
#                                boots it, runs a shell command line as root, and exits with its status; 124: timeout,
#                                125: the machine died (the end of its console follows). stdout and stderr arrive as stdout
# The command's working directory is /host: DIR, else the current directory, and writable. JDKs are at /jdk/8 and so on
# (vmstructs/releases.txt); gcc, gdb and strace are installed. Other files are gone afterwards. There is no network.
#
# GOPROF_ARM64_CPU    qemu's name of a CPU: neoverse-n1 has no pointer authentication, max,pauth-impdef=on has it
# GOPROF_ARM64_PAGES  4k, 16k or 64k. The first run with 64k compiles the kernel, without IP (scripts/arm64-64k.config): 11 minutes
#                     of CPU time, a download of 0.2 GB, and 2 GB of disk meanwhile
# GOPROF_ARM64_BOOT   timeout of the first boot in seconds (7200). After a timeout the disk is kept
# GOPROF_CACHE        another cache than ~/.cache/goprof
# GOPROF_SUITE        another suite of Debian than sid, which alone has all JDKs
# A build takes about ten minutes and downloads 0.8 GB; the machine takes 2 GB. It needs Debian or a derivative. If qemu is
# missing, it needs the right to install packages.
set -euo pipefail
cd_here=$PWD
cd "$(dirname "$0")/.."

. scripts/releases.sh
read -ra all_jdks <<<"$(releases arm64)"
jdks=()
suite=${GOPROF_SUITE:-sid}
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/arm64
image=$cache/image # root.img, for each page size linux-SIZE and initrd-SIZE, and what it was made of: recipe, jdks
unbooted=$cache/unbooted # such an image before its first boot
kernel_64k=$cache/64k/linux-$(cksum <scripts/arm64-64k.config | cut -d' ' -f1)
cpu=${GOPROF_ARM64_CPU:-neoverse-n1}
pages=${GOPROF_ARM64_PAGES:-4k}
# Counted up when what this script makes changes: an older machine is made anew.
recipe="3 of Debian $suite"

# shellcheck disable=SC2034 # debian.sh wants it
apt_architecture=arm64
. scripts/debian.sh # apt_get, update_lists, say

packages=(base-files bash coreutils dash findutils grep sed mawk tar gzip diffutils procps util-linux mount busybox-static libc-bin
    strace gdb gcc libc6-dev binutils musl-tools)

# What the kernel needs for its root disk, the shared folder and the tests of containers; what is built into it is not found, and not missed.
modules=(virtio_pci virtio_blk virtio_console ext4 9p 9pnet_virtio overlay)

temporary=()
trap 'for dir in "${temporary[@]}"; do rm -rf "$dir"; done' EXIT

# ---- build

build() {
    jdks=("$@")
    [ $# != 0 ] || jdks=("${all_jdks[@]}")
    scripts/tools.sh qemu-system-aarch64 cpio depmod mke2fs xz
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    ! suffices "$image" || return 0
    work=$(mktemp -d "$cache/.building-XXXXXX")
    temporary+=("$work")
    if ! suffices "$unbooted"; then
        build_image
        rm -rf "$unbooted"
        mv "$work/image" "$unbooted"
        rm -rf "$cache/apt/cache"
    fi
    first_boot
    rm -rf "$image"
    mv "$work/image" "$image"
    rm -rf "$unbooted"
    say "built $image, $(du -sh "$image" | cut -f1)"
}

# An image is good if this script would make it like that today, and it has the JDKs that are wanted. Else the next one has what
# the old one had, too.
suffices() { # image
    local jdk has
    [ "$(cat "$1/recipe" 2>/dev/null)" = "$recipe" ] || return 1
    has=" $(cat "$1/jdks") "
    for jdk in "${jdks[@]}"; do
        if [[ $has != *" $jdk "* ]]; then
            # shellcheck disable=SC2086 # a list
            mapfile -t jdks < <(printf '%s\n' $has "${jdks[@]}" | sort -nu)
            return 1
        fi
    done
}

build_image() {
    local size jdk
    for jdk in "${jdks[@]}"; do packages+=("openjdk-$jdk-jdk-headless"); done
    mkdir "$work/image"
    update_lists
    build_root
    build_kernel 4k linux-image-arm64
    build_kernel 16k linux-image-arm64-16k
    say "making the disk"
    size=$(du -sm --apparent-size "$work/root" | cut -f1)
    mke2fs -q -t ext4 -O ^has_journal -m 0 -E root_owner=0:0 -d "$work/root" "$work/image/root.img" $((size + size / 8 + 512))M >/dev/null
    rm -rf "$work/root"
    echo "${jdks[*]}" >"$work/image/jdks"
    echo "$recipe" >"$work/image/recipe"
}

# Debian's packages, unpacked beside each other: no script of theirs is run.
build_root() {
    local root=$work/root deb jdk
    say "downloading JDKs ${jdks[*]} and tools"
    apt_get --download-only -y install "${packages[@]}" >&2
    mkdir -p "$root"/usr/{bin,sbin,lib} "$root"/{dev,proc,sys,tmp,run,host,jdk,root,etc}
    ln -s usr/bin usr/sbin usr/lib "$root" # merged, as Debian is
    say "unpacking"
    for deb in "$cache/apt/cache/archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner \
            --exclude=./usr/share/{doc,man,info,locale,lintian,bug} --exclude='./usr/lib/jvm/*/jmods'
    done
    for jdk in "${jdks[@]}"; do
        ln -s "../usr/lib/jvm/java-$jdk-openjdk-arm64" "$root/jdk/$jdk"
    done
    ln -sf mawk "$root/usr/bin/awk"
    printf '%s\n' root:x:0:0:root:/root:/bin/bash nobody:x:65534:65534:nobody:/tmp:/bin/sh >"$root/etc/passwd"
    printf '%s\n' root:x:0: nogroup:x:65534: >"$root/etc/group"
    echo 127.0.0.1 localhost arm64 >"$root/etc/hosts"
    find "$root" -type d ! -perm -u=rwx -exec chmod u+rwx {} +
}

build_kernel() { # page size, package
    local size=$1 tree=$work/kernel-$1 image parts version
    image=$(depends "$2" image)
    mapfile -t parts < <(echo "$image"; depends "$image" 'binary\|modules') # a new kernel comes in three pieces
    say "downloading ${parts[*]}"
    mkdir "$tree"
    (cd "$tree" && apt_get download "${parts[@]}" >&2 && find . -name '*.deb' -exec dpkg-deb -x {} . \;)
    version=$(find "$tree" -path '*/lib/modules/*' -prune -printf '%f\n' | head -1)
    find "$tree" -name 'vmlinuz*' -exec mv {} "$work/image/linux-$size" \;
    [ -d "$tree/lib" ] || ln -s usr/lib "$tree"
    depmod -b "$tree" "$version" 2>/dev/null
    build_initrd "$tree/lib/modules/$version" "$work/initrd-$size" "$work/image/initrd-$size"
    rm -rf "$tree"
}

depends() { # package, kinds of kernel packages
    apt_with cache depends "$1" | sed -n "s/^ *Depends: \(linux-\($2\)-[0-9][^ ]*\).*/\1/p"
}

# Debian has no kernel with pages of 64 KB, as RHEL and Ubuntu have. So one is compiled from the source of Debian 12's kernel.
compile_64k() {
    local suite=bookworm cache=$cache/64k tree source make_kernel
    [ ! -e "$kernel_64k" ] || return 0
    scripts/tools.sh make flex bison bc xz aarch64-linux-gnu-gcc
    mkdir -p "$cache"
    tree=$(mktemp -d "$cache/.building-XXXXXX")
    temporary+=("$tree")
    make_kernel=(nice make -s -C "$tree" -j"$(nproc)" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
    update_lists
    source=$(depends linux-source source)
    say "downloading $source"
    (cd "$tree" && apt_get download "$source" >&2)
    dpkg-deb --fsys-tarfile "$tree/$source"_*.deb | tar -x -O "./usr/src/$source.tar.xz" | xz -dc |
        tar -x -C "$tree" --strip-components=1 --exclude='*/Documentation/*/*' --exclude='*/drivers/gpu/drm/amd/include/*'
    # 9p does not need IP, which would be a tenth of the kernel.
    sed -i 's/depends on INET && NET_9P/depends on NET_9P/' "$tree/fs/9p/Kconfig"
    say "compiling $source"
    "${make_kernel[@]}" KCONFIG_ALLCONFIG="$PWD/scripts/arm64-64k.config" allnoconfig >&2
    "${make_kernel[@]}" Image >&2
    rm -f "$cache"/linux-*
    mv "$tree/arch/arm64/boot/Image" "$kernel_64k"
    rm -rf "$tree"
}

build_initrd() { # the kernel's modules, a directory to work in, result
    local from=$1 dir=$2 module file number=10
    mkdir -p "$dir"/{bin,dev,proc,sys,new,modules}
    cp "$work/root/usr/bin/busybox" "$dir/bin"
    for module in "${modules[@]}"; do # a line of modules.dep is "module: needs needs"; the deepest need stands last
        { grep -E "/$module\.ko[.a-z]*:" "$from/modules.dep" || true; } | tr -d : | tr ' ' '\n' | tac
    done | awk 'NF && !seen[$0]++' | while read -r file; do
        case $file in
            *.xz) xz -dc "$from/$file" ;;
            *) cat "$from/$file" ;;
        esac >"$dir/modules/$((number++))-$(basename "$file" | sed 's/\.ko.*//').ko"
    done
    cat >"$dir/init" <<'INIT'
#!/bin/busybox sh
# The first process: loads what the disk needs, mounts it and all else, and hands over to what the host made for this run.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in /modules/*; do insmod $m; done
n=0; until [ -b /dev/vda ] || [ $n = 100 ]; do usleep 100000; n=$((n + 1)); done
mount -t ext4 /dev/vda /new || { echo "no root disk"; poweroff -f; }
for d in proc sys dev; do mount --move /$d /new/$d; done
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts devpts /new/dev/pts; mount -t tmpfs -o mode=1777 shm /new/dev/shm
mount -t tmpfs -o mode=1777,size=80% tmp /new/tmp; mount -t tmpfs -o mode=755 run /new/run
ln -s /proc/self/fd /new/dev/fd
mkdir /new/run/vm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap host /new/host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 vm /new/run/vm
exec switch_root /new /bin/busybox sh /run/vm/init
INIT
    chmod 755 "$dir/init"
    (cd "$dir" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$3"
}

# What the packages' own scripts would have made, on the disk itself: the loader's cache, archives of class data. It is made on a
# copy: a boot that is out of time may leave a disk broken.
first_boot() {
    say "booting it for the first time"
    cp -r --sparse=always "$unbooted" "$work/image"
    # shellcheck disable=SC2016
    boot "$work/image" off "$work" "${GOPROF_ARM64_BOOT:-7200}" 'ldconfig
        for home in /jdk/*; do
            $home/bin/java -version 2>&1 | sed -n 2p
            [ $home = /jdk/8 ] || $home/bin/java -Xshare:dump >/dev/null || exit 1
        done' >&2 || {
        say "the new machine does not work; its disk is kept: try again, with GOPROF_ARM64_BOOT=SECONDS if it ran out of time"
        exit 125
    }
}

# ---- run

run() {
    local share=$cd_here limit=600 environment=""
    while [ $# -gt 1 ]; do
        case $1 in
            --share) share=$2 ;;
            --timeout) limit=$2 ;;
            --env) environment+="export ${2%%=*}=$(printf '%q' "${2#*=}")"$'\n' ;;
            *) break ;;
        esac
        shift 2
    done
    [ $# = 1 ] || usage
    [ -e "$image/recipe" ] || { say "no machine: scripts/arm64.sh build"; exit 125; }
    share=$(cd "$cd_here" && realpath -e "$share")
    [ "$pages" != 64k ] || compile_64k
    boot "$image" on "$share" "$limit" "$environment$1"
}

boot() { # image, snapshot (on: what is written to the disk is forgotten), share, timeout, command line
    local from=$1 snapshot=$2 share=$3 limit=$4 vm status=0 kernel=$1/linux-$pages initrd=$1/initrd-$pages bus=pci
    # That kernel has all that is needed built in, and no PCI. It refuses the initrd's modules, and init goes on.
    [ "$pages" != 64k ] || { kernel=$kernel_64k; initrd=$from/initrd-4k; bus=device; }
    vm=$(mktemp -d)
    temporary+=("$vm")
    mkdir "$vm/ctl"
    printf '%s\n' "$5" >"$vm/ctl/command"
    cat >"$vm/ctl/init" <<'INIT'
mkdir /run/bin
busybox --install -s /run/bin
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/run/bin HOME=/root LANG=C.UTF-8
hostname arm64
ifconfig lo 127.0.0.1 up
mkdir -p /mnt
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +cpu +memory >/sys/fs/cgroup/cgroup.subtree_control
for p in /sys/class/virtio-ports/*; do [ "$(cat $p/name)" != out ] || out=/dev/${p##*/}; done
cd /host
setsid bash /run/vm/command </dev/null >$out 2>&1
echo $? >/run/vm/status
sync
mount -o remount,ro /
poweroff -f
INIT
    # The pipe is what /dev/stdout can always be opened as.
    timeout --foreground -k 10 "$limit" qemu-system-aarch64 \
        -machine virt,gic-version=3 -cpu "$cpu" -smp 2 -m 3G -accel tcg,thread=multi,tb-size=512 \
        -nodefaults -display none -nic none -no-reboot \
        -kernel "$kernel" -initrd "$initrd" \
        -append "console=ttyAMA0 quiet loglevel=4 panic=-1" -serial "file:$vm/console" \
        -drive "if=none,id=root,format=raw,snapshot=$snapshot,file=${from//,/,,}/root.img" -device virtio-blk-$bus,drive=root \
        -fsdev "local,id=host,security_model=none,multidevs=remap,path=${share//,/,,}" -device virtio-9p-$bus,fsdev=host,mount_tag=host \
        -fsdev "local,id=vm,security_model=none,path=$vm/ctl" -device virtio-9p-$bus,fsdev=vm,mount_tag=vm \
        -device virtio-serial-$bus -chardev file,id=out,append=on,path=/dev/stdout -device virtserialport,chardev=out,name=out \
        </dev/null 9>&- | cat || status=${PIPESTATUS[0]}
    if [ -s "$vm/ctl/status" ]; then
        return "$(cat "$vm/ctl/status")"
    fi
    if [ "$status" = 124 ]; then
        say "out of time after $limit s"
        return 124
    fi
    say "the machine ended without a result (qemu: $status); its console's end:"
    tail -n 30 "$vm/console" >&2 || true
    return 125
}

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' scripts/arm64.sh >&2
    exit 125
}

case ${1:-} in
    build) shift; build "$@" ;;
    run) shift; run "$@" ;;
    *) usage ;;
esac
