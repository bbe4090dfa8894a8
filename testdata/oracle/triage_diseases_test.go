//go:build linux

package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// disease is a program of testdata/java/diseases and what makes it ill.
type disease struct {
	id     profile.FindingID
	class  string
	flags  []string // of the JVM
	ill    []string // flags that it has in its sick way only
	args   []string // behind "sick" or "well"
	oldest int      // JDK
	// make does to the sick JVM what a program cannot do to itself. It returns false where it is not permitted here.
	make  func(t *testing.T, jvm *jvmtest.JVM) bool
	old   bool // the JVM must be: it grows old while others are looked at
	prove bool // in the long form only: it has the whole machine use its disk
	// healthy: its well way is one of the ten that must be acquitted.
	healthy bool
	// beside starts what the program talks with, and returns its last argument.
	beside func(t *testing.T, way string) string
	all    bool   // with triageAll only: its rule has a neighbour in this list
	says   string // its evidence must
	// waits: sick it wants hardly any CPU, so that it is looked at beside others (go test's -parallel says how many).
	waits bool
}

// Of those that want CPU the last two come when those that wait have been looked at: the first of these must get all
// that its limit gives it, and beside the other one nobody gets enough.
var diseases = []disease{
	{id: profile.ClassLoading, class: "Loads", old: true, healthy: true, waits: true},
	{id: profile.NativeGrowth, class: "Native", flags: []string{"-Xms1g", "-Xmx1g"}, old: true, make: load,
		waits: true},
	{id: profile.DirectFull, class: "Native", flags: []string{"-XX:MaxDirectMemorySize=2m"}, make: load, waits: true},
	{id: profile.CPUHot, class: "HotLoop", healthy: true},
	{id: profile.GCBusy, class: "Garbage", flags: []string{"-Xmx600m", "-Xmn100m", "-XX:+UseParallelGC"},
		args:    []string{"100"},
		healthy: true},
	{id: profile.GCBusy, class: "Collects", args: []string{"asked"}, says: "asked for in truth.Collects.tidyUp"},
	{id: profile.GCBusy, class: "Collects", args: []string{"direct"}, flags: []string{"-XX:MaxDirectMemorySize=16m"},
		says: "direct memory", all: true},
	{id: profile.GCBusy, class: "Collects", args: []string{"humongous"}, says: "humongous", all: true, oldest: 11,
		flags: []string{"-Xmx200m", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m"}},
	{id: profile.HeapFull, class: "FullHeap", flags: []string{"-Xmx200m", "-XX:+UseSerialGC"}, healthy: true},
	{id: profile.Deadlocked, class: "Philosophers", healthy: true, waits: true},
	{id: profile.LockContention, class: "OneLock", args: []string{"monitor"}, healthy: true, waits: true},
	{id: profile.LockContention, class: "OneLock", args: []string{"lock"}, waits: true},
	{id: profile.WaitingRemote, class: "Remote", healthy: true, waits: true},
	{id: profile.CodeCacheFull, class: "FullCode", flags: []string{"-XX:ReservedCodeCacheSize=5m",
		"-XX:-UseCodeCacheFlushing", "-XX:TieredStopAtLevel=1", "-Xcomp"}, waits: true},
	{id: profile.SafepointStall, class: "Stall", ill: []string{"-XX:-UseCountedLoopSafepoints",
		"-XX:LoopStripMiningIter=0"}},
	{id: profile.CompilerBehind, class: "Uncompiled", make: holdCompilers, old: true, waits: true, all: true},
	{id: profile.Exceptions, class: "Throws", healthy: true},
	{id: profile.ThreadLeak, class: "Leak", healthy: true, waits: true},
	{id: profile.Swapping, class: "Swaps", flags: []string{"-Xmx400m"}, make: inSmallMemory, healthy: true, prove: true},
	{id: profile.MallocKept, class: "Kept", healthy: true, waits: true},
	{id: profile.MemoryLimit, class: "Swaps", flags: []string{"-Xmx400m", "-XX:+UseSerialGC"}, make: nearMemoryLimit,
		waits: true},
	{id: profile.FDLimit, class: "OpenFiles", make: fewFiles, waits: true},
	{id: profile.FinalizerBehind, class: "Finalizes", healthy: true, waits: true},
	{id: profile.Pinned, class: "Pins", flags: []string{"-Djdk.virtualThreadScheduler.parallelism=2"}, oldest: 21,
		waits: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"connections"}, waits: true, healthy: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"nested"}, waits: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"leaked"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"room"}, waits: true, healthy: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"permits"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"children"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"barrier"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-peer"}, waits: true, healthy: true, oldest: 21,
		beside: besideSockets},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-lock"}, waits: true, healthy: true, oldest: 21,
		all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-permits"}, waits: true, healthy: true, oldest: 21},
	{id: profile.CPUThrottled, class: "Hungry", make: inNarrowCgroup},
	{id: profile.CPUShort, class: "Hungry", make: besideLoops},
}

func (d *disease) String() string {
	return strings.Join(append([]string{string(d.id)}, d.args...), " ")
}

// illFor are the flags that make it ill, as far as this JDK knows them.
func (d *disease) illFor(jdk jvmtest.JDK) []string {
	if jdk.Version >= 11 {
		return d.ill
	}
	return slices.DeleteFunc(slices.Clone(d.ill), func(f string) bool {
		return strings.Contains(f, "LoopStripMining")
	})
}

func (d *disease) start(t *testing.T, jdk jvmtest.JDK, way string) *jvmtest.JVM {
	options := slices.Clone(d.flags)
	if way == "sick" {
		options = append(options, d.illFor(jdk)...)
	}
	options = append(append(options, "--", way), d.args...)
	if d.beside != nil {
		options = append(options, d.beside(t, way))
	}
	return jvmtest.Start(t, jdk, "truth."+d.class, options...)
}

// sockets is how many connections truth.Pools wants.
const sockets = 300

// besideSockets is a server that never answers, for a sick program, and clients that never ask, for a healthy one. It
// returns the server's port.
func besideSockets(t *testing.T, way string) string {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := server.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	open, next := context.WithCancel(context.Background())
	connect := server.Accept
	if way == "well" {
		server.Close() // the program takes the port
		connect = func() (net.Conn, error) { return net.Dial("tcp4", address) }
	}
	t.Cleanup(func() {
		next()
		server.Close()
	})
	go func() {
		for n := 0; n < sockets && open.Err() == nil; {
			c, err := connect()
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			n++
			context.AfterFunc(open, func() { c.Close() })
		}
	}()
	return port
}

// load has the program do what makes it ill.
func load(t *testing.T, jvm *jvmtest.JVM) bool {
	jvm.Command("load")
	return true
}

// holdCompilers keeps the compilers from running, and has the program run ever more new methods.
func holdCompilers(t *testing.T, jvm *jvmtest.JVM) bool {
	if jvm.JDK.Version == 8 {
		return false // nothing tells of its queues
	}
	_, release := jvmtest.HoldThreads(t, jvm.PID, "CompilerThre")
	t.Cleanup(release)
	return load(t, jvm)
}

// fewFiles lowers the limit of a JVM's open files: it raises it itself when it starts.
func fewFiles(t *testing.T, jvm *jvmtest.JVM) bool {
	limit := unix.Rlimit{Cur: 256, Max: 256}
	if err := unix.Prlimit(jvm.PID, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Log(err)
		return false
	}
	return true
}

// crowd is how many busy loops leave a program little of the machine.
var crowd = 3 * runtime.NumCPU()

// besideLoops takes the machine's CPUs away.
func besideLoops(t *testing.T, _ *jvmtest.JVM) bool {
	busyLoops(t, crowd)
	return true
}

// inNarrowCgroup moves a JVM into a control group that may use a fifth of a CPU.
func inNarrowCgroup(t *testing.T, jvm *jvmtest.JVM) bool {
	for _, version := range []struct{ root, file, limit string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"},
		{"/sys/fs/cgroup", "cpu.max", "20000 100000"},
	} {
		if inCgroup(t, jvm.PID, version.root, version.file, version.limit) {
			return true
		}
	}
	return false
}

// nearMemoryLimit has a JVM grow in a control group of its own, and then leaves the group hardly more than it uses.
func nearMemoryLimit(t *testing.T, jvm *jvmtest.JVM) bool {
	for _, version := range []struct{ root, limit, none, used string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "-1", "memory.usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "max", "memory.current"},
	} {
		if !inCgroup(t, jvm.PID, version.root, version.limit, version.none) {
			continue
		}
		jvm.Command("grow")
		dir := filepath.Join(version.root, fmt.Sprintf("goprof-triage-%d", jvm.PID))
		text, err := os.ReadFile(filepath.Join(dir, version.used))
		used, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		most := strconv.Itoa(used + used/33)
		return os.WriteFile(filepath.Join(dir, version.limit), []byte(most), 0o644) == nil
	}
	return false
}

// inCgroup moves a process into a control group of its own with one limit, until the test ends.
func inCgroup(t *testing.T, pid int, root, file, limit string) bool {
	procs := filepath.Join(root, "cgroup.procs")
	dir := filepath.Join(root, fmt.Sprintf("goprof-triage-%d", pid))
	if _, err := os.Stat(procs); err != nil || os.Mkdir(dir, 0o755) != nil {
		return false
	}
	t.Cleanup(func() {
		os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644)
		if err := os.Remove(dir); err != nil {
			t.Log(err)
		}
	})
	return os.WriteFile(filepath.Join(dir, file), []byte(limit), 0o644) == nil &&
		os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644) == nil
}
