#!/usr/bin/env bash
# Builds cmd/goprof as it is released. Arguments go to go build: scripts/build.sh -o goprof
# The program begins where the limit of address space is looked at first (arch/entry).
set -euo pipefail
exec "${GO:-go}" build -ldflags "-s -w -E goprof/arch/entry.start" "$@" ./cmd/goprof
