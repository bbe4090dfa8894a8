#!/bin/sh
# Runs in the guest of scripts/kernels.sh. The file "sections" names the sections to run:
#   root      all commands on one JVM, as root
#   user      the same as the JVM's user, without any right of root
#   settings  recordings under settings of the kernel, limits and single capabilities
#   cgroup    commands on a JVM in a control group of version 2 with limits, and frozen
#   oom       the kernel kills a JVM in such a group for want of memory, during a recording and under the agent
#   boot      few commands, for kernels with words on their command line; if cgroups of version 1 are mounted (cgroups=v1), the
#             JVM has memory and CPU limits of these
#   hotplug   a CPU goes off and on again, during recordings and under the agent
#   suspend   the machine sleeps, and its clock is set, during recordings and under the agent
#   cpus      shares of a program that keeps its own account, on all CPUs of the guest
# Writes a line for each command to out/table: section, command, exit code, the samples, and goprof's other messages, each followed
# by ^. Tabs separate them.
cd /job
mkdir -p out/root out/user out/settings out/cgroup out/oom out/boot out/hotplug out/suspend out/cpus
chmod 777 out/* # of RESUME, too

known() { grep -qs "^$1	$2	" out/table; } # from a job that was ended: RESUME

look() { # section, name, command...
    section=$1 name=$2
    shift 2
    ! known "$section" "$name" || return 0
    rm -f "out/$section/$name".*
    echo "$section $name" >/dev/console
    for seconds in ${lengths:-4 15}; do # emulated code may bring nothing in the shorter time
        rc=0
        timeout -k 10 300 "$@" ${record:+-d ${seconds}s} >"out/$section/$name.out" 2>"out/$section/$name.err" </dev/null || rc=$?
        [ $rc = 7 ] && [ -n "$record" ] || break
    done
    printf '%s\t%s\t%s\t%s\t%s\n' "$section" "$name" "$rc" "$(sed -n 's/^samples *\([0-9,]* of [0-9,]*\).*/\1/p' "out/$section/$name.err" | head -1)" \
        "$(grep -a -e '^goprof: ' -e '^try: ' -e '^Note .*kernel' -e '^Note .*the process ' -e '^Profile .*no samples' "out/$section/$name.err" | tr '\n\t' '^ ')" >>out/table
    tar -cf /dev/vdc -C /job out # comes back even if the machine is ended before all is done
    sync
}

recorded() { # section, name, words before goprof and its flags, with "record" between them
    section=$1 name=$2
    shift 2
    record=1
    look "$section" "$name" "$@" --pid "$pid" -v -o "out/$section/$name.collapsed"
    record=
}

begin() { # log, words before java...
    log=$1
    shift
    # At the lowest priority: six busy threads would leave goprof a fifth of one emulated CPU.
    "$@" nice -n 19 java -XX:+UseSerialGC -Xmx256m -cp classes demo.Demo 100000 >"$log" 2>&1 &
    until grep -q READY "$log"; do sleep 1; done
    pid=$(pgrep java)
}

end() {
    kill "$pid"
    wait
}

looks() { # who, words before each command...
    who=$1 record=
    shift
    begin out/"$who"/demo.log "$@"
    look "$who" doctor "$@" ./goprof doctor "$pid"
    look "$who" list "$@" ./goprof list
    look "$who" events "$@" ./goprof events "$pid"
    while read -r name flags; do
        # shellcheck disable=SC2086 # flags
        recorded "$who" "$name" "$@" ./goprof record $flags
    done <<RECORDINGS
ptrace --engine ptrace -r 20
perf --engine perf -r 20
auto --engine auto -r 20
wall --mode wall -r 5
off-cpu --event off-cpu
lock --event lock
alloc --event alloc=1m
exceptions --event exceptions
page-faults --event page-faults=1
kernel --kernel --engine perf -r 20
ttsp --event ttsp
RECORDINGS
    look "$who" dump "$@" ./goprof dump "$pid" --wait-stop 1m
    look "$who" locks "$@" ./goprof locks "$pid"
    look "$who" triage "$@" ./goprof triage "$pid" -d 5s
    look "$who" top "$@" ./goprof top "$pid" --once -d 3s
    mkdir -m 777 "out/$who/agent"
    look "$who" agent timeout --foreground --preserve-status -s INT 30 "$@" ./goprof agent --files "out/$who/agent" --every 10s
    end
}

settings() {
    record=
    begin out/settings/demo.log ./as 1000 none
    while read -r set who flags; do
        key=${set%%=*} value=${set#*=}
        case $key in
            kernel.*) before=$(sysctl -n "$key" 2>/dev/null) && sysctl -qw "$set" || continue ;;
        esac
        case $who in
            root) words= ;;
            user) words="./as 1000 none" ;;
            limited) words="setpriv --bounding-set=-sys_resource prlimit --memlock=65536:65536" ;;
        esac
        # shellcheck disable=SC2086 # flags
        case $key in
            kernel.*) recorded settings "$set, $who: record $flags" $words ./goprof record $flags ;;
            memlock) recorded settings "$set, no CAP_SYS_RESOURCE: record $flags" $words ./goprof record $flags ;;
            *) recorded settings "$set with $who: record $flags" ./as "$([ "$key" = user ] && echo 1000 || echo 1001)" "$who" ./goprof record $flags ;;
        esac
        case $key in
            kernel.yama.ptrace_scope) [ "$value" = 3 ] || sysctl -qw "$key=0" ;;
            kernel.unprivileged_bpf_disabled) ;;
            kernel.*) sysctl -qw "$key=$before" ;;
        esac
    done <settings
    end
}

grouped() { # section: a JVM in a control group of version 2
    group=/sys/fs/cgroup/jvm
    echo "+cpu +memory" >/sys/fs/cgroup/cgroup.subtree_control
    mkdir -p $group
    echo 300M >$group/memory.max
    # shellcheck disable=SC2016 # of the inner shell
    begin "out/$1/demo.log" sh -c 'echo $$ >/sys/fs/cgroup/jvm/cgroup.procs; exec "$@"' sh
}

cgroup() {
    record=
    grouped cgroup
    look cgroup memory ./goprof memory "$pid"
    echo "20000 100000" >$group/cpu.max
    recorded cgroup "record, cpu.max" ./goprof record
    look cgroup "triage, cpu.max" ./goprof triage "$pid" -d 10s
    echo max >$group/cpu.max
    echo 1 >$group/cgroup.freeze
    look cgroup "dump, frozen" ./goprof dump "$pid"
    look cgroup "triage, frozen" ./goprof triage "$pid" -d 5s
    recorded cgroup "record, frozen" ./goprof record
    echo 0 >$group/cgroup.freeze
    end
}

# The agent for 45 s. timeout would repeat its signal (--foreground: it does not), and goprof takes one that comes 0.1 s later, as here, for a
# second request. Without a file that is younger than the file "happened" it has failed.
agent() { # section, what happens meanwhile
    # shellcheck disable=SC2016 # of the inner shell
    look "$1" "agent, $2" sh -c 'timeout --foreground --preserve-status -s INT 45 ./goprof agent --files "$0" --every 5s &&
        { find "$0" -name "*.pb.gz" -newer happened | grep -q . || { echo "goprof: no file of the time after that" >&2; exit 1; }; }' "out/$1/agent"
}

oom() {
    record=
    for by in record agent; do
        ! known oom "$by, out of memory" || continue
        grouped oom
        touch happened
        (sleep 15; echo 20M >$group/memory.max) & # the kernel kills at once
        if [ $by = agent ]; then agent oom "out of memory"; else lengths=60 recorded oom "record, out of memory" ./goprof record; fi
        kill "$pid" 2>/dev/null
        wait
    done
}

boot() {
    record=
    # shellcheck disable=SC2016 # of the inner shell
    if [ -d /sys/fs/cgroup/memory ]; then
        mkdir -p /sys/fs/cgroup/memory/jvm /sys/fs/cgroup/cpu/jvm
        echo 300M >/sys/fs/cgroup/memory/jvm/memory.limit_in_bytes
        begin out/boot/demo.log sh -c 'for of in memory cpu; do echo $$ >/sys/fs/cgroup/$of/jvm/cgroup.procs; done; exec "$@"' sh
        echo 20000 >/sys/fs/cgroup/cpu/jvm/cpu.cfs_quota_us
    else
        begin out/boot/demo.log env
    fi
    look boot doctor ./goprof doctor "$pid"
    recorded boot perf ./goprof record --engine perf -r 20
    recorded boot alloc ./goprof record --event alloc=1m
    recorded boot sched:sched_switch ./goprof record --event sched:sched_switch
    look boot memory ./goprof memory "$pid"
    look boot triage ./goprof triage "$pid" -d 10s
    recorded boot auto ./goprof record -r 20
    end
}

during() { # section, what happens, the command that makes it happen
    record=
    begin "out/$1/demo.log" env
    for engine in ptrace perf; do
        (sleep 6; $3) &
        lengths=25 recorded "$1" "record --engine $engine, $2" ./goprof record --engine $engine -r 20
        wait $!
    done
    (sleep 15; $3; touch happened) &
    agent "$1" "$2"
    end
}

hotplug() { during hotplug "CPU 1 goes off and on" switch; }

switch() { for online in 0 1 0 1; do echo $online >/sys/devices/system/cpu/cpu1/online; sleep 3; done; }

suspend() {
    during suspend "the clock is set an hour ahead" "date -s +1hour"
    grep -q mem /sys/power/state || return 0 # not every machine can
    during suspend "the machine sleeps" doze
    # shellcheck disable=SC2016 # of the inner shell
    look suspend "the kernel says that it slept three times" sh -c '[ "$(grep -c "PM: suspend exit" out/suspend/dmesg)" = 3 ]'
}

doze() { # for 10 s
    echo +10 >/sys/class/rtc/rtc0/wakealarm
    echo mem >/sys/power/state
    dmesg | grep -i -e "PM: suspend" -e "ACPI: PM: Waking" >out/suspend/dmesg
}

cpus() { # each recording beside what the program says of the same time
    record=
    [ -p commands ] || mkfifo commands
    look cpus doctor ./goprof doctor
    for threads in $(cat threads); do
        ! known cpus $threads-triage || continue
        java -XX:+UseSerialGC -Xmx256m -cp classes truth.Shares $threads <commands >out/cpus/truth-$threads 2>&1 &
        exec 3>commands
        until grep -q READY out/cpus/truth-$threads; do sleep 1; done
        pid=$(pgrep java)
        for engine in perf ptrace; do
            ! known cpus $threads-$engine || continue
            echo mark >&3
            lengths=$((8 / threads + 3)) recorded cpus $threads-$engine ./goprof record --engine $engine
            echo truth >&3
            sleep 1
            grep cpu_ns out/cpus/truth-$threads | tail -1 >out/cpus/$threads-$engine.truth
            tar -cf /dev/vdc -C /job out
        done
        look cpus $threads-dump ./goprof dump "$pid"
        look cpus $threads-triage ./goprof triage "$pid" -d 5s
        exec 3>&-
        end
    done
}

for section in $(cat sections); do
    case $section in
        root) looks root env ;;
        user) looks user ./as 1000 none ;;
        *) $section ;;
    esac
done
dmesg | grep -i -e uprobe -e goprof >out/dmesg
