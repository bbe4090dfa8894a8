#!/usr/bin/env bash
# Measures what `goprof convert` costs. Records a JVM with two threads that run javac, at 1,000 Hz, and converts a million such
# samples to each format. Prints seconds of CPU time by format, for a million samples. Then the same for made-up stacks.
#   scripts/convert.sh [seconds]                 records for that long (120)
#   scripts/convert.sh out.jfr                   uses this recording of goprof
# The recording is repeated until it has a million samples. Files are in ./build/convert.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/convert
recording=$out/javac.jfr
what=${1:-120}

if [ -f "$what" ]; then
    recording=$(realpath "$what")
else
    scripts/tools.sh
    jdk=$(scripts/jdk.sh)
    make --no-print-directory build
    mkdir -p "$out/classes"
    "$jdk/bin/javac" -nowarn -g -d "$out/classes" testdata/java/JavacLoop.java testdata/java/Control.java
    # The program ends with its standard input, which a sleep holds open.
    exec {input}< <(exec sleep $((what + 60)))
    sleeper=$!
    "$jdk/bin/java" -Xmx1g -cp "$out/classes" truth.JavacLoop 0 30 1 2 <&"$input" >"$out/java.log" 2>&1 &
    java=$!
    trap 'kill "$java" "$sleeper" 2>/dev/null || true; wait "$java" 2>/dev/null || true' EXIT
    sleep 3
    ./goprof record --pid "$java" -d "${what}s" -r 1000 -o "$recording"
    kill "$java"
fi
GOPROF_CONVERT=$recording go test ./output/convert -run '^$' -bench 'Convert(Recorded)?$' -benchtime 1x -timeout 10m
