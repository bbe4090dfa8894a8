#!/usr/bin/env bash
# scripts/modes.sh PID [SECONDS]: records a JVM in each mode, by each engine, and with the events of waits and allocations, one
# after the other. Prints a line for each: samples, how many were cut or lost, and why. For programs that others wrote
# (docs/evidence/accuracy.md). GOPROF_BINARY names another goprof than ./goprof. The recordings are deleted.
set -euo pipefail
goprof=$(realpath "${GOPROF_BINARY:-$(dirname "$0")/../goprof}") # a relative one is looked for where the caller stands
cd "$(dirname "$0")/.."
pid=$1 seconds=${2:-5}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# mode NAME FLAG ... records once.
mode() {
    local name=$1
    shift
    if ! "$goprof" record --pid "$pid" -d "$seconds" -v -o "$out/$name.collapsed" "$@" 2>"$out/$name.txt" &&
        ! grep -q ^samples "$out/$name.txt"; then
        printf '%-11s %s\n' "$name" "$(grep ^goprof: "$out/$name.txt" | head -1)"
        return
    fi
    awk -v name="$name" '
        $1 == "Profile" { quality = $2; sub(":", "", quality) }
        $1 == "samples" { samples = $2 " of " $4 }
        $1 == "truncated" { $1 = ""; cut = $0 }
        $1 == "lost" { $1 = ""; lost = $0 }
        $1 == "goprof" && /of CPU/ { cpu = $2 }
        END { printf "%-11s %-4s %s; cut%s; lost%s; goprof used %s\n", name, quality, samples, cut, lost, cpu }
    ' "$out/$name.txt"
}

mode ptrace -r 500
mode perf -r 500 --engine perf
mode wall --mode wall
mode looks --mode off-cpu
mode off-cpu --event off-cpu
mode lock --event lock
mode alloc --event alloc
mode exceptions --event exceptions
