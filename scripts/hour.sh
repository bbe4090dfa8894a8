#!/usr/bin/env bash
# Measures goprof's memory in a long recording: an hour of JFR at 1,000 Hz, of a JVM with two threads that run javac.
#   scripts/hour.sh [seconds]
#   chrt -i 0 scripts/hour.sh >hour.txt &     on a machine with other work
#   echo 19 >/proc/$!/autogroup                also gives its session a lower weight
# Prints goprof's memory each minute, and fails if it was ever more than 120 MB. Files are in ./build/hour.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-3600}
out=build/hour

scripts/tools.sh
jdk=$(scripts/jdk.sh)
make --no-print-directory build
mkdir -p "$out/classes"
"$jdk/bin/javac" -nowarn -g -d "$out/classes" testdata/java/JavacLoop.java testdata/java/Control.java

# The program ends with its standard input, which a sleep holds open.
exec {input}< <(exec sleep $((seconds + 120)))
sleeper=$!
"$jdk/bin/java" -Xmx1g -cp "$out/classes" truth.JavacLoop 0 30 1 2 <&"$input" >"$out/java.log" 2>&1 &
java=$!
trap 'kill "$java" "$sleeper" 2>/dev/null || true; wait "$java" 2>/dev/null || true' EXIT
sleep 3
./goprof record --pid "$java" -d "${seconds}s" -r 1000 -o "$out/hour.jfr" 2>"$out/record.log" &
record=$!
memory() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$record/status" 2>/dev/null || true; }
peak=0
while now=$(memory VmRSS) && [ -n "$now" ]; do
    most=$(memory VmHWM)
    peak=${most:-$peak}
    echo "$(date -u +%T)  $now KB, most $peak KB"
    sleep $((seconds < 120 ? 2 : 60))
done
wait "$record"
cat "$out/record.log"
ls -l "$out/hour.jfr"
[ "$peak" -le 120000 ] || { echo "more than 120 MB" >&2; exit 1; }
