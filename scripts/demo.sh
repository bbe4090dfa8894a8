#!/usr/bin/env bash
# From nothing to a flame graph: builds goprof, starts a sample JVM, records it, draws it.
#   scripts/demo.sh [seconds to record]
# Needs Go, and a JDK, which it installs if it may. Files are in ./build/demo. The JVM ends with the script.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/quietly.sh
seconds=${1:-10}
out=build/demo

if ! command -v go >/dev/null; then
    echo "make demo needs Go (https://go.dev/dl)" >&2
    exit 1
fi
jdk=$(scripts/jdk.sh)
quietly "$out/build.log" "building goprof, about a minute the first time" make --no-print-directory build
mkdir -p "$out/classes"
quietly "$out/javac.log" "compiling the sample program" "$jdk/bin/javac" -nowarn -g -d "$out/classes" testdata/java/Demo.java

# The shop stays open longer than we look at it, and closes by itself if this script is killed.
"$jdk/bin/java" -cp "$out/classes" demo.Demo $((seconds + 60)) >"$out/demo.log" 2>&1 </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true' EXIT
until grep -q '^READY' "$out/demo.log"; do
    if ! kill -0 "$pid" 2>/dev/null; then
        cat "$out/demo.log" >&2
        exit 1
    fi
    sleep 0.1
done

echo "+ goprof record --pid $pid -d ${seconds}s -o $out/demo.collapsed"
./goprof record --pid "$pid" -d "${seconds}s" -o "$out/demo.collapsed"
echo "+ goprof flame $out/demo.collapsed -o $out/demo.html"
./goprof flame "$out/demo.collapsed" -o "$out/demo.html"
echo "open it in a browser: $PWD/$out/demo.html"
