#!/usr/bin/env bash
# Makes a container image of what `make dist` has built, without a daemon: the folder build/image in OCI's layout, for both CPUs.
#   skopeo copy --all oci:build/image docker://REGISTRY/goprof:TAG      pushes it; crane and podman work, too
set -euo pipefail
cd "$(dirname "$0")/.."
dist=build/dist
[ -e "$dist/SHA256SUMS" ] || scripts/dist.sh
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
rm -rf build/image
version=$(go version -m "$dist/goprof-linux-amd64" | sed -n 's/.*vcs.revision=//p')
go run ./scripts/image -out build/image -version "$version" "amd64=$dist/goprof-linux-amd64" "arm64=$dist/goprof-linux-arm64"
echo "build/image: commit ${version:0:12}"
