#!/usr/bin/env bash
# make test-matrix: tests goprof on every JDK of vmstructs/releases.txt with each set of options, and prints a table. Then runs the
# tests of what differs between JDKs on each.
#   scripts/matrix.sh           all that scripts/jdks.sh finds or fetches
#   scripts/matrix.sh 8 21      only these
# STOPS          how often each JVM is stopped (2000)
# ROWS           a regular expression that selects sets of options
# GOPROF_JDKS    JDKs that are there already
# HUGEPAGES=300  as root: reserves so many large pages (vm.nr_hugepages) for the row that needs them
# MISSING=1      a JDK that cannot be fetched is no error
# ONLY=matrix, ONLY=live    only one half
# The whole output is in build/matrix.log and build/matrix-live.log.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh
if [ $# != 0 ] || [ -z "${GOPROF_JDKS:-}" ]; then
    GOPROF_JDKS=$(REQUIRE_ALL=$([ -n "${MISSING:-}" ] || echo 1) scripts/jdks.sh "$@")
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
failed=0

run() { # log, regexp of tests
    local status=0
    go test -count 1 -p 1 -parallel 1 -timeout 12h -v -run "$2" ./testdata/oracle ./diagnose >"$1" 2>&1 || status=$?
    if [ "$status" != 0 ]; then
        failed=1
        grep -E -B1 -A20 '^ *--- FAIL' "$1" >&2 || tail -40 "$1" >&2
        echo "the whole output is in $1" >&2
    fi
}

if [ "${ONLY:-matrix}" = matrix ]; then
    run build/matrix.log '^Test(Matrix|ZeroVM)$'
    echo "$(date -u +%F) $(git rev-parse --short HEAD), $(uname -r), $(nproc) CPUs, STOPS=$GOPROF_MATRIX"
    grep -E '^\||^n/a|^- jdk|^$' build/matrix.log || true
fi
if [ "${ONLY:-live}" = live ]; then
    export GOPROF_PROVE=1 GOPROF_VIRTUAL_PARKED=5000
    run build/matrix-live.log '^Test(Kinds|Intrinsics|Recursive|Steps|Virtual|ShadowVirtual|NoVirtual|PerfVirtual|Foreign|Critical|Contended|Trouble|ManyThreads|Containers|LibrariesReplaced|StableNames|HideInternal|Names|UnknownJVM|Wall|OffCPU|JVMsUntouched)'
    grep -E '^ *--- (PASS|FAIL|SKIP): [A-Za-z]+/jdk[^/]* ' build/matrix-live.log | sed -E 's/^ *--- ([A-Z]+): ([A-Za-z]+)\/([^ ]*).*/\2 \3 \1/' |
        awk '{ result[$1] = result[$1] " " substr($2, 4) ":" tolower($3) } END { for (test in result) print test ":" result[test] }' | sort
fi
exit "$failed"
