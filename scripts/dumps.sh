#!/usr/bin/env bash
# Measures how long goprof dump and jstack take for a JVM with some 290 threads: on a calm machine, and beside busy loops.
#   scripts/dumps.sh [loops]     12 busy loops, for at most a minute; needs a JDK (GOPROF_JDKS, JAVA_HOME) with jstack
set -euo pipefail
cd "$(dirname "$0")/.."
loops=${1:-12}
java=$(scripts/jdk.sh)/bin
make --no-print-directory build
work=$(mktemp -d)
trap 'rm -rf "$work"; kill $(jobs -p) 2>/dev/null || true' EXIT
cat >"$work/Threads.java" <<'END'
public class Threads {
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 270; i++) {
            boolean computes = i < 4;
            new Thread(() -> run(computes), "worker-" + i).start();
        }
        Thread.sleep(1000);
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }
    static void run(boolean computes) {
        for (long n = 0; ; n++) {
            if (!computes) java.util.concurrent.locks.LockSupport.park();
        }
    }
}
END
"$java/java" "$work/Threads.java" >"$work/out" &
jvm=$!
until grep -q ready "$work/out"; do sleep 0.1; done
echo "$("$java/java" -version 2>&1 | head -1), $(ls "/proc/$jvm/task" | wc -l) threads, $(nproc) CPUs"

took() { # name, command...
    local name=$1
    shift
    TIMEFORMAT="$name: %R s, of CPU time %U s and %S s of the kernel"
    time timeout 25 "$@" >"$work/dump" 2>"$work/err" || echo "$name: FAILED, or more than 25 s"
    echo "    $(wc -l <"$work/dump") lines"
}
for beside in 0 "$loops"; do
    echo "$beside busy loops beside:"
    for ((i = 0; i < beside; i++)); do timeout 60 sh -c 'while :; do :; done' & done
    sleep 1
    begun=$SECONDS
    for ((round = 0; round < 3 && SECONDS - begun < 30; round++)); do # the loops end after a minute
        took "goprof dump" ./goprof dump --pid $jvm
        took "without locks" ./goprof dump --pid $jvm --locks=false
        took jstack "$java/jstack" $jvm
    done
done
