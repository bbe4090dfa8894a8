#!/usr/bin/env bash
# The oracles in their long form, for docs/accuracy.md: prints what each counted.
#   scripts/prove.sh             all, some hours
#   scripts/prove.sh TestShadow  one, or those that match
# STOPS, STEPS, SAMPLES and CHURN (seconds) make it shorter or longer. The whole output is kept in build/prove.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-.}
export GOPROF_REQUIRE_JVM=1 GOPROF_PROVE=1
export GOPROF_SHADOW_STOPS=${STOPS:-100000} GOPROF_JNI_STOPS=${STOPS:-100000}
export GOPROF_SIGNAL_STOPS=$((GOPROF_JNI_STOPS / 20))
export GOPROF_VIRTUAL_LOAD=60s GOPROF_VIRTUAL_PARKED=5000
export GOPROF_STEPS=${STEPS:-5000000}
export GOPROF_JAVAC_SAMPLES=${SAMPLES:-50000} GOPROF_INTRINSICS_SAMPLES=${SAMPLES:-50000}
export GOPROF_SHARES_SAMPLES=${SAMPLES:-50000} GOPROF_SHARES_STRICT=1
export GOPROF_CHURN_SECONDS=${CHURN:-600}

scripts/tools.sh gdb
scripts/jdk.sh >/dev/null
out=build/prove
mkdir -p "$out"
go test -c -o "$out/session.test" ./sampler/session
tests='TestShadow|TestSteps|TestJNI|TestSignals|TestWitnesses|TestContendedNatives|TestThrowing|TestIntrinsics|TestJavacIsWhole|TestShares|TestSharesBesideJFR|TestChurn|TestShadowVirtual|TestVirtualLoad|TestVirtualParked'
echo "$(date -u +%F) $(git rev-parse --short HEAD), $(uname -r), $(nproc) CPUs"
failed=()
for test in $(cd sampler/session && "../../$out/session.test" -test.list "^($tests)$" | grep -E "$which"); do
    echo "== $test"
    status=0
    (cd sampler/session && "../../$out/session.test" -test.run "^$test\$" -test.v -test.timeout 12h) >"$out/$test.log" 2>&1 || status=$?
    # Of go's own lines those that say what ran, and how it ended; of the tests' all.
    grep -Ev '^=== (CONT|PAUSE|NAME)' "$out/$test.log"
    [ "$status" = 0 ] || failed+=("$test")
done
if [ ${#failed[@]} != 0 ]; then
    echo "FAILED: ${failed[*]}" >&2
    exit 1
fi
