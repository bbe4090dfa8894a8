//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goprof/agent"
	"goprof/agent/alarm"
	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session"
	"goprof/triage/vitals"
)

// An agent that takes snaps by itself has a second process, which watches its JVMs and takes them. It begins before
// the agent gives up rights: a snap needs more than samples do. It ends with the agent. The agent says on its
// standard input which JVMs there are ("jvms 12 34"), and that all need a snap ("all").

const (
	snapperName = "snapper"
	// watchEvery is how often a JVM's vitals are read, lookEvery how often deadlocks are looked for.
	watchEvery, lookEvery = 5 * time.Second, 30 * time.Second
	// mostWatched bounds the JVMs that are watched: each takes some MB.
	mostWatched = 50
	// Bounds of what is kept: the oldest snaps of the folder go.
	mostSnaps, mostSnapBytes = 20, 1 << 30
	// snapAgain is how soon one JVM has another snap, and snapLimit how long one may take.
	snapAgain, snapLimit = 10 * time.Minute, 3 * time.Minute
)

// startSnapper starts the second process, and has the agent say which JVMs there are. The function that it returns ends
// the process.
func startSnapper(ctx context.Context, c *config.Config, a *agent.Agent, talk io.Writer) (end func(), err error) {
	on := &c.Snaps.On
	if !on.Any() {
		return func() {}, nil
	}
	if err := os.MkdirAll(c.Snaps.Dir, 0o700); err != nil {
		return nil, &exit.Error{Code: exit.OutputFailed, What: "cannot keep snaps in " + c.Snaps.Dir, Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{snapperName, "--on", on.String(), "--dir", c.Snaps.Dir}
	if c.Redact != "" {
		args = append(args, "--redact", c.Redact)
	}
	if c.RedactKey != "" {
		args = append(args, "--redact-key", c.RedactKey)
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = talk
	asked := make(chan os.Signal, 1)
	if on.Signal {
		signal.Notify(asked, syscall.SIGUSR2)
		context.AfterFunc(ctx, func() { signal.Stop(asked) })
	}
	to, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		for range asked {
			fmt.Fprintln(to, "all")
		}
	}()
	latest := make(chan []int, 1)
	go func() {
		for pids := range latest {
			fmt.Fprintln(to, "jvms", strings.Trim(fmt.Sprint(pids), "[]"))
		}
	}()
	a.Watch(func(pids []int) {
		select {
		case <-latest: // the second process takes a snap, and has not read that list
		default:
		}
		latest <- pids
	})
	return func() {
		to.Close()
		ended := make(chan struct{})
		go func() {
			cmd.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(snapperEnds): // it ends a snap, and then itself
		}
	}, nil
}

// snapperEnds is how long the agent's end waits for the second process.
const snapperEnds = 2 * time.Second

// snapper is the second process.
type snapper struct {
	rules   alarm.Rules
	dir     string
	flags   []string // of the command snap
	say     func(string)
	watched map[int]*watchedJVM
	taken   map[int]time.Time
}

// watchedJVM is a JVM that is watched. Its session is nil until it can be attached to.
type watchedJVM struct {
	session *session.Session
	vitals  *vitals.Vitals
	watch   alarm.Watch
	looked  time.Time
	retry   time.Time
}

func newSnapper() *cobra.Command {
	var on, dir string
	var redacted redactFlags
	cmd := &cobra.Command{
		Use:    snapperName,
		Short:  "Take snaps of JVMs at alarms (started by agent)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := alarm.Parse(on)
			if err != nil {
				return usageError(cmd, err.Error())
			}
			s := &snapper{rules: rules, dir: dir, watched: map[int]*watchedJVM{}, taken: map[int]time.Time{},
				say: func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "goprof: "+text) }}
			for flag, value := range map[string]string{"redact": redacted.policy, "redact-key": redacted.key} {
				if value != "" {
					s.flags = append(s.flags, "--"+flag, value)
				}
			}
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGUSR2) // it ends with its input
			s.run(os.Stdin)
			return nil
		},
	}
	cmd.Flags().StringVar(&on, "on", "", "`alarms`")
	cmd.Flags().StringVar(&dir, "dir", "", "`folder`")
	redacted.add(cmd)
	return cmd
}

// run watches until its input ends.
func (s *snapper) run(from io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(from); in.Scan(); {
			lines <- in.Text()
		}
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return
			}
			if line == "all" {
				for pid := range s.watched {
					s.snap(pid, "SIGUSR2")
				}
				continue
			}
			s.follow(strings.Fields(line))
		case <-tick.C:
			for pid, w := range s.watched {
				if why := s.look(pid, w); why != "" {
					s.snap(pid, why)
				}
			}
		}
	}
}

// follow takes the list of JVMs.
func (s *snapper) follow(words []string) {
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
		}
	}
}

func (w *watchedJVM) close() {
	if w.vitals != nil {
		w.vitals.Close()
		w.session.Close()
	}
	*w = watchedJVM{retry: time.Now().Add(time.Minute)}
}

// look reads a JVM, and says why a snap is due. It stops no thread.
func (s *snapper) look(pid int, w *watchedJVM) (why string) {
	if !s.rules.Watches() || w.vitals == nil && !w.open(pid) {
		return ""
	}
	r, err := w.vitals.Read()
	if err != nil {
		w.close()
		return ""
	}
	if why = w.watch.Judge(&s.rules, r); why != "" || !s.rules.Stuck || time.Since(w.looked) < lookEvery {
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

// snap takes a snap in a process of its own, which may be killed. What was read before a JVM's death is kept.
func (s *snapper) snap(pid int, why string) {
	if last, ok := s.taken[pid]; ok && time.Since(last) < snapAgain {
		return
	}
	s.taken[pid] = time.Now()
	self, err := os.Executable()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapLimit)
	defer cancel()
	name := filepath.Join(s.dir, fmt.Sprintf("snap-%d-%s.zip", pid, time.Now().UTC().Format("20060102T150405Z")))
	s.say(fmt.Sprintf("a snap of process %d is taken: %s", pid, why))
	var talk bytes.Buffer
	args := append([]string{"snap", "--pid", strconv.Itoa(pid), "-o", name}, s.flags...)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = &talk
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	err = cmd.Run()
	var ended *exec.ExitError
	if _, gone := os.Stat(name); gone == nil {
		text := fmt.Sprintf("the snap of process %d is %s", pid, name)
		if errors.As(err, &ended) && ended.ExitCode() == int(exit.Incomplete) {
			text += ", without some parts: its README.txt says which and why"
		}
		s.say(text)
	} else {
		s.say(fmt.Sprintf("no snap of process %d: %s", pid, strings.TrimSpace(talk.String())))
	}
	if err := trimSnaps(s.dir, mostSnaps, mostSnapBytes); err != nil {
		s.say("old snaps cannot be removed: " + err.Error())
	}
}

var snapFile = regexp.MustCompile(`^snap-\d+-\d{8}T\d{6}Z\.zip$`)

// trimSnaps removes the oldest snaps of a folder until the rest is within the bounds. It removes no other files.
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
