#!/usr/bin/env bash
# Runs goprof on Debian's kernels, each booted in qemu without KVM. On each kernel all of goprof's commands look at one JVM, as root and
# as the JVM's user without any right of root, and under settings and single capabilities (scripts/kernels/job.sh).
#   scripts/kernels.sh                     bullseye (5.10), bookworm (6.1), trixie (6.12); 15 minutes each with a free CPU
#   scripts/kernels.sh bookworm            only this one
#   scripts/kernels.sh bookworm-cloud      another flavour of it: cloud, rt; sid has Debian's newest kernel
#   SECTIONS=boot scripts/kernels.sh bookworm+lockdown=confidentiality+cgroups=v1
#                                          with words on its command line; cgroups=v1 and hybrid say which cgroups are mounted
#   CPUS=16 scripts/kernels.sh trixie      shares of a known program on so many CPUs, and goprof's CPU time there
# Writes its tables into docs/evidence/support.md: what works, what works with less, and what is refused with which message. A kernel
# that is not run keeps its last results in build/kernels. goprof's whole output is kept there, too. Exit code 1: goprof refused root
# something, or a kernel did not boot.
#
# Emulated code is some thirty times slower. Exit codes, messages and stacks are those of a real machine, times are not.
# THREADS      with CPUS: the numbers of busy threads ("1 4")
# LIMIT        timeout of a kernel in seconds (3600)
# SECTIONS     which of root, user, cgroup, oom, hotplug, suspend, boot and settings to run (all but boot). settings is last, because
#              kernel.yama.ptrace_scope 3 cannot be undone
# RESUME=1     continues a job that LIMIT has ended
# GOPROF_CACHE another cache than ~/.cache/goprof. The first run downloads 0.5 GB
# Needs Debian or a derivative, and root for the mounts of debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=("$@")
[ $# != 0 ] || suites=(bullseye bookworm trixie)
sections=${SECTIONS:-root user cgroup oom hotplug suspend settings}
[ -z "${CPUS:-}" ] || sections=${SECTIONS:-cpus}
kernels=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/kernels
# What a guest needs beside its root disk's file system. What is built into the kernel is not found, and not missed.
modules=(virtio_pci virtio_blk ext4 crc32c_generic)
disk=$kernels/disk-2.img # counted up when what this script puts there changes

. scripts/debian.sh # apt_get, update_lists, mirror, say
. scripts/page.sh   # put

# One disk serves all kernels: a small Debian with a JDK.
make_disk() {
    [ ! -s "$disk" ] || return 0
    local root=$kernels/root
    rm -rf "$root"
    say "making the disk"
    debootstrap --variant=minbase --no-check-gpg --include=ca-certificates,procps,libcap2-bin bookworm "$root" "$(mirror)" >&2
    cp /etc/apt/apt.conf.d/*prox* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/usr/share/man/man1" # a script of the JDK's wants it
    mount -t proc proc "$root/proc"
    chroot "$root" sh -c 'apt-get -qq -o APT::Sandbox::User=root update &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq -o APT::Sandbox::User=root install -y --no-install-recommends openjdk-17-jdk-headless' >&2 ||
        { umount "$root/proc"; return 1; }
    umount "$root/proc"
    cp scripts/kernels/boot.sh "$root/boot.sh"
    truncate -s 3G "$disk.part"
    mke2fs -q -t ext4 -F -d "$root" "$disk.part"
    rm -rf "$root"
    mv "$disk.part" "$disk"
}

# The suite's kernel, and a first RAM disk with the modules that lead to the root disk.
make_kernel() { # suite, suite-flavour
    local suite=${1%-*} cache=$kernels/$1 tree=$kernels/$1/tree image version module file packages number=10
    [ ! -s "$cache/initrd" ] || return 0
    rm -rf "$tree"
    mkdir -p "$tree"
    update_lists
    image=$(apt_with cache depends "linux-image${1#"$suite"}-amd64" | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -1)
    say "downloading $image of $1"
    # In sid the kernel and its modules are packages of their own.
    mapfile -t packages < <(apt_with cache depends "$image" | sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-.*\)/\1/p')
    (cd "$cache" && apt_get download "$image" "${packages[@]}" >&2)
    for file in "$cache"/linux-*.deb; do dpkg-deb -x "$file" "$tree"; done
    rm -f "$cache"/linux-*.deb
    [ -d "$tree/lib" ] || ln -s usr/lib "$tree"
    version=$(ls "$tree/lib/modules")
    cp "$(ls "$tree"/boot/vmlinuz* "$tree/lib/modules/$version/vmlinuz" 2>/dev/null | head -1)" "$cache/linux"
    depmod -b "$tree" "$version"
    mkdir -p "$tree/initrd"/{bin,dev,proc,sys,root,modules}
    cp "$(command -v busybox)" "$tree/initrd/bin/busybox"
    for module in "${modules[@]}"; do # a line of modules.dep is "module: needs needs"; the deepest need stands last
        { grep -E "/$module\.ko[.a-z]*:" "$tree/lib/modules/$version/modules.dep" || true; } | tr -d : | tr ' ' '\n' | tac
    done | awk 'NF && !seen[$0]++' | while read -r file; do
        case $file in
            *.xz) xz -dc "$tree/lib/modules/$version/$file" ;;
            *) cat "$tree/lib/modules/$version/$file" ;;
        esac >"$tree/initrd/modules/$((number++))"
    done
    cp scripts/kernels/init.sh "$tree/initrd/init"
    chmod 755 "$tree/initrd/init"
    (cd "$tree/initrd" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$cache/initrd.part"
    rm -rf "$tree"
    mv "$cache/initrd.part" "$cache/initrd"
}

# Boots the kernel with the folder as /job, and brings /job/out back.
run() { # kernel, or kernel+words of its command line
    local suite=$1 out=build/kernels/$1${CPUS:+-$CPUS} work clock=() words=
    [[ $suite != *+* ]] || words=${suite#*+}
    work=$(mktemp -d)
    [ -n "${RESUME:-}" ] || rm -rf "$out"
    mkdir -p "$out"
    cp -r build/kernels/job "$work/files"
    cp -r "$out" "$work/files/out"
    rm -f "$work/files/out/console"
    tar -cf "$work/job" -C "$work/files" .
    # The guest's clock counts instructions, 4 ns each, so that shares of CPU time do not depend on when the host runs which CPU.
    [ "$sections" != cpus ] || clock=(-icount "shift=2,sleep=off")
    truncate -s 256M "$work/result"
    # Mitigations of CPU faults and a clock that is a device would make the emulated kernel several times slower.
    # One host thread emulates both CPUs: with two, a 6.12 has died in code that another CPU was just changing (a static key).
    timeout "${LIMIT:-3600}" qemu-system-x86_64 -accel tcg,thread=single "${clock[@]}" -cpu max -smp "${CPUS:-2}" -m 3G -nodefaults -display none -nic none \
        -no-reboot -serial "file:$out/console" -kernel "$kernels/${suite%%+*}/linux" -initrd "$kernels/${suite%%+*}/initrd" \
        -append "console=ttyS0 rw panic=-1 mitigations=off tsc=reliable ${words//+/ }" -drive "file=$disk,if=virtio,format=raw,snapshot=on" \
        -drive "file=$work/job,if=virtio,format=raw,readonly=on" -drive "file=$work/result,if=virtio,format=raw" </dev/null >&2 ||
        say "$suite: the machine was ended"
    tar -C "$out" --strip-components 1 -xf "$work/result" 2>/dev/null || true
    rm -rf "$work"
    [ -z "$words" ] || echo "${words//+/, }" | tr -d ' ' >>"$out/release"
    [ -s "$out/table" ] || { say "$suite: nothing came back; see $out/console"; return 1; }
}

# A row for each look, a column for each kernel, of one section of the job.
table() { # section, heading
    local folder ran=()
    while read -r folder; do ran+=("${folder%/table}"); done < <(cd build/kernels && grep -ls "^$1	" */table | sort)
    [ ${#ran[@]} != 0 ] || return 0
    printf '\n%s:\n\n' "$2"
    for folder in "${ran[@]}"; do awk -F '\t' -v suite="$folder" -v section="$1" '$1 == section { print suite "\t" $0 }' "build/kernels/$folder/table"; done |
        awk -F '\t' -f scripts/kernels/table.awk -v suites="${ran[*]}" -v names="$(for folder in "${ran[@]}"; do paste -sd , "build/kernels/$folder/release" | tr '\n' ' '; done)"
}

tables() {
    table root "As root"
    table user "As the JVM's user, without any right of root"
    table cgroup 'As root, and the JVM in a control group of version 2 (300 MB; a fifth of a CPU; frozen)'
    table oom 'As root, and the kernel kills the JVM for want of memory'
    table hotplug 'As root, and CPU 1 of 2 goes off and on again'
    table suspend 'As root, and the machine sleeps for 10 seconds, or its clock is set'
    table boot 'As root, on other flavours, and with words on the kernel'"'"'s command line'
    table settings 'Settings and single capabilities. "user" is the JVM'"'"'s, "other" another one, neither with rights but those named'
}

[ "$(id -u)" = 0 ] || { say "scripts/kernels.sh needs root"; exit 1; }
scripts/tools.sh qemu-system-x86_64 debootstrap busybox cpio depmod mke2fs xz
mkdir -p "$kernels" build/kernels
exec 9>"$kernels/.lock"
flock 9
make_disk
for suite in "${suites[@]}"; do make_kernel "${suite%%+*}"; done
flock -u 9
make --no-print-directory build >&2
jdk=$(scripts/jdk.sh)
rm -rf build/kernels/job
mkdir -p build/kernels/job/classes
"$jdk/bin/javac" -nowarn -g --release 17 -d build/kernels/job/classes testdata/java/{Demo,Shares,Control,Usual,Spinning}.java
cp goprof scripts/kernels/{job.sh,as,settings} build/kernels/job/
chmod 755 build/kernels/job/as
echo "$sections" >build/kernels/job/sections
echo "${THREADS:-1 4}" >build/kernels/job/threads
failed=0
for suite in "${suites[@]}"; do run "$suite" || failed=1; done # one by one: guests that share a CPU starve each other
[ $failed = 0 ] || exit 1
if [ -n "${CPUS:-}" ]; then
    for suite in "${suites[@]}"; do (cd "build/kernels/$suite-$CPUS/cpus" && awk -v cpus="$CPUS" -f ../../../../scripts/kernels/shares.awk ./*.collapsed; grep -a '^goprof: cannot' ./*.err || true); done
    exit
fi
tables | put docs/evidence/support.md "kernels: make test-kernels"
sed -n '/^<!-- kernels: make/,/^<!-- .kernels/p' docs/evidence/support.md
! grep -qE '^(root	[^	]*	(5|16|1|2)|suspend	the kernel says[^	]*	1)	' build/kernels/*/table
