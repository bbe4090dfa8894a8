//go:build linux

// Package snapper takes snaps of JVMs at alarms. An agent with alarms has a second process that watches the JVMs and
// takes the snaps. The agent starts that process (Keep) before it gives up rights, because a snap needs more rights
// than samples do. The process runs Watch, and ends with the agent. The agent writes to the process's standard input:
// the list of JVMs ("jvms 12 34"), or a request for snaps of all JVMs ("all").
//
// Watch stops no thread. It takes one snap at a time, by "goprof snap" in another process, and at most one of a JVM in
// 10 minutes. The newest snaps in the folder are kept.
package snapper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"goprof/agent/alarm"
	"goprof/cmd/goprof/exit"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session"
	"goprof/triage/vitals"
)

const (
	// Command is the command of goprof that runs Watch.
	Command = "snapper"
	// watchEvery is the time between two readings of a JVM's vitals, lookEvery between two searches for deadlocks.
	watchEvery, lookEvery = 5 * time.Second, 30 * time.Second
	// mostWatched limits the watched JVMs, because each takes some MB.
	mostWatched = 50
	// Limits of the folder. The oldest snaps are deleted.
	mostSnaps, mostSnapBytes = 20, 1 << 30
	// snapAgain is the least time between two snaps of a JVM. snapLimit limits the time of a snap.
	snapAgain, snapLimit = 10 * time.Minute, 3 * time.Minute
	// snapEnd limits the time in which an interrupted snap writes its parts.
	snapEnd = 25 * time.Second
	// Past is the time before the alarm that a snap covers, with vitals and samples of the agent's files.
	Past = 5 * time.Minute
	// NoFiles replaces the folder's name if a snap may not read the agent's files.
	NoFiles = "-"
)

// Options say which alarms are watched, and where snaps go.
type Options struct {
	Rules alarm.Rules
	Dir   string
	Files string   // the folder of the agent's files, or NoFiles
	Flags []string // for the command snap
	Say   func(string)
}

// watcher is the second process.
type watcher struct {
	Options
	watched map[int]*watchedJVM
	began   time.Time
	due     []dueSnap
	taken   map[int]time.Time // when the last snap of a JVM began
	refused map[int]bool      // it was logged that alarms of this JVM give no further snap
	take    func(ctx context.Context, pid int, why string, past io.Reader)
}

// dueSnap is a snap in the queue.
type dueSnap struct {
	pid int
	why string
}

// watchedJVM is a watched JVM. Its session is nil until goprof is attached.
type watchedJVM struct {
	session *session.Session
	vitals  *vitals.Vitals
	watch   alarm.Watch
	past    vitals.Table
	looked  time.Time
	retry   time.Time
}

func newWatcher(o Options) *watcher {
	w := &watcher{Options: o, began: time.Now(), watched: map[int]*watchedJVM{}, taken: map[int]time.Time{},
		refused: map[int]bool{}}
	w.take = w.snap
	return w
}

// Watch watches the JVMs that its input lists, until the input ends.
func Watch(o Options, from io.Reader) { newWatcher(o).run(from) }

// run watches until its input ends. One snap at a time is taken meanwhile. At the end of the input a running snap ends
// early, and keeps the parts that it has.
func (s *watcher) run(from io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(from); in.Scan(); {
			lines <- in.Text()
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var taking chan struct{} // nil: no snap is running
	for {
		if taking == nil && len(s.due) > 0 {
			taking = s.takeNext(ctx)
		}
		select {
		case line, open := <-lines:
			if !open {
				cancel()
				if taking != nil {
					<-taking
				}
				return
			}
			if line == "all" {
				for pid := range s.watched {
					s.want(pid, sigusr2)
				}
				continue
			}
			s.follow(strings.Fields(line))
		case <-taking:
			taking = nil
		case <-tick.C:
			for pid, w := range s.watched {
				if why := s.look(pid, w); why != "" {
					s.want(pid, why)
				}
			}
		}
	}
}

// takeNext starts the next snap in the queue. The returned channel is closed at the end of the snap.
func (s *watcher) takeNext(ctx context.Context) (taken chan struct{}) {
	next := s.due[0]
	s.due = s.due[1:]
	s.taken[next.pid] = time.Now()
	delete(s.refused, next.pid)
	taken = make(chan struct{})
	var past bytes.Buffer
	if w := s.watched[next.pid]; w != nil {
		w.past.CSV(&past)
	}
	go func() {
		defer close(taken)
		s.take(ctx, next.pid, next.why, &past)
	}()
	return taken
}

// sigusr2 is the reason of a requested snap.
const sigusr2 = "SIGUSR2"

// want puts a snap into the queue, or logs why not. An alarm may last, so it is logged once.
func (s *watcher) want(pid int, why string) {
	if s.place(pid) >= 0 {
		return
	}
	last, ok := s.taken[pid]
	if ago := time.Since(last); ok && ago < snapAgain {
		if why == sigusr2 || !s.refused[pid] {
			s.Say(fmt.Sprintf("no snap of process %d (%s): it has had a snap %d minutes ago, and has one in %d minutes",
				pid, why, int(ago.Minutes()), int(snapAgain.Minutes())))
		}
		s.refused[pid] = s.refused[pid] || why != sigusr2
		return
	}
	s.due = append(s.due, dueSnap{pid, why})
}

// follow takes the list of JVMs.
func (s *watcher) follow(words []string) {
	now := map[int]bool{}
	for _, word := range words[min(1, len(words)):] {
		if pid, err := strconv.Atoi(word); err == nil && len(now) < mostWatched {
			if now[pid] = true; s.watched[pid] == nil {
				s.watched[pid] = &watchedJVM{}
			}
		}
	}
	for pid, w := range s.watched {
		if !now[pid] {
			w.close()
			delete(s.watched, pid)
			delete(s.taken, pid)
			delete(s.refused, pid)
			s.forget(pid)
		}
	}
}

// place returns a JVM's place in the queue, or -1.
func (s *watcher) place(pid int) int {
	return slices.IndexFunc(s.due, func(d dueSnap) bool { return d.pid == pid })
}

// forget takes a JVM out of the queue.
func (s *watcher) forget(pid int) {
	if i := s.place(pid); i >= 0 {
		s.due = slices.Delete(s.due, i, i+1)
		s.Say(fmt.Sprintf("no snap of process %d: before its turn it ended, or was no longer wanted", pid))
	}
}

func (w *watchedJVM) close() {
	if w.vitals != nil {
		w.vitals.Close()
		w.session.Close()
	}
	*w = watchedJVM{past: w.past, retry: time.Now().Add(time.Minute)}
}

// look reads a JVM, and returns why a snap is due. It stops no thread.
func (s *watcher) look(pid int, w *watchedJVM) (why string) {
	if w.vitals == nil && !w.open(pid) {
		return ""
	}
	r, err := w.vitals.Read()
	if err != nil {
		w.close()
		return ""
	}
	w.note(r)
	if why = w.watch.Judge(&s.Rules, r); why != "" || !s.Rules.Stuck || time.Since(w.looked) < lookEvery {
		return why
	}
	w.looked = time.Now()
	var waits profile.VirtualWaits
	threads, err := w.session.Dump(session.DumpOptions{NonBlocking: true, Locks: true, Virtual: &waits,
		Find: time.Second})
	if err != nil {
		return ""
	}
	return w.watch.Deadlocked(len(contention.New(threads).Deadlocks) > 0)
}

// note keeps a reading for a later snap.
func (w *watchedJVM) note(r *vitals.Reading) {
	if w.past.Add(r); len(w.past) > int(Past/watchEvery) {
		w.past = w.past[1:]
	}
}

// open attaches to a JVM and opens its vitals. It returns false if that fails, or if it failed less than a minute ago.
func (w *watchedJVM) open(pid int) bool {
	if time.Now().Before(w.retry) {
		return false
	}
	s, err := session.Attach(pid)
	if err == nil {
		if w.vitals, err = vitals.Open(s); err != nil {
			s.Close()
		}
	}
	if w.session = s; err != nil {
		w.vitals = nil
		w.close()
	}
	return err == nil
}

// snap takes a snap in another process, which may be killed. If the JVM dies, the parts that were already read are
// kept.
func (s *watcher) snap(ctx context.Context, pid int, why string, past io.Reader) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapLimit)
	defer cancel()
	name := filepath.Join(s.Dir, fmt.Sprintf("snap-%d-%s.zip", pid, time.Now().UTC().Format("20060102T150405Z")))
	s.Say(fmt.Sprintf("a snap of process %d is taken: %s", pid, why))
	var talk bytes.Buffer
	files := s.Files
	if len(s.Flags) > 0 && time.Since(s.began) < Past {
		files = NoFiles // an earlier agent may have written names into them
	}
	args := append([]string{"snap", "--pid", strconv.Itoa(pid), "-o", name, "--before", files}, s.Flags...)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdin, cmd.Stderr = past, &talk
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, snapEnd
	err = cmd.Run()
	var ended *exec.ExitError
	if _, gone := os.Stat(name); gone == nil {
		text := fmt.Sprintf("the snap of process %d is %s", pid, name)
		if errors.As(err, &ended) && ended.ExitCode() == int(exit.Incomplete) {
			text += ", without some parts: its README.txt says which and why"
		}
		s.Say(text)
	} else {
		if talk.Len() == 0 {
			fmt.Fprint(&talk, err)
		}
		s.Say(fmt.Sprintf("no snap of process %d: %s", pid, strings.TrimSpace(talk.String())))
	}
	if err := trimSnaps(s.Dir, mostSnaps, mostSnapBytes); err != nil {
		s.Say("old snaps cannot be removed: " + err.Error())
	}
}

var snapFile = regexp.MustCompile(`^snap-\d+-\d{8}T\d{6}Z\.zip$`)

// trimSnaps deletes the oldest snaps of a folder until the rest is within the limits. It deletes no other files.
func trimSnaps(dir string, most int, mostBytes int64) error {
	entries, err := os.ReadDir(dir)
	var list []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && snapFile.MatchString(e.Name()) {
			list = append(list, info)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ModTime().After(list[j].ModTime()) })
	sum := int64(0)
	for i, info := range slices.All(list) {
		if sum += info.Size(); i >= most || sum > mostBytes && i > 0 {
			err = errors.Join(err, os.Remove(filepath.Join(dir, info.Name())))
		}
	}
	return err
}
