#!/usr/bin/env bash
# Runs every fuzzer of the module, one after the other, for the time given:
#   scripts/fuzz.sh 20s
# A failing input is left by go under the package's testdata/fuzz and should be committed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}

found=0
for pkg in $(go list ./...); do
    for fuzzer in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
        found=$((found + 1))
        echo "== $pkg $fuzzer"
        go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime "$time" "$pkg"
    done
done
echo "$found fuzzers ran for $time each"
