#!/usr/bin/env bash
# Runs the tests on a real arm64 kernel with real arm64 JVMs, emulated (scripts/arm64.sh). Go and Java are compiled here.
#   scripts/test-arm64.sh             every JDK of vmstructs/releases.txt that has arm64, some hours
#   scripts/test-arm64.sh 17 25       only these
# STAGES=regexp    only some of: unit thread preempter visit perf wall threads stops live leaf desk cores foreign session diagnose
#                  end-to-end virtual shadow steps pauth-shadow pauth-steps 16k-shadow 64k-shadow. thread to wall look at programs of C, which
#                  unit leaves out. foreign reads on this CPU the cores that the stage cores has left in build/arm64/cores
# LEAVES=number    samples of each program, compiler and JDK of the stage leaf (300)
# STOPS, STEPS     of the shadow oracle for each JDK and mode (1000), and of the single-step oracle for each JDK and CPU (100000)
# ROWS=regexp      modes of the shadow oracle (testdata/oracle/matrix_rows_test.go)
# LIMIT=seconds    timeout of a stage; TESTS=regexp only these tests of the stages
# PACKAGES=regexp  only these packages of unit; GOPROF_PROVE=1 also runs the tests of make prove
# Each stage's whole output is in build/arm64. At the end the script prints tables for docs/evidence/support.md.
set -euo pipefail
cd "$(dirname "$0")/.."

jdks=("$@")
. scripts/releases.sh
[ $# != 0 ] || read -ra jdks <<<"$(releases arm64)"
rows=${ROWS:-^(default|-Xint|C1 only|-TieredCompilation|ZGC|.PreserveFramePointer|branch protection)$}
out=build/arm64
pauth=max,pauth-impdef=on
failed=()
ran=()

prepare() {
    scripts/arm64.sh build "${jdks[@]}"
    scripts/jdk.sh >/dev/null
    mkdir -p "$out"
    classes=$(go test -count 1 -v -run '^TestClasses$' ./testdata/jvmtest | sed -n 's/.*classes are in //p')
    rm -rf "$out/classes" "$out/bin"
    [[ ! cores =~ ^(${STAGES:-.*})$ ]] || rm -rf "$out/cores" # of another commit, perhaps
    cp -r "$classes" "$out/classes"
    GOARCH=arm64 CGO_ENABLED=0 scripts/build.sh -trimpath -o "$out/bin/goprof"
}

name_of() { echo "${1#goprof/}" | tr / -; }

compile() { # a package's tests
    local binary
    binary=$out/bin/$(name_of "$1").test
    [ -e "$binary" ] || GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$binary" "./${1#goprof/}"
}

# The JDKs of a list, as GOPROF_JDKS has them.
homes() { local jdk; for jdk; do printf '%s=/jdk/%s\n' "$jdk" "$jdk"; done | paste -sd :; }

# Those of the JDKs that are wanted that are in a list, too.
among() { local jdk; for jdk in "${jdks[@]}"; do [[ " $* " != *" $jdk "* ]] || echo "$jdk"; done; }

stage() { # name, timeout in seconds, JDKs, package, test flags...
    local name=$1 limit=$2 versions=$3 package=$4 log=$out/$1.log start=$SECONDS status=0
    shift 4
    [[ $name =~ ^(${STAGES:-.*})$ ]] || return 0
    [ -n "$versions" ] || return 0
    compile "$package"
    [ "${LIMIT:-$limit}" -ge "$limit" ] || limit=$LIMIT
    # shellcheck disable=SC2086 # a list
    scripts/arm64.sh run --timeout "$limit" --env GOPROF_EMULATED=1 --env GOPROF_SLOW=40 --env GOPROF_SHOW=1 --env GOPROF_REQUIRE_JVM=1 --env GOPROF_JDKS="$(homes $versions)" \
        --env GOPROF_PROVE="${GOPROF_PROVE:-}" --env GOPROF_BINARY="/host/$out/bin/goprof" "${with[@]}" \
        "cp -r $out/classes /tmp/classes; export GOPROF_CLASSES=/tmp/classes
        cd $package && /host/$out/bin/$(name_of "$package").test -test.v -test.parallel 1 -test.timeout $((limit - 60))s $(printf '%q ' "$@" ${TESTS:+-test.run "$TESTS"})" >"$log" || status=$?
    tell
}

tell() {
    ran+=("$name")
    [ "$status" = 0 ] || failed+=("$name")
    echo "| $name | $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped | $((SECONDS - start)) s, status $status |"
    grep -E '^ *--- FAIL|^panic:' "$log" || true
}

count() { grep -c "^ *--- $1" "$log" || true; }

# All that needs no JVM, of every package, in one boot. (What is held against objdump is so on any machine; here it takes an hour.)
unit() {
    local name=unit log=$out/unit.log start=$SECONDS status=0 package
    [[ $name =~ ^(${STAGES:-.*})$ ]] || return 0
    for package in $(GOARCH=arm64 go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' \
        ./... ./testdata/jvmtest ./testdata/captured ./testdata/oracle | grep -E "${PACKAGES:-.}"); do
        compile "$package"
    done
    # shellcheck disable=SC2016
    scripts/arm64.sh run --timeout "${LIMIT:-5400}" --env GOPROF_EMULATED=1 --env GOPROF_SLOW=40 --env GOPROF_JDKS=none --env BIN="/host/$out/bin" --env GOPROF_BINARY="/host/$out/bin/goprof" 'status=0
        for package in $(cd $BIN && ls *.test | sed s/.test//); do
            echo "== $package"
            (cd ${package//-//} && $BIN/$package.test -test.short -test.v -test.timeout 2400s -test.skip AgainstObjdump) || status=1
        done; exit $status' >"$log" || status=$?
    tell
}

# The machine's cores, read on another CPU.
foreign() {
    local name=foreign log=$PWD/$out/foreign.log start=$SECONDS status=0
    [[ $name =~ ^(${STAGES:-.*})$ ]] || return 0
    GOPROF_FOREIGN_CORES=$PWD/$out/cores go test -count 1 -v -run '^TestForeignCores$' ./testdata/oracle >"$log" || status=$?
    tell
}

prepare
with=()
echo "$(date -u +%F) $(git rev-parse --short HEAD), $(qemu-system-aarch64 --version | head -1)"
unit
few=$(among 17 25)
desk='TestLocks|TestDump|TestTriage|TestCore|TestDamagedCores'
cores='TestKernelCores'
stage thread 3600 "$few" sampler/osthread
stage preempter 5400 "$few" sampler/ptrace
for engine in visit perf wall threads stops; do stage $engine 10800 "$few" sampler/$engine; done
stage live 14400 "$few" testdata/oracle -test.skip "$desk|$cores|TestShadow|TestSteps|TestVirtual|TestMatrix|TestChurn|Shares|JavacIsWhole"
with=(--env GOPROF_LEAF_SAMPLES="${LEAVES:-300}")
stage leaf 21600 "$few" testdata/oracle -test.run 'TestLeaf$'
with=()
stage desk 7200 "$few" testdata/oracle -test.run "$desk"
with=(--env GOPROF_PROVE=1 --env GOPROF_KEEP_CORES="/host/$out/cores")
stage cores 7200 "$few" testdata/oracle -test.run "$cores"
with=()
foreign
stage session 3600 "$few" session
stage diagnose 3600 "$few" diagnose
stage end-to-end 3600 "$few" cmd/goprof
stage virtual 7200 "$(among $(releases arm64 21))" testdata/oracle -test.run 'TestShadowVirtual|TestVirtual'
with=(--env GOPROF_MATRIX="${STOPS:-1000}" --env GOPROF_MATRIX_ROWS="$rows")
stage shadow 14400 "${jdks[*]}" testdata/oracle -test.run 'TestMatrix$'
with=(--env GOPROF_STEPS=$((${STEPS:-100000} * $(wc -w <<<"$few"))))
stage steps 10800 "$few" testdata/oracle -test.run 'TestSteps$'
export GOPROF_ARM64_CPU=$pauth
stage pauth-steps 10800 "$few" testdata/oracle -test.run 'TestSteps$'
with=(--env GOPROF_MATRIX="${STOPS:-1000}" --env GOPROF_MATRIX_ROWS="$rows")
stage pauth-shadow 14400 "${jdks[*]}" testdata/oracle -test.run 'TestMatrix$'
unset GOPROF_ARM64_CPU
with=(--env GOPROF_MATRIX="${STOPS:-1000}" --env GOPROF_MATRIX_ROWS='^(default|ZGC)$')
for size in 16k 64k; do
    export GOPROF_ARM64_PAGES=$size
    stage $size-shadow 7200 "${jdks[*]}" testdata/oracle -test.run 'TestMatrix$'
done

for name in "${ran[@]}"; do
    case $name in
        *shadow) echo; echo "$name"; grep '^|' "$out/$name.log" || true ;;
        *steps) grep -h 'together:' "$out/$name.log" | sed "s/.*together/$name/" || true ;;
    esac
done
if [ ${#failed[@]} != 0 ]; then
    echo "FAILED: ${failed[*]} (build/arm64)"
    exit 1
fi
