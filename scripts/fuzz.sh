#!/usr/bin/env bash
# Runs the fuzzers of the module, one after the other, for the given time each:
#   scripts/fuzz.sh 20s            all
#   scripts/fuzz.sh 5m 'CFI|ELF'   those whose names match
# If an input fails, go writes it to the package's testdata/fuzz. Commit it as a test. All other seeds there are of real
# programs: GOPROF_SEEDS=1 makes them again.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
which=${2:-.}

found=0
for pkg in $(go list ./... ./testdata/captured); do
    listed=$(go test -list '^Fuzz' "$pkg") # fails where it does not build
    for fuzzer in $(grep '^Fuzz' <<<"$listed" | grep -E "$which" || true); do
        found=$((found + 1))
        echo "== $pkg $fuzzer"
        # Inputs that reach something new are made smaller for a minute each, unless told otherwise.
        go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime "$time" -fuzzminimizetime 3s -parallel "${FUZZ_WORKERS:-1}" "$pkg"
    done
done
echo "$found fuzzers ran for $time each"
[ "$found" -gt 0 ]
