#!/usr/bin/env bash
# Runs once a night what takes too long for each change: the race detector, known vulnerabilities, every fuzzer, and the oracles.
#   scripts/nightly.sh                   all of it; FUZZTIME=30m for each fuzzer (5m), STOPS= and others of prove.sh
#   scripts/nightly.sh race vulnerable   parts: race, vulnerable, fuzz, prove
# Runs every part even if one failed. At the end says which failed and which could not run.
set -euo pipefail
cd "$(dirname "$0")/.."

# Go's tool that compares the functions which a program calls with a list of vulnerable ones. It is no dependency of goprof: go
# builds it for itself. The list is on the network; GOVULNDB=file:///folder names a copy of it.
govulncheck=golang.org/x/vuln/cmd/govulncheck@${GOVULNCHECK:-v1.1.4}

failed=() missing=()

race() { # The race detector needs cgo, which the program is built without.
    CGO_ENABLED=1 go test -race -short -timeout 30m ./... ./testdata/jvmtest ./testdata/ctest ./testdata/oracle
}

vulnerable() {
    local out status=0
    out=$(go run "$govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} ./... 2>&1) || status=$?
    echo "$out"
    if [ $status != 0 ] && grep -qE 'fetching vulnerabilities|dial tcp|403 Forbidden|no such host' <<<"$out"; then
        echo "the list of vulnerabilities cannot be reached from here, so nothing was compared."
        echo "try: GOVULNDB=file:///FOLDER make nightly, with a copy of the list, or a machine with a network"
        missing+=(vulnerable)
        return 0
    fi
    return $status
}

fuzz() { scripts/fuzz.sh "${FUZZTIME:-5m}"; }

prove() { scripts/prove.sh; }

for part in "${@:-race vulnerable fuzz prove}"; do
    for name in $part; do
        case $name in race | vulnerable | fuzz | prove) ;; *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
        echo "== $name"
        start=$SECONDS
        if "$name"; then echo "== $name: ended, $((SECONDS - start)) s"; else failed+=("$name"); echo "== $name: FAILED, $((SECONDS - start)) s"; fi
    done
done
[ ${#missing[@]} = 0 ] || echo "could not run: ${missing[*]}"
if [ ${#failed[@]} != 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
