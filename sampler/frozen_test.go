//go:build linux

package sampler

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"goprof/process"
)

// freezer is a cgroup whose processes can be frozen, as docker pause does it.
type freezer struct {
	dir, file      string
	frozen, thawed string // what to write there
}

// freezers are those of both versions that this machine has.
func freezers(t *testing.T) map[string]freezer {
	t.Helper()
	made := map[string]freezer{}
	add := func(version, parent string, f freezer) {
		f.dir = filepath.Join(parent, "goprof-test-"+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil || os.Mkdir(f.dir, 0o755) != nil {
			return
		}
		t.Cleanup(func() { os.Remove(f.dir) })
		if _, err := os.Stat(filepath.Join(f.dir, f.file)); err == nil {
			made[version] = f
		}
	}
	add("1", "/sys/fs/cgroup/freezer", freezer{file: "freezer.state", frozen: "FROZEN", thawed: "THAWED"})
	for _, parent := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		add("2", parent, freezer{file: "cgroup.freeze", frozen: "1", thawed: "0"})
	}
	if len(made) == 0 {
		t.Skip("this machine lets nobody make a cgroup that can be frozen")
	}
	return made
}

func (f *freezer) set(t *testing.T, state string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, f.file), []byte(state), 0); err != nil {
		t.Fatal(err)
	}
}

// hold puts a process into the cgroup until the test ends.
func (f *freezer) hold(t *testing.T, p *program) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "cgroup.procs"), []byte(strconv.Itoa(p.pid)), 0); err != nil {
		t.Skipf("this machine lets nobody into a cgroup of its own: %v", err)
	}
	t.Cleanup(func() { // before the directory is removed, and the program ended
		os.WriteFile(filepath.Join(f.dir, f.file), []byte(f.thawed), 0)
		p.Process.Kill()
		p.Wait()
	})
}

// stands waits until a thread is charged nothing any more.
func stands(t *testing.T, p *program) {
	t.Helper()
	last := int64(-1)
	eventually(t, "frozen", func() bool {
		time.Sleep(20 * time.Millisecond)
		now := ranNanos(t, p.pid, p.pid)
		stood := now == last
		last = now
		return stood
	})
}

// A look at a frozen thread either comes at once, or is pending until it is thawed, and is dropped with the tracer. In
// no case is the thread left stopped.
func TestFrozenThread(t *testing.T) {
	for version, f := range freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := run1(t, cSpin)
			p.line(t)
			f.hold(t, p)
			f.set(t, f.frozen)
			stands(t, p)
			onTracer(t, p.pid, func(tr *Tracer) {
				snap := new(process.Snapshot)
				o := tr.Look(p.pid, Hint{}, snap)
				t.Logf("a look at the frozen thread (state %c): %v", threadState(p.pid, p.pid), o)
				if o != Taken && o != Pending {
					t.Errorf("%v %v", o, tr.Err())
				}
			}) // and dropped
			eventually(t, "nobody traces it", func() bool { return tracerOf(p.pid) == 0 })
			onTracer(t, p.pid, func(tr *Tracer) {
				snap := new(process.Snapshot)
				o := tr.Look(p.pid, Hint{}, snap)
				f.set(t, f.thawed)
				eventually(t, "taken", func() bool {
					if o == Pending {
						if _, got, ok := tr.Collect(); ok {
							o = got
						}
					}
					return o == Taken
				})
				if len(snap.Stack) < 16384 {
					t.Errorf("%d bytes of its stack", len(snap.Stack))
				}
			})
			eventually(t, "runs on", func() bool { return threadState(p.pid, p.pid) == 'R' && tracerOf(p.pid) == 0 })
		})
	}
}

// A process that is frozen in the middle of a recording has no samples while it is, and those that it is owed afterwards.
func TestFreezeWhileSampling(t *testing.T) {
	for version, f := range freezers(t) {
		t.Run("cgroup v"+version, func(t *testing.T) {
			p := run1(t, cSpin)
			p.line(t)
			f.hold(t, p)
			const interval = 2 * time.Millisecond
			before := ranNanos(t, p.pid, p.pid)
			got := session(t, p.pid, Config{Interval: interval}, 16, func(seen *atomic.Int64) {
				for round := range int64(3) {
					untilSamples(50 * (round + 1))(seen)
					f.set(t, f.frozen)
					stands(t, p)
					time.Sleep(100 * time.Millisecond)
					f.set(t, f.thawed)
				}
				untilSamples(200)(seen)
			})
			used := time.Duration(ranNanos(t, p.pid, p.pid) - before)
			t.Logf("%d samples, %d late, lost %v, %v used", got.Taken, got.Late, got.Lost, used)
			if got.err != nil || got.Taken < 200 || got.LostSum() > 3 ||
				got.Attempted > int64(used/interval)+3+chance(int64(used/interval)) {
				t.Errorf("%v: %d looks, lost %v, in %v of CPU time", got.err, got.Attempted, got.Lost, used)
			}
			eventually(t, "runs on", func() bool { return threadState(p.pid, p.pid) == 'R' && tracerOf(p.pid) == 0 })
		})
	}
}
