//go:build linux

package agent

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"goprof/diagnose"
	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
	"goprof/sampler/ring"
	"goprof/testdata/ctest"
)

// madeUp is an Others that gets no samples of a kernel, and the batches that it offers.
func madeUp() (s *Others, batches *[]*batch.Batch) {
	batches = new([]*batch.Batch)
	settings := Default()
	settings.MaxCPU = 0
	return newOthers(OthersOptions{Settings: settings, CPUs: 2,
		Offer: func(b *batch.Batch) { *batches = append(*batches, b) }}), batches
}

// noPID is above the numbers of all processes (PID_MAX_LIMIT).
const noPID = 1 << 23

func sampleOf(pid int) ring.Chain {
	return ring.Chain{Kind: ring.KindSample, PID: pid, TID: pid, When: time.Now().UnixNano(),
		Calls: []uint64{0x1000, 0x2000}}
}

// looksOf counts the samples of batches by their threads' names, which are processes' names.
func looksOf(batches []*batch.Batch) map[string]int64 {
	looks := map[string]int64{}
	for _, b := range batches {
		for i := range b.Samples {
			looks[b.Samples[i].Thread.Name] += b.Samples[i].Looks()
		}
	}
	return looks
}

// TestOthersNames: a process that is gone has the name of its program, or of the process that it is a copy of. A number
// that is given again belongs to another process.
func TestOthersNames(t *testing.T) {
	s, batches := madeUp()
	comm := func(pid int, name string, exec bool) ring.Chain {
		return ring.Chain{Kind: ring.KindComm, PID: pid, TID: pid, Comm: name, Exec: exec}
	}
	seen := []ring.Chain{
		comm(noPID, "shell", true), {Kind: ring.KindFork, PID: noPID + 1, TID: noPID + 1, Parent: noPID},
		sampleOf(noPID + 1), comm(noPID+1, "cc1\xff\n", true), sampleOf(noPID + 1), sampleOf(noPID + 1),
		{Kind: ring.KindExit, PID: noPID + 1, TID: noPID + 1}, sampleOf(noPID + 1), sampleOf(-1), sampleOf(0),
	}
	// What /proc says of this number is of the program that came after the samples.
	before := ring.Chain{Kind: ring.KindSample, PID: os.Getpid(), TID: os.Getpid(), When: 1}
	next := comm(os.Getpid(), "next", true)
	next.When = 2
	s.take(append(seen, before, before, next), 0, 0)
	s.take(nil, 0, 0)
	s.end(time.Now())
	got := looksOf(*batches)
	for name, want := range map[string]int64{"shell": 1, "cc1\uFFFD\n": 2, endedName: 4} {
		if got[name] != want {
			t.Errorf("%q: %d samples, not %d: %v", name, got[name], want, got)
		}
	}
}

// TestOthersChangeAfterTheSample: what /proc shows of a process that changes after the last records is not given to the
// samples before the change. If records are missing, it may have changed.
func TestOthersChangeAfterTheSample(t *testing.T) {
	own := ring.Chain{Kind: ring.KindSample, PID: os.Getpid(), TID: os.Getpid(), When: 10, Calls: []uint64{1 << 60}}
	record := func(kind uint32, pid int) ring.Chain {
		return ring.Chain{Kind: kind, PID: pid, TID: pid, When: 20, Parent: own.PID}
	}
	exec := record(ring.KindComm, own.PID)
	exec.Comm, exec.Exec = "next", true
	rename := record(ring.KindComm, own.PID)
	_, is, err := procfs.ReadStat(own.PID, own.PID)
	if err != nil {
		t.Fatal(err)
	}
	child := own
	child.PID, child.TID = noPID, noPID
	late := own
	late.When = 15 // before the change, and in the same records
	for _, c := range []struct {
		name   string
		first  []ring.Chain
		second []ring.Chain
		lost   int64
		want   map[string]int64
	}{
		{"nothing changes", []ring.Chain{own, own}, []ring.Chain{late}, 0, map[string]int64{is: 3}},
		{"a new name", []ring.Chain{own, own}, []ring.Chain{rename, own}, 0, map[string]int64{is: 3}},
		{"exec after one sample", []ring.Chain{own}, []ring.Chain{late, exec}, 0, map[string]int64{endedName: 2}},
		{"exec after two", []ring.Chain{own, own}, []ring.Chain{late, exec, own}, 0,
			map[string]int64{endedName: 3, "next": 1}},
		{"the end", []ring.Chain{own, own}, []ring.Chain{record(ring.KindExit, own.PID)}, 0, map[string]int64{endedName: 2}},
		{"a new process", []ring.Chain{own, own}, []ring.Chain{record(ring.KindFork, own.PID)}, 0,
			map[string]int64{endedName: 2}},
		{"missing records", []ring.Chain{own, own}, []ring.Chain{late}, 1, map[string]int64{endedName: 2, is: 1}},
		{"a copy of it", []ring.Chain{own, record(ring.KindFork, noPID), child}, []ring.Chain{exec}, 0,
			map[string]int64{endedName: 2}},
	} {
		s, batches := madeUp()
		s.take(c.first, 0, 0)
		s.take(c.second, 0, c.lost)
		s.take(nil, 0, 0)
		if s.end(time.Now()); !maps.Equal(looksOf(*batches), c.want) {
			t.Errorf("%s: %v, not %v", c.name, looksOf(*batches), c.want)
		}
		for _, b := range *batches {
			for i := range b.Samples {
				if kind := b.Resource.Get(resource.RuntimeName); b.Samples[i].Thread.Name == endedName && kind != "" {
					t.Errorf("%s: a process without a name is a %s program", c.name, kind)
				}
			}
		}
		if s.forgetAll(); s.opened != 0 {
			t.Errorf("%s: %d processes are still open", c.name, s.opened)
		}
	}
}

// TestOthersAreBounded: however many processes begin, run and end, a bounded number is kept, and no sample is lost.
func TestOthersAreBounded(t *testing.T) {
	s, batches := madeUp()
	const n = 3 * mostNames
	var seen []ring.Chain
	for i := range n {
		pid := noPID + i
		seen = append(seen, ring.Chain{Kind: ring.KindComm, PID: pid, TID: pid, Comm: fmt.Sprint("p", i), Exec: true})
		if i%4 == 0 {
			seen = append(seen, sampleOf(pid))
		}
	}
	s.take(seen, 0, 0)
	if len(s.names) > mostNames || len(s.known) > mostKnown || len(s.groups) > mostGroups {
		t.Errorf("%d names, %d processes, %d groups", len(s.names), len(s.known), len(s.groups))
	}
	for i := range 2 * mostGroups {
		p := &other{pid: i + 1, read: true, key: fmt.Sprint(i)}
		s.group(p).Add(&profile.Sample{Stack: &profile.Stack{}})
	}
	s.end(time.Now())
	sum := int64(0)
	for _, looks := range looksOf(*batches) {
		sum += looks
	}
	if len(*batches) > mostGroups || sum != n/4+2*mostGroups {
		t.Errorf("%d batches, %d samples", len(*batches), sum)
	}
	s.take([]ring.Chain{sampleOf(os.Getpid())}, 0, 1)
	s.count(forGood)
	if samples, lost := s.Counts(); samples != n/4+1 || lost != 1 || len(s.known) != 1 {
		t.Errorf("%d samples, %d lost, %d processes known", samples, lost, len(s.known))
	}
}

// TestOthersSites: the addresses of a process that are kept are bounded, and no address makes a stack of what is no
// code.
func TestOthersSites(t *testing.T) {
	s, _ := madeUp()
	c := sampleOf(os.Getpid())
	s.take([]ring.Chain{c, c}, 0, 0)
	p := s.known[c.PID]
	if p.code == nil || p.whose.Get(resource.RuntimeName) != goRuntime {
		t.Fatalf("the test itself: %+v", p)
	}
	for i := range 3 * mostSites / 100 {
		var calls []uint64
		for n := range 100 {
			calls = append(calls, 1<<60+uint64(i*100+n))
		}
		stack := s.stack(p, &ring.Chain{Calls: calls})
		if len(stack.Frames) != 1 || stack.Frames[0].Kind != profile.Gap || stack.Truncated != profile.NoUnwindInfo {
			t.Fatalf("%+v", stack)
		}
	}
	if len(p.sites) > mostSites+100 {
		t.Errorf("%d addresses are kept", len(p.sites))
	}
	s.forgetAll()
	if s.opened != 0 {
		t.Errorf("%d processes are still open", s.opened)
	}
}

// TestOthersDoubt: where records of processes are missing, those that still run the same program are kept.
func TestOthersDoubt(t *testing.T) {
	s, _ := madeUp()
	child := ctest.Run(t, "int main(void) { ready(); for (;;) pause(); }")
	own, ends := sampleOf(os.Getpid()), sampleOf(child.PID)
	s.take([]ring.Chain{own, own, ends, ends}, 0, 0)
	kept := s.known[own.PID]
	if s.opened != 2 {
		t.Fatalf("%d are open", s.opened)
	}
	if s.take(nil, 1, 0); len(s.known) != 2 {
		t.Errorf("%d are known where only samples are missing", len(s.known))
	}
	child.Process.Kill()
	child.Wait()
	if s.take(nil, 0, 1); s.opened != 1 || len(s.known) != 1 || s.known[own.PID] != kept {
		t.Errorf("%d are open, %d known", s.opened, len(s.known))
	}
	s.forgetAll()
}

// TestOthersLetGo: what was read of processes can be dropped for want of memory. Then nothing is read for a while.
func TestOthersLetGo(t *testing.T) {
	s, _ := madeUp()
	c := sampleOf(os.Getpid())
	s.take([]ring.Chain{c, c}, 0, 0)
	p := s.known[c.PID]
	if !s.mayRead() || s.opened != 1 || len(p.sites) == 0 {
		t.Fatalf("%d are open, %d addresses are known", s.opened, len(p.sites))
	}
	if !s.letGo(s.at) || s.letGo(s.at) || s.mayRead() {
		t.Error("it goes on reading")
	}
	if s.close(p); s.opened != 0 || len(p.sites) != 0 {
		t.Errorf("%d are open, %d addresses are kept", s.opened, len(p.sites))
	}
	if s.at = s.at.Add(leftFor + time.Second); !s.mayRead() {
		t.Error("it does not begin to read again")
	}
}

// TestOthersGroups: processes that use little have a batch in common, kernel threads have one, and each other group has
// its own, with the number of a process that is alone in it.
func TestOthersGroups(t *testing.T) {
	s, batches := madeUp()
	s.began = time.Now().Add(-10 * time.Second)
	for pid, of := range map[int]struct {
		name    string
		samples int
	}{1: {"busy", 9}, 2: {"workers", 4}, 3: {"workers", 4}, 4: {"idle", 1}, 5: {"lazy", 1}} {
		p := &other{pid: pid, name: of.name, read: true, whose: s.named(of.name, nativeRuntime)}
		p.key = keyOf(p.whose)
		for range of.samples {
			s.group(p).Add(&profile.Sample{Thread: profile.Thread{Name: p.name}, Stack: &profile.Stack{}, CPU: time.Second / 19})
		}
	}
	s.cut(time.Now())
	got := map[string]string{}
	for _, b := range *batches {
		got[b.Resource.Get(resource.ServiceName)] = fmt.Sprint(b.Resource.Get(resource.ProcessPID), " ", b.Looks(), " ",
			b.Resource.Get(resource.RuntimeName))
	}
	want := map[string]string{"busy": "1 9 native", "workers": " 8 native", othersName: " 2 "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestOthersAtTakeOver: where another agent has taken over, or was there before, batches are of the time that counts.
func TestOthersAtTakeOver(t *testing.T) {
	s, batches := madeUp()
	began, now := time.Now(), time.Now().Add(10*time.Second)
	s.began = began
	s.span.from.Store(began.Add(3 * time.Second).UnixNano())
	s.span.until.Store(began.Add(7 * time.Second).UnixNano())
	var seen []ring.Chain
	for at := range 10 {
		c := sampleOf(noPID)
		c.When = began.Add(time.Duration(at) * time.Second).UnixNano()
		seen = append(seen, c)
	}
	s.take(seen, 0, 0)
	s.end(now)
	if len(*batches) != 1 {
		t.Fatalf("%d batches", len(*batches))
	}
	b := (*batches)[0]
	if from, to := b.From.Sub(began), b.To.Sub(began); b.Looks() != 4 || from.Round(time.Millisecond) != 3*time.Second ||
		to.Round(time.Millisecond) != 7*time.Second || b.Meta.Duration != 4*time.Second {
		t.Errorf("%d samples from %v to %v, for %v", b.Looks(), from, to, b.Meta.Duration)
	}
}

// TestOthersLeaveOut: a process is left out exactly while it is claimed.
func TestOthersLeaveOut(t *testing.T) {
	s, _ := madeUp()
	moment := func() int64 { time.Sleep(time.Millisecond); return time.Now().UnixNano() }
	before := moment()
	s.leaveOut(map[int]verdict{7: covered}, time.Second)
	claimed := moment()
	s.leaveOut(map[int]verdict{7: covered, 8: excluded}, time.Second)
	still := moment()
	s.leaveOut(nil, time.Second)
	after := moment()
	for at, want := range map[int64]bool{before: false, claimed: true, still: true, after: false} {
		if s.isClaimed(7, at, true) != want {
			t.Errorf("at %d: %v", at-before, !want)
		}
	}
	if s.isClaimed(8, before, false) || !s.isClaimed(8, before, true) || s.isClaimed(8, after, true) {
		t.Error("what the rules exclude is left out from its beginning, and no other program with its number is")
	}
	if s.dropClaims(after); len(s.claims) != 0 {
		t.Errorf("%v", s.claims)
	}
}

// TestOthersWaitForTheVerdict: samples of a JVM are not counted before the agent has decided about it, within a limit.
func TestOthersWaitForTheVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		verdict       verdict
		ends          bool
		later         time.Duration
		counted, held int
	}{
		"excluded": {verdict: excluded}, "recorded": {verdict: covered, counted: 1}, "left": {verdict: left, counted: 1},
		"not yet": {held: 1}, "never": {later: time.Minute, counted: 1}, "ended": {ends: true, counted: 1},
	} {
		s, _ := madeUp()
		s.take([]ring.Chain{{Kind: ring.KindComm, PID: noPID, TID: noPID, Comm: "java", Exec: true}, sampleOf(noPID)}, 0, 0)
		if s.take(nil, 0, 0); len(s.held) != 1 || s.samples.Load() != 0 {
			t.Fatalf("%s: %d samples are held, %d counted", name, len(s.held), s.samples.Load())
		}
		s.at = s.at.Add(c.later)
		if c.ends {
			s.take([]ring.Chain{{Kind: ring.KindExit, PID: noPID, TID: noPID}}, 0, 0)
		}
		s.leaveOut(map[int]verdict{noPID: c.verdict}, time.Second)
		if s.take(nil, 0, 0); s.samples.Load() != int64(c.counted) || len(s.held) != c.held {
			t.Errorf("%s: %d samples are counted, %d held", name, s.samples.Load(), len(s.held))
		}
	}
}

// TestAgentClaimsItsJVMs: JVMs that are recorded, and those that a rule denies, are not for Others. One that cannot be
// recorded is.
func TestAgentClaimsItsJVMs(t *testing.T) {
	w := newFakeWorld()
	w.start(1, "recorded")
	w.start(2, "denied")
	w.start(3, "barred").Problem = &diagnose.Cause{Name: "openj9", Class: diagnose.NotJVM}
	settings := Default()
	settings.MaxCPU = 0
	part, err := NewPart("name", "denied")
	if err != nil {
		t.Fatal(err)
	}
	settings.Choice.Deny = []Rule{{part}}
	s, _ := madeUp()
	a := New(w, settings, func(*batch.Batch) {}, func(string) {})
	a.SampleOthers(s)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { a.Run(ctx); close(ended) }()
	w.use(1, time.Minute)
	claimed := func(pid int) bool { return s.isClaimed(pid, math.MaxInt64-1, false) }
	for late := time.Now().Add(time.Minute); !claimed(1) || !claimed(2); {
		if time.Sleep(10 * time.Millisecond); time.Now().After(late) {
			t.Fatal("not claimed")
		}
	}
	if claimed(3) {
		t.Error("a JVM that cannot be recorded is left out")
	}
	end()
	<-ended
}

// TestRuntimes: the kind of a runtime by the names of programs and libraries as distributions have them.
func TestRuntimes(t *testing.T) {
	for _, c := range []struct {
		program, libraries string
		isGo               bool
		want               string
	}{
		{"java", "java libjli.so libjvm.so libc.so.6", false, jvmRuntime},
		{"java", "java libj9vm29.so libc.so.6", false, jvmRuntime},
		{"nginx", "nginx libc.so.6", false, nativeRuntime},
		{"kubelet", "kubelet", true, goRuntime},
		{"node", "node libstdc++.so.6", false, nodeRuntime},
		{"nodejs", "nodejs libnode.so.108", false, nodeRuntime},
		{"node_exporter", "node_exporter", true, goRuntime},
		{"python3.11", "python3.11 libc.so.6", false, pythonRuntime},
		{"uwsgi", "uwsgi libpython3.11.so.1.0", false, pythonRuntime},
		{"pythonista", "pythonista", false, nativeRuntime},
		{"dotnet", "dotnet libhostfxr.so libcoreclr.so", false, dotnetRuntime},
		{"Shop", "Shop libcoreclr.so", false, dotnetRuntime},
		{"", "", false, nativeRuntime},
		{"\xff\x00;\n", strings.Repeat("x", 1000), false, nativeRuntime},
	} {
		if got := runtimeBy(c.program, strings.Fields(c.libraries), func() bool { return c.isGo }); got != c.want {
			t.Errorf("%q with %s: %s", c.program, c.libraries, got)
		}
	}
	self, err := process.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	if got := runtimeOf(strings.TrimSuffix(selfName(t), " (deleted)"), self); got != goRuntime {
		t.Errorf("the test itself: %s", got)
	}
}

func selfName(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// TestOthersLeaveTheSamples: what Others may use is part of the half for attaching.
func TestOthersLeaveTheSamples(t *testing.T) {
	s, _ := madeUp()
	a := New(newFakeWorld(), Default(), func(*batch.Batch) {}, func(string) {})
	a.begin()
	half := a.budget.forAttaching()
	a.SampleOthers(s)
	both := a.budget.forAttaching() + othersPart*a.budget.max*a.budget.cpus
	if half == 0 || math.Abs(both-half) > half/1e6 {
		t.Errorf("attaching and Others have %v, attaching alone %v", both, half)
	}
}

// TestPurse: what is not spent is kept for a while, and no longer.
func TestPurse(t *testing.T) {
	p := purse{share: 0.01}
	if p.mayPay() {
		t.Error("there is something at the beginning")
	}
	if p.add(time.Hour); p.left != othersAhead/100 {
		t.Errorf("%v after an hour", p.left)
	}
	p.owed.Store(int64(othersAhead))
	if p.add(time.Second); p.mayPay() {
		t.Errorf("%v is left", p.left)
	}
}

// TestCallsMain: the code of the C library that calls main, and a thread's function, is known without its symbols. The
// code that calls a comparison of qsort is not taken for that. A C program says where each is called from.
func TestCallsMain(t *testing.T) {
	p := ctest.Run(t, `
static int compares(const void *a, const void *b) {
  static int said;
  if (!said++) say((long)__builtin_return_address(0));
  return 0;
}
static void *begins(void *x) { say((long)__builtin_return_address(0)); return 0; }
int main(void) {
	ready();
	say((long)__builtin_return_address(0));
	pthread_t th;
	pthread_create(&th, 0, begins, 0);
	pthread_join(th, 0);
	int list[2] = {1, 2};
	qsort(list, 2, sizeof *list, compares);
	for (;;) pause();
}`)
	code, err := process.Open(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	for _, of := range []struct {
		name string
		want bool
	}{{"main", true}, {"a thread's function", true}, {"a comparison", false}} {
		pc := uint64(p.Number(t))
		at, ok := code.Code(pc, false)
		if !ok {
			t.Fatalf("%s: no code at %#x", of.name, pc)
		}
		if got := callsMain(code, at.Image, pc); got != of.want {
			t.Errorf("%s is called from %s+%#x: %v", of.name, at.Image, at.Offset, got)
		}
		if f := codeAt(code, siteKey{pc, false}); !f.is || f.root != of.want {
			t.Errorf("%s: %+v", of.name, f)
		}
	}
}
