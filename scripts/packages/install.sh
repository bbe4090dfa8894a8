#!/bin/sh
# Installs goprof from a release: fetches the archive for this CPU, verifies it, and puts the program and its pages in place.
#   install.sh FROM [PREFIX]     FROM is the URL or the folder of a release; PREFIX is /usr/local, or ~/.local without root
# The archive must match the release's SHA256SUMS. With minisign and GOPROF_KEY=FILE (the public key), the signature must match, too.
set -eu
fail() { echo "install.sh: $1" >&2; exit 1; }
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
from=${1%/}
if [ "$(id -u)" = 0 ]; then prefix=${2:-/usr/local}; else prefix=${2:-$HOME/.local}; fi
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
prefix=$(absolute "$prefix")
key=${GOPROF_KEY:+$(absolute "$GOPROF_KEY")}

[ "$(uname -s)" = Linux ] || fail "goprof looks at JVMs on Linux only"
case $(uname -m) in
    x86_64) cpu=amd64 ;;
    aarch64) cpu=arm64 ;;
    *) fail "there is no goprof for $(uname -m)" ;;
esac
archive=goprof-linux-$cpu.tar.gz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get() {
    case $from in
        https://*)
            if command -v curl >/dev/null; then curl -fsSL --proto '=https' -o "$work/$1" "$from/$1"
            else wget -q --max-redirect=0 -O "$work/$1" "$from/$1"; fi ;;
        *://*) fail "$from: only https is fetched" ;;
        *) cp "$from/$1" "$work/$1" ;;
    esac || fail "cannot get $from/$1"
}
get SHA256SUMS
get "$archive"
if [ -n "$key" ]; then
    command -v minisign >/dev/null || fail "GOPROF_KEY is set, and minisign is not installed"
    get SHA256SUMS.minisig
    (cd "$work" && minisign -Vq -p "$key" -m SHA256SUMS) || fail "the signature of SHA256SUMS is wrong"
fi
(cd "$work" && grep " [ *]\{0,1\}$archive\$" SHA256SUMS | sha256sum -c --status -) || fail "$archive is not what SHA256SUMS says"

tar -xzf "$work/$archive" -C "$work"
cd "$work"/goprof-*/
install -d "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/doc/goprof" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
install -m 0755 goprof "$prefix/bin/goprof"
install -m 0644 man/* "$prefix/share/man/man1/"
install -m 0644 copyright sbom.cdx.json goprof-agent.service agent.yaml "$prefix/share/doc/goprof/"
install -m 0644 goprof.bash "$prefix/share/bash-completion/completions/goprof"
install -m 0644 _goprof "$prefix/share/zsh/site-functions/_goprof"
install -m 0644 goprof.fish "$prefix/share/fish/vendor_completions.d/goprof.fish"
"$prefix/bin/goprof" version
