//go:build linux

package oracle

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/pools"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// TestPools: a program with executors of each kind knows how many of their threads are busy, and what waits in their
// queues. A thread that only knows an executor is not taken for one of its own. Collections move all objects before the
// second look.
func TestPools(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		modes := []string{"-XX:+UseSerialGC"}
		if jdk.Version >= 17 {
			modes = append(modes, "-XX:+UseZGC")
		}
		if os.Getenv("GOPROF_PROVE") != "" {
			modes = append(modes, "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:-UseCompressedOops", "-Xint")
		}
		for _, mode := range modes {
			t.Run(mode, func(t *testing.T) {
				args := []string{mode, "-Xmx64m"}
				if jdk.Version >= 21 {
					args = append(args, "-Djdk.virtualThreadScheduler.parallelism=2",
						"-Djdk.virtualThreadScheduler.maxPoolSize=2", "--", "virtual")
				}
				jvm := jvmtest.Start(t, jdk, "truth.Executing", args...)
				s := attach(t, jvm.PID)
				checkPools(t, s, jdk.Version >= 21)
				if mode != "-XX:+UseZGC" { // which does not say where its heap is
					checkHolder(t, s)
				}
				jvm.Command("gc")
				jvm.Command("gc")
				checkPools(t, s, jdk.Version >= 21)
				checkUnrested(t, s)
			})
		}
	})
}

// checkUnrested: while ZGC's threads work, references that no thread has loaded since the last collection lead nowhere.
// Such a reading does not say that there are no executors.
func checkUnrested(t *testing.T, s *session.Session) {
	p, err := s.VM.NewPools()
	if err != nil {
		t.Fatal(err)
	}
	threads, err := s.VM.Threads()
	if err != nil {
		t.Fatal(err)
	}
	p.CollectorRests(true)
	rested, _, err := p.Read(threads)
	if err != nil {
		t.Fatal(err)
	}
	p.CollectorRests(false)
	if all, _, err := p.Read(threads); len(all) != len(rested) && !errors.Is(err, vmstructs.ErrMoved) {
		t.Errorf("%d of %d executors, %v", len(all), len(rested), err)
	}
}

// executing is what truth.Executing makes. The text is pools.Pool.Load, the class of the next task, and how many tasks
// have ended.
var executing = map[string]string{
	"linked-*": "4 of 4 busy, 7 queued; truth.Executing$Forever; 5 done; room 93",
	"array-*": "2 of 2 busy, 3 queued, which is all that it takes; truth.Executing$Forever; 0 done; " +
		"room 0",
	"handed-*":                "2 of 2 busy, 0 queued; ; 0 done; room 0",
	"deque-*":                 "3 of 3 busy, 2 queued; truth.Executing$Forever; 0 done; room not known",
	"priority-*":              "2 of 2 busy, 6 queued; truth.Executing$Forever; 0 done; room not known",
	"idle-*":                  "0 of 3 busy, 0 queued; ; 0 done; room not known",
	"timed-*":                 "1 of 1 busy, 2 scheduled; truth.Executing$Forever; 0 done; room not known",
	"ForkJoinPool-1-worker-*": "2 of 2 busy, 9 queued; ; not known done; room not known",
	"Stock:housekeeper": "0 of 1 busy, 1 scheduled; com.zaxxer.hikari.pool.HikariPool$HouseKeeper; 0 done; " +
		"room not known",
}

// scheduler runs the virtual threads.
const scheduler = "2 of 2 busy, 5 queued"

// inComm is what the kernel keeps at least of a thread's name. With ZGC a thread's own name may not be known.
func inComm(name string) string { return name[:min(len(name), 7)] }

// checkPools looks until threads that a dump has stopped have gone back to sleep: until then they are not idle.
func checkPools(t *testing.T, s *session.Session, virtual bool) {
	t.Helper()
	var one *try
	for end := time.Now().Add(30 * time.Second); one == nil || one.wrong != nil && time.Now().Before(end); {
		if one != nil {
			time.Sleep(100 * time.Millisecond) // a look too soon would wake them again before they had a CPU
		}
		one = &try{TB: t}
		lookAtPools(one, s, virtual)
	}
	for _, wrong := range one.wrong {
		t.Error(wrong)
	}
}

func lookAtPools(t testing.TB, s *session.Session, virtual bool) {
	t.Helper()
	threads, err := s.Dump(session.DumpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := s.Pools()
	if err != nil || known.Err != "" {
		t.Fatal(err, known)
	}
	got, carriers := map[string]string{}, ""
	for _, p := range pools.Known(threads, known) {
		if len(p.Executors) != 1 {
			t.Errorf("%s: %d executors", p.Name, len(p.Executors))
			continue
		}
		e := p.Executors[0]
		if e.Kind == profile.Scheduler {
			carriers = p.Load()
			continue
		}
		load, due, _ := strings.Cut(p.Load(), ", the next ")
		if p.Name == "timed-*" && (e.Late <= 0 || e.Late > time.Hour) || p.Name != "timed-*" && due != "" {
			t.Errorf("%s: due since %v", p.Name, e.Late)
		}
		got[inComm(p.Name)] = fmt.Sprintf("%s; %s; %v done; room %v", load, e.Next, e.Done, e.Room)
	}
	for name, want := range executing {
		if got[inComm(name)] != want {
			t.Errorf("%s: %q, want %q", name, got[inComm(name)], want)
		}
		delete(got, inComm(name))
	}
	if len(got) > 0 || virtual && carriers != scheduler || !virtual && carriers != "" {
		t.Errorf("also: %q; carriers: %q", got, carriers)
	}
	if len(known.Connections) != 1 {
		t.Fatalf("%d pools of connections", len(known.Connections))
	}
	c := known.Connections[0]
	if text := pools.ConnectionsLoad(&c); c.Name != "Stock" ||
		!strings.HasPrefix(text, "6 of 10 connections out, 21 wait for one, the first for 1m") || c.Lent[5] != 1005 {
		t.Errorf("%s: %s, %+v", c.Name, text, c)
	}
}

// checkHolder: of three threads that know a proxy of a connection, one holds the connection.
func checkHolder(t *testing.T, s *session.Session) {
	t.Helper()
	threads, err := s.Dump(session.DumpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := s.Pools()
	if err != nil || len(known.Connections) != 1 {
		t.Fatal(err, known)
	}
	users := pools.Users(threads, &known.Connections[0], true)
	if len(users) != 1 || users[0].Name != "holder-1" || !strings.HasPrefix(users[0].Site, "truth.Executing") {
		t.Errorf("%+v", users)
	}
}
