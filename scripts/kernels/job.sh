#!/bin/sh
# Runs in the guest of scripts/kernels.sh: every kind of look at one JVM, as root and as the JVM's user with no right of root.
# Prints a line for each look: who, what, exit code, the samples and what goprof says besides, one after the other, separated by tabs.
cd /job
mkdir -p out/root out/user
chown 1000:1000 out/user

look() { # who, name, command...
    who=$1 name=$2
    shift 2
    echo "$who $name" >/dev/console
    rc=0
    timeout -k 10 300 "$@" >"out/$who/$name.out" 2>"out/$who/$name.err" </dev/null || rc=$?
    printf '%s\t%s\t%s\t%s\t%s\n' "$who" "$name" "$rc" "$(sed -n 's/^samples *\([0-9,]* of [0-9,]*\).*/\1/p' "out/$who/$name.err" | head -1)" \
        "$(grep -a -e '^goprof: ' -e '^try: ' "out/$who/$name.err" | tr '\n\t' '  ')" >>out/table
}

looks() { # who, words before each command...
    who=$1
    shift
    "$@" java -XX:+UseSerialGC -Xmx256m -cp classes demo.Demo 100000 >out/"$who"/demo.log 2>&1 &
    until grep -q READY out/"$who"/demo.log; do sleep 1; done
    pid=$(pgrep java)
    look "$who" doctor "$@" ./goprof doctor "$pid"
    look "$who" list "$@" ./goprof list
    look "$who" events "$@" ./goprof events "$pid"
    while read -r name flags; do
        # shellcheck disable=SC2086 # flags
        look "$who" "$name" "$@" ./goprof record --pid "$pid" -d 4s -v -o "out/$who/$name.collapsed" $flags
    done <<RECORDINGS
ptrace
perf --engine perf
auto --engine auto
wall --mode wall
off-cpu --event off-cpu
lock --event lock
alloc --event alloc=64k
exceptions --event exceptions
page-faults --event page-faults=1
kernel --kernel --engine perf
ttsp --event ttsp
RECORDINGS
    look "$who" dump "$@" ./goprof dump "$pid"
    look "$who" locks "$@" ./goprof locks "$pid"
    look "$who" triage "$@" ./goprof triage "$pid" -d 5s
    look "$who" top "$@" ./goprof top "$pid" --once -d 3s
    mkdir -m 777 "out/$who/agent"
    look "$who" agent timeout --preserve-status -s INT 40 "$@" ./goprof agent --files "out/$who/agent" --every 10s
    kill "$pid"
    wait
}
looks root env
looks user setpriv --reuid 1000 --regid 1000 --clear-groups
dmesg | grep -i -e uprobe -e goprof >out/dmesg
