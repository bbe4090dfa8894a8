#!/usr/bin/env bash
# Builds cmd/goprof as it is released. Arguments go to go build: scripts/build.sh -o goprof
# - The program begins where the limit of address space is looked at first (arch/entry).
# - Packages of others that run once for each batch or symbol are compiled without inlining, which makes the program
#   0.6 MB smaller. Tests are compiled as usual.
set -euo pipefail
small=()
for package in crypto/... math/big net/... vendor/... go.yaml.in/... github.com/spf13/... \
    github.com/ianlancetaylor/demangle; do
    small+=("-gcflags=$package=-l")
done
exec "${GO:-go}" build -ldflags "-s -w -E goprof/arch/entry.start" "${small[@]}" "$@" ./cmd/goprof
