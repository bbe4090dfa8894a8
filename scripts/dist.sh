#!/usr/bin/env bash
# Makes what a release consists of: the static binary for each CPU, and their checksums.
#   scripts/dist.sh          builds the present commit into build/dist
#   scripts/dist.sh verify   builds the commit of the binaries in build/dist again, in a new clone elsewhere, and compares the bytes;
#                            'verify amd64' only that CPU's
# It builds what is committed, in a fresh clone (its tags make the version). The same commit and the same Go give the same bytes:
# the binaries contain no path of this machine (-trimpath), no C, and no setting of the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=build/dist
cpus=(amd64 arm64)

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

build() { # commit, directory for the result, CPUs
    local out=$2 cpu
    git clone -q --no-checkout . "$work/src"
    git -C "$work/src" checkout -q --detach "$1"
    for cpu in "${@:3}"; do
        (cd "$work/src" && env -u GOFLAGS -u GOEXPERIMENT GOENV=off GOPROXY="$(go env GOPROXY)" \
            GOOS=linux GOARCH="$cpu" GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0 GOWORK=off \
            scripts/build.sh -buildvcs=true -trimpath -o "$out/goprof-linux-$cpu")
    done
    (cd "$out" && sha256sum goprof-linux-* >SHA256SUMS)
}

case ${1:-} in
    "")
        [ -z "$(git status --porcelain)" ] || echo "what is not committed is not in it" >&2
        build HEAD "$work" "${cpus[@]}"
        mkdir -p "$dist"
        mv "$work"/goprof-linux-* "$work/SHA256SUMS" "$dist"
        cat "$dist/SHA256SUMS"
        echo "$dist: commit $(git rev-parse --short HEAD), $(go env GOVERSION)"
        ;;
    verify)
        commit=$(go version -m "$dist/goprof-linux-amd64" | sed -n 's/.*vcs.revision=//p')
        mkdir "$work/again"
        GOCACHE=$work/cache build "$commit" "$work/again" ${2:-"${cpus[@]}"}
        if ! (cd "$dist" && sha256sum -c "$work/again/SHA256SUMS") || ! (cd "$dist" && sha256sum --quiet -c SHA256SUMS); then
            echo "$dist is not what commit ${commit:0:12} gives with $(go env GOVERSION)" >&2
            exit 1
        fi
        echo "$dist: commit ${commit:0:12} gives the same bytes again"
        ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
