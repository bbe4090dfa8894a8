package procfs

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePressure(t *testing.T) {
	const some = "some avg10=72.40 avg60=47.96 avg300=19.23 total=18944029776\n"
	const full = "full avg10=0.00 avg60=1.00 avg300=100.00 total=7\n"
	want := Pressure{Some: Stall{0.724, 0.4796, 0.1923, 18944029776 * time.Microsecond}}
	both := want
	both.Full = Stall{0, 0.01, 1, 7 * time.Microsecond}
	near := func(a, b Stall) bool {
		return math.Abs(a.Avg10-b.Avg10)+math.Abs(a.Avg60-b.Avg60)+math.Abs(a.Avg300-b.Avg300) < 1e-9 && a.Total == b.Total
	}
	for _, c := range []struct {
		name, text string
		want       Pressure
		ok         bool
	}{
		{"both", some + full, both, true},
		{"before Linux 5.13", some, want, true},
		{"full only", full, Pressure{}, false},
		{"cut off", some[:30], Pressure{}, false},
		{"no number", strings.Replace(some, "72.40", "NaN", 1), Pressure{}, false},
		{"more than all", strings.Replace(some, "72.40", "101", 1), Pressure{}, false},
		{"negative", strings.Replace(some, "72.40", "-1", 1), Pressure{}, false},
		{"another order", "some avg60=1 avg10=1 avg300=1 total=1\n", Pressure{}, false},
		{"empty", "", Pressure{}, false},
	} {
		got, ok := ParsePressure([]byte(c.text))
		if ok != c.ok || !near(got.Some, c.want.Some) || !near(got.Full, c.want.Full) {
			t.Errorf("%s: %+v %v", c.name, got, ok)
		}
	}
}

func TestParseMachineStat(t *testing.T) {
	const text = "cpu  3579636 834228 953216 2179468 12925 1 27578 2668 5 6\ncpu0 1 2 3 4 5 6 7 8 9 10\n" +
		"cpu1 1 2 3 4 5 6 7 8 9 10\n" +
		"intr 5 6 7\nctxt 550174007\nbtime 1\nprocesses 9\nprocs_running 3\nprocs_blocked 1\nsoftirq 4 4\n"
	want := MachineStat{CPUTime{3579636, 834228, 953216, 2179468, 12925, 1, 27578, 2668}, 2, 3}
	if got, ok := ParseMachineStat([]byte(text)); !ok || got != want {
		t.Errorf("%+v %v", got, ok)
	}
	if n := want.CPUTime.Total(); n != 3579636+834228+953216+2179468+12925+1+27578+2668 {
		t.Error(n)
	}
	for _, bad := range []string{"", "cpu  1 2 3\n", strings.Replace(text, "2668", "x", 1),
		strings.Replace(text, "procs_running", "procs", 1), strings.Replace(text, "3579636", "18446744073709551615", 1)} {
		if got, ok := ParseMachineStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestKeyed(t *testing.T) {
	status := []byte("Name:\tVmSwap: 7 kB\nVmRSS:\t  524288 kB\nVmSwap:\t       0 kB\n" +
		"VmData:\t12 MB\nCpus_allowed_list:\t0-3,8\n")
	for key, want := range map[string]uint64{"VmRSS": 512 << 20, "VmSwap": 0} {
		if n, ok := Kilobytes(status, key); !ok || n != want {
			t.Errorf("%s is %d %v", key, n, ok)
		}
	}
	for _, key := range []string{"VmData", "Vm", "VmRS", "Name", ""} {
		if n, ok := Kilobytes(status, key); ok {
			t.Errorf("%s is %d", key, n)
		}
	}
	if n, ok := CPUsAllowed(status); !ok || n != 5 {
		t.Errorf("%d CPUs %v", n, ok)
	}
	events := []byte("low 0\nhigh 0\nmax 13\noom 2\noom_kill 1\noom_group_kill x\n")
	if n, ok := Keyed(events, "oom"); !ok || n != 2 {
		t.Errorf("%d %v", n, ok)
	}
	if n, ok := Keyed(events, "oom_kill"); !ok || n != 1 {
		t.Errorf("%d %v", n, ok)
	}
	for _, key := range []string{"oom_group_kill", "o", "none"} {
		if n, ok := Keyed(events, key); ok {
			t.Errorf("%s is %d", key, n)
		}
	}
	limits := []byte("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max cpu time              unlimited            unlimited            seconds   \n" +
		"Max open files            1024                 4096                 files     \n")
	if n, unlimited, ok := Limit(limits, "Max open files"); n != 1024 || unlimited || !ok {
		t.Errorf("%d %v %v", n, unlimited, ok)
	}
	if _, unlimited, ok := Limit(limits, "Max cpu time"); !unlimited || !ok {
		t.Error("no limit is taken for one")
	}
	if _, _, ok := Limit(limits, "Max processes"); ok {
		t.Error("a limit that is not there")
	}
	if n, ok := MajorFaults([]byte(longStat)); !ok || n != 9 {
		t.Errorf("%d major faults %v", n, ok)
	}
}

func TestCountList(t *testing.T) {
	for text, want := range map[string]uint64{"0": 1, "0-7\n": 8, "0-3,8": 5, "1,3,5-6": 4, "": 0, "3-1": 0, "0-": 0,
		"a":  0,
		"0,": 0, "0-99999999": 0, "0;1": 0} {
		if n, ok := CountList([]byte(text)); n != want && ok || ok != (want > 0) {
			t.Errorf("%q: %d %v", text, n, ok)
		}
	}
}

func TestCgroups(t *testing.T) {
	hybrid := []byte("9:name=systemd:/\n4:memory:/api/x\n1:cpu,cpuacct:/a:b\n0::/\nnonsense\n")
	got := Memberships(hybrid)
	if len(got) != 4 || got[0].Controllers[0] != "name=systemd" || got[2].Path != "/a:b" ||
		!slices.Equal(got[2].Controllers, []string{"cpu", "cpuacct"}) || got[3].Controllers != nil {
		t.Errorf("%+v", got)
	}
	mounts := CgroupMounts([]byte("22 27 0:21 / /proc rw,relatime - proc proc rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct\n" +
		"41 31 0:38 /docker/7 /sys/fs/cgroup\\040x rw,relatime - cgroup2 cgroup2 rw\n" +
		"1 2 - cgroup2\n\n - \n"))
	if len(mounts) != 2 || mounts[0].Version != 1 || !mounts[0].Controls("cpu") || mounts[0].Controls("memory") ||
		mounts[1].Version != 2 || !mounts[1].Controls("memory") || mounts[1].Point != "/sys/fs/cgroup x" {
		t.Fatalf("%+v", mounts)
	}
	for _, c := range []struct {
		mount       int
		group, want string
	}{
		{0, "/", "/sys/fs/cgroup/cpu,cpuacct"}, {0, "/a/b", "/sys/fs/cgroup/cpu,cpuacct/a/b"},
		{0, "/../other", ""}, {0, "/a/../../etc", ""}, {0, "relative", ""},
		{1, "/docker/7", "/sys/fs/cgroup x"}, {1, "/docker/7/x", "/sys/fs/cgroup x/x"}, {1, "/docker/77", ""}, {1, "/", ""},
	} {
		if dir, ok := mounts[c.mount].Dir(c.group); dir != c.want || ok != (c.want != "") {
			t.Errorf("%s is at %q %v", c.group, dir, ok)
		}
	}
}

func TestCgroupLimits(t *testing.T) {
	for text, want := range map[string]float64{"150000 100000\n": 1.5, "max 100000\n": 0, "1 0\n": -1, "x 1\n": -1,
		"": -1, "1": -1} {
		cpus, limited, ok := CPUMax([]byte(text))
		if ok != (want >= 0) || limited != (want > 0) || ok && cpus != want {
			t.Errorf("%q: %v %v %v", text, cpus, limited, ok)
		}
	}
	if cpus, limited, ok := CPUQuota([]byte("50000\n"), []byte("100000\n")); cpus != 0.5 || !limited || !ok {
		t.Errorf("%v %v %v", cpus, limited, ok)
	}
	if _, limited, ok := CPUQuota([]byte("-1\n"), []byte("100000\n")); limited || !ok {
		t.Error("no quota is taken for one")
	}
	if _, _, ok := CPUQuota([]byte("-1\n"), []byte("0\n")); ok {
		t.Error("a period of 0")
	}
	two := "usage_usec 5\nuser_usec 4\nsystem_usec 1\nnr_periods 100\nnr_throttled 40\nthrottled_usec 1500\n"
	if got, ok := ParseThrottling([]byte(two)); !ok || got != (Throttling{100, 40, 1500 * time.Microsecond}) {
		t.Errorf("%+v %v", got, ok)
	}
	one := "nr_periods 7\nnr_throttled 3\nthrottled_time 1234567\n"
	if got, ok := ParseThrottling([]byte(one)); !ok || got != (Throttling{7, 3, 1234567}) {
		t.Errorf("%+v %v", got, ok)
	}
	if _, ok := ParseThrottling([]byte("usage_usec 5\n")); ok {
		t.Error("a group without a limit")
	}
	for text, want := range map[string]uint64{"max\n": 0, "9223372036854771712\n": 0, "1073741824\n": 1 << 30} {
		if n, limited, ok := MemoryLimit([]byte(text)); !ok || limited != (want > 0) || limited && n != want {
			t.Errorf("%q: %d %v %v", text, n, limited, ok)
		}
	}
}

func TestEachSocket(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const text = head +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1596 1 0 100\n" +
		"   1: 0200000A:AFEE 0A0B0C0D:01BB 01 0000001F:00000000 00:00000000 00000000  1000        0 77 3 0\n" +
		"   2: 0000000000000000FFFF00000100007F:0050 B80D0120000000000000000001000000:1538 08 0:0 00:0 0 0 0 78 1\n" +
		"   3: 0100007F:1F90 00000000:0000 63 00000000:00000000 00:00000000 00000000     0        0 1596 1\n" +
		"   4: 0100007:1F90 0:0 0A\n"
	var got []Socket
	EachSocket([]byte(text), func(s Socket) { got = append(got, s) })
	addr := netip.MustParseAddrPort
	want := []Socket{{addr("127.0.0.1:8080"), addr("0.0.0.0:0"), "LISTEN", 0, 3, 1596},
		{addr("10.0.0.2:45038"), addr("13.12.11.10:443"), "ESTABLISHED", 31, 0, 77},
		{addr("127.0.0.1:80"), addr("[2001:db8::1]:5432"), "CLOSE_WAIT", 0, 0, 78}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for link, want := range map[string]uint64{"socket:[1596]": 1596, "socket:[]": 0, "socket:[1": 0, "pipe:[7]": 0,
		"/tmp/socket:[7]": 0, "socket:[7]x": 0} {
		if n, ok := SocketInode([]byte(link)); ok != (want > 0) || ok && n != want {
			t.Errorf("%q: %d %v", link, n, ok)
		}
	}
}

// FuzzMachine reads arbitrary bytes as each file about the machine, control groups and sockets.
func FuzzMachine(f *testing.F) {
	for _, s := range []string{"some avg10=1.0 avg60=2.0 avg300=3.0 total=4\nfull avg10=0 avg60=0 avg300=0 total=0\n",
		"cpu  1 2 3 4 5 6 7 8\ncpu0 1\nprocs_running 3\nprocs_blocked 1\n", "VmRSS:\t 1 kB\nCpus_allowed_list:\t0-3,8\n",
		"150000 100000\n", "nr_periods 7\nnr_throttled 3\nthrottled_usec 1\n", "max\n", "1:cpu,x:/a\n0::/b\n",
		"32 31 0:29 / /x\\040y rw shared:9 - cgroup2 c rw\n", "Max open files   1024   4096   files\n", "socket:[12]",
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1596 1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := ParsePressure(b); ok && (!(p.Some.Avg10 >= 0 && p.Some.Avg10 <= 1) || p.Some.Total < 0 ||
			p.Full.Total < 0) {
			t.Fatalf("%+v", p)
		}
		if m, ok := ParseMachineStat(b); ok && (m.CPUs <= 0 || m.CPUTime.Total() < m.CPUTime.Idle) {
			t.Fatalf("%+v", m)
		}
		if cpus, limited, ok := CPUMax(b); ok && limited && !(cpus >= 0) {
			t.Fatal(cpus)
		}
		CPUQuota(b, b)
		if th, ok := ParseThrottling(b); ok && th.Time < 0 {
			t.Fatal(th)
		}
		if n, ok := CPUsAllowed(b); ok && (n == 0 || n > 1<<20) {
			t.Fatal(n)
		}
		MemoryLimit(b)
		Limit(b, "Max open files")
		Kilobytes(b, "VmRSS")
		Keyed(b, "oom")
		MajorFaults(b)
		SocketInode(b)
		EachSocket(b, func(s Socket) {
			if s.State == "" || !s.Local.IsValid() {
				t.Fatalf("%+v", s)
			}
		})
		mounts := CgroupMounts(b)
		for _, m := range Memberships(b) {
			for i := range mounts {
				dir, ok := mounts[i].Dir(m.Path)
				if point := strings.TrimSuffix(mounts[i].Point, "/"); ok && strings.HasPrefix(point, "/") &&
					!strings.Contains(point, "..") && !strings.Contains(point, "//") && !strings.Contains(point, "/.") &&
					dir != point && !strings.HasPrefix(dir, point+"/") && point != "" {
					t.Fatalf("%q is outside of %q", dir, point)
				}
			}
		}
	})
}

// TestGroupOf: the group for a controller is in the controller's hierarchy. It includes all groups above it that a
// mount shows.
func TestGroupOf(t *testing.T) {
	mounts := CgroupMounts([]byte("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"))
	for _, c := range []struct {
		cgroup, controller string
		version            int
		dirs               []string
	}{
		{"1:cpu:/pod/app\n0::/x\n", "cpu", 1,
			[]string{"/sys/fs/cgroup/cpu/pod/app", "/sys/fs/cgroup/cpu/pod", "/sys/fs/cgroup/cpu"}},
		{"0::/x\n", "cpu", 2, []string{"/sys/fs/cgroup/unified/x", "/sys/fs/cgroup/unified"}},
		{"1:cpu:/a\n0::/\n", "memory", 2, []string{"/sys/fs/cgroup/unified"}},
		{"1:memory:/a\n", "memory", 0, nil}, // it is not mounted here
	} {
		g, ok := GroupOf(Memberships([]byte(c.cgroup)), mounts, c.controller)
		if g.Version != c.version || !slices.Equal(g.Dirs, c.dirs) || ok != (c.version > 0) {
			t.Errorf("%q: %+v %v", c.cgroup, g, ok)
		}
	}
}

// TestCPULimits reads the limits of a group and of the groups above it, from the files of both versions. A group
// without a limit, or without the file (the topmost group of version 2), is left out.
func TestCPULimits(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"two/pod/cpu.max": "150000 100000\n", "two/pod/app/cpu.max": "max 100000\n",
		"two/pod/app/side/cpu.max": "10000 100000\n", "two/pod/app/side/cpu.stat": "usage_usec 5\n",
		"two/broken/cpu.max": "-5 x\n", "one/cpu.cfs_quota_us": "-1\n", "one/pod/cpu.cfs_quota_us": "20000\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mount := "41 31 0:38 / " + root + "/two rw - cgroup2 cgroup2 rw\n" +
		"32 31 0:29 / " + root + "/one rw - cgroup cgroup rw,cpu\n"
	stat := func(dir string) string { return filepath.Join(root, dir, "cpu.stat") }
	for cgroup, want := range map[string][]OwnLimit{
		"0::/pod/app/side\n": {{10 * time.Millisecond, stat("two/pod/app/side")},
			{150 * time.Millisecond, stat("two/pod")}},
		"0::/pod/app\n": {{150 * time.Millisecond, stat("two/pod")}},
		"0::/broken\n":  nil, "0::/\n": nil, "0::/../else\n": nil, "": nil,
		"1:cpu:/pod\n0::/pod/app/side\n": {{20 * time.Millisecond, stat("one/pod")}},
	} {
		if got := cpuLimits([]byte(cgroup), []byte(mount)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", cgroup, got, want)
		}
	}
}

func TestRunnable(t *testing.T) {
	for text, want := range map[string]int{"4.86 2.31 3.09 3/120 20584\n": 3, "0.20 0.18 0.12 61/80 11206": 61, "": -1,
		"0.2 0.1 0.1 x/80 1": -1, "0.2 0.1 0.1 7 80": -1, "0.2 0.1 0.1 99999999999/80 1": -1} {
		if n, ok := Runnable([]byte(text)); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d %v", text, n, ok)
		}
	}
}
