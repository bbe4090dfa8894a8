#!/usr/bin/env bash
# Makes packages of what `make dist` has built: .deb, .rpm, .apk and .tar.gz for both CPUs, in build/packages, with a list of
# modules (CycloneDX), a statement of how they were built (in-toto), and checksums.
#   scripts/packages.sh                               makes them
#   GOPROF_SIGNING_KEY=FILE scripts/packages.sh       also signs the checksums with this key of minisign
# The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
nfpm_version=v2.43.4 # the newest whose modules can be had without their authors' own servers

dist=build/dist out=build/packages stage=build/packages/stage
commit=$(git rev-parse HEAD)
built=$(go version -m "$dist/goprof-linux-amd64" 2>/dev/null | sed -n 's/.*vcs.revision=//p' || true)
[ "$built" = "$commit" ] || scripts/dist.sh
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

nfpm=$PWD/build/tools/nfpm-$nfpm_version
if [ ! -x "$nfpm" ]; then
    echo "building nfpm $nfpm_version" >&2
    GOBIN=$PWD/build/tools CGO_ENABLED=0 go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$nfpm_version"
    mv build/tools/nfpm "$nfpm"
fi

rm -rf "$out"
mkdir -p "$stage/man"
VERSION=$(go version -m "$dist/goprof-linux-amd64" | sed -n 's/^\tmod\tgoprof\tv\([^\t]*\).*/\1/p')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH

# Pages and completions are the same for both CPUs; this machine can run one of the binaries.
own=$dist/goprof-linux-$(go env GOHOSTARCH)
"$own" man "$stage/man"
gzip -9n "$stage"/man/*
"$own" completion bash >"$stage/goprof.bash"
"$own" completion zsh >"$stage/_goprof"
"$own" completion fish >"$stage/goprof.fish"
"$own" licenses >"$stage/copyright"
cp scripts/packages/agent.yaml "$stage/"
sed 's#/usr/local/bin/#/usr/bin/#' scripts/agent/goprof-agent.service >"$stage/goprof-agent.service"
chmod 0644 "$stage"/goprof* "$stage/_goprof" "$stage/agent.yaml"

for cpu in amd64 arm64; do
    binary=$dist/goprof-linux-$cpu
    install -m 0755 "$binary" "$stage/goprof"
    go run ./scripts/release sbom "$binary" >"$out/goprof-linux-$cpu.cdx.json"
    cp "$out/goprof-linux-$cpu.cdx.json" "$stage/sbom.cdx.json"
    for kind in deb rpm apk; do
        GOARCH=$cpu "$nfpm" package -f scripts/packages/nfpm.yaml -p "$kind" -t "$out/goprof-linux-$cpu.$kind" >&2
    done
    tar -C "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - \
        --transform "s#^#goprof-$VERSION/#" goprof copyright sbom.cdx.json man goprof.bash _goprof goprof.fish \
        goprof-agent.service agent.yaml | gzip -9n >"$out/goprof-linux-$cpu.tar.gz"
done
go run ./scripts/release provenance "$dist"/goprof-linux-* >"$out/provenance.json"
rm -r "$stage"
(cd "$out" && sha256sum -- * >SHA256SUMS)
if [ -n "${GOPROF_SIGNING_KEY:-}" ]; then
    minisign -S -s "$GOPROF_SIGNING_KEY" -m "$out/SHA256SUMS"
fi
ls -l "$out" >&2
