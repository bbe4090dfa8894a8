#!/usr/bin/env bash
# make test-matrix: holds goprof against every JDK from 8 to 27 in every way to run it, and prints a table of what it saw.
#   scripts/matrix.sh           all that scripts/jdks.sh finds or fetches
#   scripts/matrix.sh 8 21      only these
# STOPS (2000) says how often each JVM is stopped, ROWS picks ways to run one by a regular expression, GOPROF_JDKS names JDKs
# that are there already. HUGEPAGES=300 has root reserve so many large pages for the run (vm.nr_hugepages), for the row that
# needs them. The whole output is kept in build/matrix.log.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh
if [ $# != 0 ] || [ -z "${GOPROF_JDKS:-}" ]; then
    GOPROF_JDKS=$(scripts/jdks.sh "$@")
fi
GOPROF_GRAAL=${GOPROF_GRAAL:-$(scripts/graal.sh)}
if [ -n "${HUGEPAGES:-}" ]; then
    before=$(cat /proc/sys/vm/nr_hugepages)
    trap 'echo "$before" >/proc/sys/vm/nr_hugepages' EXIT
    echo "$HUGEPAGES" >/proc/sys/vm/nr_hugepages
fi
GOPROF_ZERO=${GOPROF_ZERO:-$(scripts/jdks.sh zero || true)}
export GOPROF_GRAAL GOPROF_JDKS GOPROF_ZERO GOPROF_REQUIRE_JVM=1 GOPROF_MATRIX=${STOPS:-2000} GOPROF_MATRIX_ROWS=${ROWS:-}
mkdir -p build
status=0
go test -count 1 -timeout 12h -v -run '^Test(Matrix|ZeroVM)$' ./sampler/session >build/matrix.log 2>&1 || status=$?
echo "$(date -u +%F) $(git rev-parse --short HEAD), $(uname -r), $(nproc) CPUs, STOPS=$GOPROF_MATRIX"
grep -E '^\||^n/a|^- jdk|^$' build/matrix.log || true
if [ "$status" != 0 ]; then
    grep -E -B1 -A20 '^ *--- FAIL' build/matrix.log >&2 || tail -40 build/matrix.log >&2
    echo "the whole output is in build/matrix.log" >&2
fi
exit "$status"
