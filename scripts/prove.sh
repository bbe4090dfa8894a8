#!/usr/bin/env bash
# Runs the oracles in their long form, for docs/evidence/accuracy.md, and prints what each counted.
#   scripts/prove.sh             all, some hours
#   scripts/prove.sh TestShadow  one, or those whose whole names match: 'TestShadow.*'
# STOPS, STEPS, SAMPLES, KILLS and CHURN (seconds) make it shorter or longer. The whole output is in build/prove.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-.*}
export GOPROF_REQUIRE_JVM=1 GOPROF_REQUIRE_CHROMIUM=1 GOPROF_PROVE=1
export GOPROF_SHADOW_STOPS=${STOPS:-100000} GOPROF_JNI_STOPS=${STOPS:-100000}
export GOPROF_SIGNAL_STOPS=$((GOPROF_JNI_STOPS / 20))
export GOPROF_VIRTUAL_LOAD=60s GOPROF_VIRTUAL_PARKED=5000
export GOPROF_STEPS=${STEPS:-5000000}
export GOPROF_JAVAC_SAMPLES=${SAMPLES:-50000} GOPROF_INTRINSICS_SAMPLES=${SAMPLES:-50000}
export GOPROF_SHARES_SAMPLES=${SAMPLES:-50000} GOPROF_SHARES_STRICT=1
export GOPROF_CHURN_SECONDS=${CHURN:-600}
export GOPROF_KILLS=${KILLS:-10000} GOPROF_CROWD=30s GOPROF_HOUR=3600000 GOPROF_STOPS=300
export GOPROF_LEAF_SAMPLES=${SAMPLES:-5000}
export GOPROF_MIX_SAMPLES=${SAMPLES:-20000} GOPROF_HANDOVER_SAMPLES=${SAMPLES:-20000} GOPROF_POOL_SAMPLES=${SAMPLES:-2000}
export GOPROF_PLACES=${SAMPLES:-5000} GOPROF_OVERLOAD_SECONDS=15
export GOPROF_LOCKS_SNAPSHOTS=10000 GOPROF_TRIAGE_SECONDS=10 GOPROF_EVENT_STACKS=${SAMPLES:-20000}

scripts/tools.sh gdb
if grep -qxE "$which" <<<TestSixHundredThousandSamples; then scripts/tools.sh chromium; fi
scripts/jdk.sh >/dev/null
out=build/prove
mkdir -p "$out"
if grep -qxE "$which" <<<TestPrograms; then
    GOPROF_SERVERS=$(scripts/servers.sh lucene h2 spring) || echo "NOT TRIED: TestPrograms, which needs Maven" >&2
    export GOPROF_SERVERS
fi
tests='TestLeaf|TestLeafCalls|TestShadow|TestSteps|TestJNI|TestSignals|TestWitnesses|TestContendedNatives|TestThrowing|TestIntrinsics|TestJavacIsWhole|TestShares|TestSharesBesideJFR|TestChurn|TestShadowVirtual|TestVirtualLoad|TestVirtualParked|TestMix|TestAnHourIsSmall|TestHourOfJFR|TestGoprofStoppedByForce|TestPerfJavacIsWhole|TestLocks|TestLocksWhileObjectsMove|TestLocksBeside.*|TestLocksOfVirtualThreads|TestLocksBusy|TestCore.*|TestTriage.*|TestAlloc|TestAllocBesideAsync|TestAllocSlowdown|TestWaitsBesideOthers|TestEventCounts|TestEventFunctions|TestEventStacks|TestProbesEnd|TestTTSP|TestOffCPUBySwitches|TestAllocatedWhileRecorded|TestHeapGrowth'
# make test runs these with the newest JDK alone.
tests+='|TestTrouble|TestManyThreads|TestContainers|TestSilent(Stacks|Variables)|TestRecord(IsSmall|Threads|UntilTarget.*|OfStoppedJVM|ChangesNothing)|TestWall(WhileObjectsMove|Shares|Time|OnlyStates|NeverStopsTheBlocked|NonBlocking)'
tests+='|TestInside|TestPlaces|TestSmallLeaf|TestRecursive|TestMadeCode|TestCritical|TestLateNames|TestDeepStacks.*|TestDumpOfStoppedJVM'
# make test has a part of what these try, or fewer samples.
tests+='|TestKinds|TestUnknownJVM|TestLibrariesReplaced|TestFiltersAreNamed|TestCertainOfAll|TestLateWalks|TestHandOver|TestRequestPools|TestOverloaded.*|TestPerfVirtualServer|TestVirtualServer|TestDeadlocksOfEachKind|TestFirstSightsCount|TestRhythm'
# make test measures these again if something is wrong.
tests+='|TestWakers|TestChains|TestLeaks|TestSlowRequests|TestForeign|TestWallVirtual|TestLockVirtual|TestPerf(Intrinsics|Virtual|SharesOfJava)'
echo "$(date -u +%F) $(git rev-parse --short HEAD), $(uname -r), $(nproc) CPUs"
failed=()
ran=0
prove() { # folder, tests
    local binary
    binary=$PWD/$out/$(tr / - <<<"$1").test
    go test -c -o "$binary" "./$1"
    for test in $(cd "$1" && "$binary" -test.list "^($2)$" | grep -xE "$which"); do
        ran=$((ran + 1))
        echo "== $test"
        status=0
        (cd "$1" && "$binary" -test.run "^$test\$" -test.v -test.timeout 12h) >"$out/$test.log" 2>&1 || status=$?
        # Of go's own lines those that say what ran, and how it ended; of the tests' all.
        grep -Ev '^=== (CONT|PAUSE|NAME)' "$out/$test.log"
        [ "$status" = 0 ] || failed+=("$test")
    done
}
prove testdata/oracle "$tests"
prove sampler/visit 'TestEndsOfGoprof|TestCrowd|TestShortBursts|TestPools|TestShortLives|TestLoneThreadIsMetAsOftenAsItRuns|TestGroupSharesFairly|TestNothingIsCaughtUpWith'
prove sampler/perf TestPerfIsNotInStep
prove sampler/wall TestWallCost
prove testdata/jvmtest TestKinds
prove heap 'TestWithinErrors|TestPrograms|TestLiveTruth'
prove output/heat TestSixHundredThousandSamples
# make test has some of their cases, drawn by lot.
prove vmstructs 'TestLiveCollectors|TestLiveObjects'
prove triage/vitals 'TestHoldOut|TestFinalizers|TestCompileQueues'
prove output/jfr TestReadsJDK
prove output/diff TestRates
prove cmd/goprof TestTopOnce
if [ $ran = 0 ]; then
    echo "there is no oracle $which" >&2
    exit 1
fi
if [ ${#failed[@]} != 0 ]; then
    echo "FAILED: ${failed[*]}" >&2
    exit 1
fi
