#!/usr/bin/env bash
# Tests the packages of build/packages as their users would. Each is installed into a root of its own, records a JVM of this
# machine from there, is upgraded with a changed configuration, and removed. Needs root, debootstrap, rpm, minisign and
# python3-venv. Installs these if it may.
#   scripts/packages-test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/packages
[ -e "$out/SHA256SUMS" ] || scripts/packages.sh
(cd "$out" && sha256sum --quiet -c SHA256SUMS)
scripts/tools.sh debootstrap rpm minisign
cpu=$(go env GOHOSTARCH)
java=$(scripts/jdk.sh)/bin/java

work=$(mktemp -d)
jvm=
finish() {
    [ -z "$jvm" ] || kill "$jvm" 2>/dev/null || true
    for root in "$work"/root-*; do
        umount -l "$root/proc" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT
step() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir "$work/classes"
"${java%/java}/javac" -d "$work/classes" scripts/packages/Busy.java
"$java" -Xmx64m -cp "$work/classes" Busy &
jvm=$!

# A changed configuration stays, and a recording of the JVM outside succeeds.
works_in() { # root
    mount -t proc proc "$1/proc"
    chroot "$1" /usr/bin/goprof record --pid "$jvm" -d 2s -o /tmp/out.collapsed
    grep -q 'Busy.main' "$1/tmp/out.collapsed" || fail "the recording does not have Busy.main"
    chroot "$1" /usr/bin/goprof agent --config /etc/goprof/agent.yaml --check
    umount "$1/proc"
}
has_all_files() { # root
    local f
    for f in usr/share/man/man1/goprof-record.1.gz usr/share/bash-completion/completions/goprof usr/share/doc/goprof/copyright \
        usr/share/zsh/site-functions/_goprof usr/share/fish/vendor_completions.d/goprof.fish \
        usr/lib/systemd/system/goprof-agent.service etc/goprof/agent.yaml; do
        [ -s "$1/$f" ] || fail "$f is missing"
    done
    grep -q '^ExecStart=/usr/bin/goprof ' "$1/usr/lib/systemd/system/goprof-agent.service" || fail "the unit starts another program"
}

step "deb: a Debian root"
deb=$out/goprof-linux-$cpu.deb root=$work/root-deb
. scripts/debian.sh
debootstrap --variant=minbase --no-check-gpg stable "$root" "$(mirror)" >"$work/log" 2>&1 || { tail -5 "$work/log" >&2; exit 1; }
cp "$deb" "$root/tmp/goprof.deb"
chroot "$root" dpkg -i /tmp/goprof.deb
has_all_files "$root"
works_in "$root"
echo "rate: 7" >>"$root/etc/goprof/agent.yaml"
mkdir "$work/deb"
dpkg-deb -R "$deb" "$work/deb"
sed -i 's/^Version: .*/Version: 99.0.0/' "$work/deb/DEBIAN/control"
echo "rate: 19" >>"$work/deb/etc/goprof/agent.yaml"
dpkg-deb -b "$work/deb" "$root/tmp/newer.deb" >/dev/null
chroot "$root" dpkg --force-confold -i /tmp/newer.deb
grep -q '^rate: 7' "$root/etc/goprof/agent.yaml" || fail "the upgrade has lost the configuration"
works_in "$root"
chroot "$root" dpkg -r goprof
[ ! -e "$root/usr/bin/goprof" ] && [ -e "$root/etc/goprof/agent.yaml" ] || fail "what -r leaves"
chroot "$root" dpkg -P goprof
[ ! -e "$root/etc/goprof/agent.yaml" ] || fail "the configuration is left by -P"

step "rpm: an empty root with a database of rpm"
rpm=$out/goprof-linux-$cpu.rpm root=$work/root-rpm
mkdir -p "$root/proc" "$root/tmp" "$root/bin"
cp /bin/busybox "$root/bin/sh" 2>/dev/null || { scripts/tools.sh busybox && cp "$(command -v busybox)" "$root/bin/sh"; }
rpm --root "$root" --initdb
rpm --root "$root" --nodeps -i "$rpm"
has_all_files "$root"
works_in "$root"
echo "rate: 7" >>"$root/etc/goprof/agent.yaml"
rpm --root "$root" --nodeps -U --replacepkgs "$rpm"
grep -q '^rate: 7' "$root/etc/goprof/agent.yaml" || fail "the upgrade has lost the configuration"
rpm --root "$root" -e goprof
[ ! -e "$root/usr/bin/goprof" ] || fail "the program is left"
[ "$(cat "$root"/etc/goprof/agent.yaml* | grep -c '^rate: 7')" = 1 ] || fail "the changed configuration is gone"

step "apk: unpacked (no apk is to be had here)"
root=$work/root-apk
mkdir -p "$root/proc" "$root/tmp"
tar -xzf "$out/goprof-linux-$cpu.apk" -C "$root" 2>/dev/null
grep -q '^pkgname = goprof$' "$root/.PKGINFO" || fail "no .PKGINFO"
has_all_files "$root"
works_in "$root"

step "tar.gz: install.sh, and what it refuses"
minisign -G -W -p "$work/key.pub" -s "$work/key" >/dev/null
mkdir "$work/release"
cp "$out/goprof-linux-$cpu.tar.gz" "$out/SHA256SUMS" "$work/release"
minisign -S -s "$work/key" -m "$work/release/SHA256SUMS" >/dev/null
install=$PWD/scripts/packages/install.sh
(cd "$work" && GOPROF_KEY=key.pub "$install" release prefix)
"$work/prefix/bin/goprof" record --pid "$jvm" -d 1s -o - | grep -q Busy.main || fail "the installed goprof does not record"
[ -s "$work/prefix/share/man/man1/goprof-record.1.gz" ] || fail "the installed goprof has no manual page"
echo x >>"$work/release/goprof-linux-$cpu.tar.gz"
! scripts/packages/install.sh "$work/release" "$work/prefix" 2>/dev/null || fail "a changed archive is installed"
(cd "$work/release" && sha256sum "goprof-linux-$cpu.tar.gz" >SHA256SUMS)
! GOPROF_KEY=$work/key.pub scripts/packages/install.sh "$work/release" "$work/prefix" 2>/dev/null ||
    fail "checksums that nobody has signed are taken"

step "Homebrew and Nix: the syntax alone (neither is to be had here)"
scripts/tools.sh ruby nix-instantiate
ruby -c scripts/packages/goprof.rb
nix-instantiate --parse scripts/packages/goprof.nix >/dev/null

step "the list of modules: CycloneDX's own validator"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'cyclonedx-python-lib[json-validation]'
for bom in "$out"/*.cdx.json; do
    "$work/venv/bin/python" scripts/packages/validate.py "$bom"
done
go version -m "$out/../dist/goprof-linux-$cpu" | awk '$1 == "dep" {print $2}' | while read -r module; do
    grep -q "\"name\": \"$module\"" "$out/goprof-linux-$cpu.cdx.json" || fail "$module is not in the list"
done

step "signatures: minisign, with a key made here"
cp "$out/SHA256SUMS" "$work/SHA256SUMS"
minisign -S -s "$work/key" -m "$work/SHA256SUMS" >/dev/null
minisign -V -q -p "$work/key.pub" -m "$work/SHA256SUMS"
echo >>"$work/SHA256SUMS"
! minisign -V -q -p "$work/key.pub" -m "$work/SHA256SUMS" 2>/dev/null || fail "a changed file is taken for the signed one"
echo "all packages work"
