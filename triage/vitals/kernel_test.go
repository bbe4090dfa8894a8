//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/maybe"
	"goprof/process/procfs"
)

// of reads the facts that the kernel tells of a process. The process is no JVM.
func of(t *testing.T, pid int) *Vitals {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	v := &Vitals{p: p, dir: procfs.OpenDir(pid), mounts: procfs.CgroupMounts(b), threads: map[int]*knownThread{}}
	t.Cleanup(v.Close)
	return v
}

// child starts a shell that runs a command until the test ends.
func child(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait()
	})
	return c
}

// controlGroup makes a control group with a limit of a twentieth of a CPU, if this machine permits it.
func controlGroup(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range procfs.CgroupMounts(b) {
		dir := filepath.Join(m.Point, "goprof-test-"+strconv.Itoa(os.Getpid()))
		if !m.Controls("cpu") || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		file, limit := "cpu.max", "5000 100000"
		if m.Version == 1 {
			file, limit = "cpu.cfs_quota_us", "5000"
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(limit), 0); err == nil {
			return dir
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s: %v", dir, err)
		}
	}
	t.Skip("this machine lets us make no control group with a limit: TestGroupFiles reads the files of such a group")
	return ""
}

// TestThrottled: a process that uses up the CPU time of its group is throttled. goprof finds the group.
func TestThrottled(t *testing.T) {
	dir := controlGroup(t)
	c := child(t, "while :; do :; done")
	t.Cleanup(func() { // this runs before the group is removed
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait()
	})
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, c.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	v := of(t, c.Process.Pid)
	var a, b Reading
	v.readCgroup(&a.Cgroup)
	for range 6000 { // until the process was throttled ten times, however long that takes here
		v.readCgroup(&b.Cgroup)
		if n, ok := grown(a.Cgroup.Throttled, b.Cgroup.Throttled).Get(); ok && n >= 10 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	g := &b.Cgroup
	if g.CPUs.Or(0) != 0.05 || !g.Limited.Or(false) || g.ThrottledTime.Or(0) <= 0 {
		t.Errorf("%+v", g)
	}
	a.At, b.At = time.Unix(0, 0), time.Unix(1, 0)
	r := Between(&a, &b)
	if r.Throttled.Or(0) < 10 || r.Throttled.Or(0) > r.Periods.Or(0) {
		t.Errorf("%v of %v periods", r.Throttled, r.Periods)
	}
	var free Cgroup
	of(t, os.Getpid()).readCgroup(&free)
	if free.Limited.Or(true) || free.CPUs.IsKnown() {
		t.Logf("the test itself has a limit: %+v", free)
	}
}

// TestGroupFiles: groups of version 2 lie below each other, as a kernel writes them. The tightest limit counts.
func TestGroupFiles(t *testing.T) {
	root := t.TempDir()
	write := func(dir string, files map[string]string) {
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("", map[string]string{"cgroup.controllers": "cpu memory pids\n"})
	write("pod", map[string]string{"cpu.max": "50000 100000\n", "cpu.stat": "usage_usec 9\nnr_periods 100\n" +
		"nr_throttled 40\nthrottled_usec 5000\n",
		"memory.max": "1000000\n", "memory.current": "900000\n", "pids.max": "max\n",
		"memory.stat": "anon 500000\nfile 300000\nshmem 100000\n"})
	write("pod/app", map[string]string{"cpu.max": "max 100000\n",
		"cpu.stat":   "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
		"memory.max": "max\n", "memory.current": "500000\n", "memory.events": "low 0\nmax 7\noom 2\noom_kill 1\n",
		"pids.max": "100\n", "pids.current": "42\n"})
	g := group{procfs.Group{Version: 2, Dirs: []string{filepath.Join(root, "pod/app"), filepath.Join(root, "pod"), root}}}
	var c Cgroup
	g.readCPU(&c)
	g.readMemory(&c)
	c.Tasks = g.tightest("pids.current", "pids.max")
	want := Cgroup{CPUs: maybe.Known(0.5), Limited: maybe.Known(true), Periods: maybe.Known[uint64](100),
		Throttled: maybe.Known[uint64](40), ThrottledTime: maybe.Known(5 * time.Millisecond),
		Memory: Pool{Used: maybe.Known[uint64](900000), Max: maybe.Known[uint64](1000000)},
		Cache:  maybe.Known[uint64](200000), MemoryLimited: maybe.Known(true),
		Kills: maybe.Known[uint64](1),
		Tasks: Pool{Used: maybe.Known[uint64](42), Max: maybe.Known[uint64](100)}}
	if c != want {
		t.Errorf("%+v\nwant %+v", c, want)
	}
	var none Cgroup
	top := group{procfs.Group{Version: 2, Dirs: []string{root}}}
	top.readCPU(&none)
	if none.Limited != maybe.Known(false) || none.CPUs.IsKnown() {
		t.Errorf("%+v", none)
	}
}

// TestProcessAndMachine: facts that every Linux tells are known.
func TestProcessAndMachine(t *testing.T) {
	v := of(t, os.Getpid())
	var before, r Reading
	v.readLimits(&before)
	var files []*os.File
	for range 7 {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	v.readProcess(&r)
	v.readLimits(&r)
	for _, f := range files {
		f.Close()
	}
	if n, ok := grown(before.Process.FDs, r.Process.FDs).Get(); !ok || n < 7 || n > 20 {
		t.Errorf("%v files, %v before", r.Process.FDs, before.Process.FDs)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || r.Process.FDLimit.Or(0) != limit.Cur {
		t.Errorf("limit %v, want %d", r.Process.FDLimit, limit.Cur)
	}
	var cpus unix.CPUSet
	err := unix.SchedGetaffinity(os.Getpid(), &cpus)
	if err != nil || r.Process.CPUsAllowed.Or(0) != uint64(cpus.Count()) {
		t.Errorf("%v CPUs, want %d", r.Process.CPUsAllowed, cpus.Count())
	}
	p := &r.Process
	if p.RSS.Or(0) < 1<<20 || !p.Swap.IsKnown() || !p.MajorFaults.IsKnown() || p.Threads.Or(0) < 2 || !p.CPU.IsKnown() ||
		p.ThreadLimit.Or(0) < 100 {
		t.Errorf("%+v", p)
	}
	var m Machine
	readMachine(&m)
	if m.CPUs.Or(0) == 0 || m.Running.Or(0) == 0 ||
		m.CPUTime.Or(procfs.CPUTime{}).Total() == 0 || !m.SwapOut.IsKnown() {
		t.Errorf("%+v", m)
	}
	if _, err := os.Stat("/proc/pressure/cpu"); err == nil && !m.CPUPressure.IsKnown() {
		t.Error("pressure is not known")
	}
	v.readKernelThreads(&r)
	// It is not always the first one: the kernel begins anew with the lowest numbers when it has used the highest.
	main := slices.IndexFunc(r.Threads, func(th Thread) bool { return th.TID == os.Getpid() })
	if len(r.Threads) < 2 || main < 0 || !r.Threads[main].Waited.IsKnown() {
		t.Errorf("%+v", r.Threads)
	}
}

// TestThreadLimit: which processes the limit of a user's processes applies to.
func TestThreadLimit(t *testing.T) {
	const limits = "Max processes             77                   77                   processes\n"
	for status, holds := range map[string]bool{
		"Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n": true,
		"Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n":             false,
		"Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000001000000\n": false, // CAP_SYS_RESOURCE
		"": true,
	} {
		if got := threadLimit([]byte(limits), []byte(status)); (got.Or(0) == 77) != holds || got.Or(0) < 77 {
			t.Errorf("%q: %v", status, got)
		}
	}
}

// socketsOnceRead lists sockets when the sent bytes have arrived at one: on a busy machine a thread of the kernel
// brings them.
func socketsOnceRead(t *testing.T, to net.Conn, v *Vitals) []Socket {
	t.Helper()
	raw, err := to.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	to.SetReadDeadline(time.Now().Add(time.Minute))
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		return err != nil || n > 0
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := v.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSockets: goprof follows descriptors to the other end of their connections.
func TestSockets(t *testing.T) {
	v := of(t, os.Getpid())
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		server, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err) // this machine has no IPv6
			continue
		}
		defer server.Close()
		client, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		other, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := client.Write(make([]byte, 123)); err != nil {
			t.Fatal(err)
		}
		all, states := socketsOnceRead(t, other, v), map[string]int{}
		for _, s := range all {
			switch {
			case s.Remote.String() == server.Addr().String():
				states["client "+s.State]++
				one, err := v.Sockets(s.FD)
				if err != nil || len(one) != 1 || one[0].Local != s.Local {
					t.Errorf("%+v, %v", one, err)
				}
			case s.Local.String() == server.Addr().String() && s.Remote.String() == client.LocalAddr().String():
				states["server "+s.State] += int(s.Unread)
			case s.Local.String() == server.Addr().String():
				states[s.State]++
			}
		}
		if states["client ESTABLISHED"] != 1 || states["server ESTABLISHED"] != 123 || states["LISTEN"] != 1 {
			t.Errorf("%v of %+v", states, all)
		}
	}
	if s, err := v.Sockets(-1, 1<<30); err != nil || len(s) != 0 {
		t.Errorf("%+v %v", s, err)
	}
}
