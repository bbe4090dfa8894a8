#!/usr/bin/env bash
# Makes the recordings of unwind/testdata/arm64 and heap/testdata again: walks and heaps of arm64 JVMs, with the memory that goprof
# read. The JVMs run on the emulated machine (scripts/arm64.sh), on CPUs with and without pointer authentication. Run this script
# when goprof reads other memory than before. Then `go test ./unwind -run TestRecordedArm64 -update` writes the walks' stacks.
#   scripts/arm64-walks.sh [REGEXP]   only tests that match
# JDKS="17 25"     makes only recordings that need no other JDKs
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/releases.sh
# shellcheck disable=SC2086 # a list
scripts/arm64.sh build ${JDKS:-}
scripts/jdk.sh >/dev/null
failed=0
out=build/arm64
mkdir -p "$out"
rm -rf "$out/classes"
cp -r "$(go test -count 1 -v -run '^TestClasses$' ./testdata/jvmtest | sed -n 's/.*classes are in //p')" "$out/classes"
for package in testdata/oracle heap; do
    GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$out/bin/${package//\//-}.test" "./$package"
done

record() { # JDKs, number of walks, test, package
    local package=${4:-testdata/oracle}
    [[ $3 =~ ${only:-.} ]] || return 0
    local jdk list="" log=$out/$3-${GOPROF_ARM64_CPU:-}.log
    for jdk in $1; do list+=:$jdk=/jdk/$jdk; done
    scripts/arm64.sh run --timeout 1800 --env GOPROF_JDKS="${list#:}" --env GOPROF_RECORD_WALKS="$2" --env GOPROF_RECORD_SECONDS=200 --env GOPROF_EMULATED=1 --env GOPROF_SLOW=40 \
        --env GOPROF_RECORD_FLAGS="${flags:-}" --env GOPROF_REQUIRE_JVM=1 --env GOPROF_RECORD=1 \
        "cp -r $out/classes /tmp/classes; export GOPROF_CLASSES=/tmp/classes
        cd $package && /host/$out/bin/${package//\//-}.test -test.v -test.timeout 1800s -test.run '^$3\$'" >"$log" || failed=1
    grep -E '^ *---|_test.go|^panic|^ +[a-z0-9-]* ' "$log" || true
}

only=${1:-.}
record "17 25" 0 TestRecordHeaps heap
for GOPROF_ARM64_CPU in neoverse-n1 max,pauth-impdef=on; do
    export GOPROF_ARM64_CPU
    record "$(releases arm64)" 30 TestRecordShadow
    record "$(releases arm64)" 1 TestRecordKinds
    record "17 25" 40 TestRecordWalks
    record "21 27" 6 TestRecordVirtualWalks
    record "17 25" 1 TestRecordRareWalks
    record "17 25" 1 TestContendedNatives
    record 8 60 TestRecordUnwinding
done
flags=-XX:UseBranchProtection=standard record "21 25" 1 TestRecordKinds
exit $failed
