//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// onScreen is goprof on a terminal that is looked at.
type onScreen struct {
	t      *testing.T
	cmd    *exec.Cmd
	ours   *os.File
	theirs *os.File
	errors strings.Builder
	before unix.Termios

	mu     sync.Mutex
	screen *screen
	raw    []byte
	closed chan struct{}
}

// startOnScreen starts goprof in a session of its own, with a terminal of that size that it controls.
func startOnScreen(t *testing.T, columns, rows int, env []string, args ...string) *onScreen {
	t.Helper()
	return startProgram(t, columns, rows, env, nil, append([]string{"goprof"}, args...)...)
}

// init makes this program a shell, too.
func init() { programs["onejob"] = oneJob }

// oneJob is a shell with one job, which has the terminal: the kernel stops no process by Ctrl-Z that has no shell. It
// writes the job's number to descriptor 3.
func oneJob() {
	signal.Ignore(unix.SIGTTOU, unix.SIGTTIN, unix.SIGTSTP)
	job := exec.Command("goprof", os.Args[1:]...)
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	if err := job.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.NewFile(3, "number"), job.Process.Pid)
	job.Wait()
	os.Exit(job.ProcessState.ExitCode())
}

// startProgram is startOnScreen for any program.
func startProgram(t *testing.T, columns, rows int, env []string, extra []*os.File, args ...string) *onScreen {
	t.Helper()
	ours, theirs := openTerminal(t, columns)
	s := &onScreen{t: t, ours: ours, theirs: theirs, screen: newScreen(columns, rows), closed: make(chan struct{})}
	s.setSize(columns, rows)
	s.before = s.modes()
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir = t.TempDir()
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, &s.errors
	s.cmd.ExtraFiles = extra
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		theirs.Close()
		<-s.closed
		ours.Close()
		if t.Failed() {
			t.Logf("the last screen:\n%s\nstderr: %s", s.text(), s.errors.String())
		}
	})
	return s
}

func (s *onScreen) read() {
	defer close(s.closed)
	b := make([]byte, 1<<16)
	for {
		n, err := s.ours.Read(b)
		s.mu.Lock()
		s.screen.write(b[:n])
		s.raw = append(s.raw, b[:n]...)
		s.mu.Unlock()
		if err != nil {
			return // EIO: nobody has the other end
		}
	}
}

func (s *onScreen) modes() unix.Termios {
	t, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *t
}

func (s *onScreen) setSize(columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(s.ours.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		s.t.Fatal(err)
	}
	s.screen.resize(columns, rows)
}

// text is what the screen shows now.
func (s *onScreen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.text()
}

func (s *onScreen) keys(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.ours, keys); err != nil {
		s.t.Fatal(err)
	}
}

// screenLimit bounds a hang, and measures nothing.
var screenLimit = jvmtest.Slow(45 * time.Second)

// await waits until the screen shows that.
func (s *onScreen) await(pattern string) string {
	s.t.Helper()
	return s.awaitThat(pattern, regexp.MustCompile(pattern).MatchString)
}

// awaitWithout waits until it does not.
func (s *onScreen) awaitWithout(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	return s.awaitThat("no "+pattern, func(text string) bool { return !re.MatchString(text) })
}

func (s *onScreen) awaitThat(what string, is func(string) bool) string {
	s.t.Helper()
	for end := time.Now().Add(screenLimit); ; time.Sleep(20 * time.Millisecond) {
		if text := s.text(); is(text) {
			return text
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s is not on the screen:\n%s", what, s.text())
		}
		if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			s.t.Fatalf("%s is not on the screen, and goprof has ended: %v", what, err)
		}
	}
}

// wait waits for the end, and wants the terminal as it was.
func (s *onScreen) wait() (code int) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(screenLimit):
		s.t.Fatal("goprof does not end")
	}
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		code = exited.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	s.isRestored()
	return code
}

// isRestored wants the terminal as it was before goprof.
func (s *onScreen) isRestored() {
	s.t.Helper()
	told := ""
	for end := time.Now().Add(screenLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if told = s.notRestored(); told == "" { // what is in the terminal's buffer has come, or the watchdog has
			break
		}
	}
	if told != "" {
		s.t.Error(told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.screen.odd) > 0 {
		s.t.Errorf("sequences that the emulator does not know: %q", s.screen.odd)
	}
}

// notRestored is what of the terminal is not as it was, empty if all is.
func (s *onScreen) notRestored() string {
	if now := s.modes(); now != s.before {
		return fmt.Sprintf("the terminal's modes are %+v, were %+v", now, s.before)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen.alternate || s.screen.hidden || len(s.screen.keyboard) > 0 {
		return fmt.Sprintf("alternate screen %v, cursor hidden %v, not set back: %v", s.screen.alternate,
			s.screen.hidden, s.screen.keyboard)
	}
	return ""
}

// topOf starts the program whose rates are known, and top on a screen.
func topOf(t *testing.T, jdk jvmtest.JDK, columns, rows int, env []string, args ...string) (*jvmtest.JVM, *onScreen) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Rates", "--", "20")
	s := startOnScreen(t, columns, rows, env, append([]string{"top", strconv.Itoa(jvm.PID)}, args...)...)
	s.await(`THREAD by cpu`)
	return jvm, s
}

// TestTopKeys: what each key does, by what is on the screen then.
func TestTopKeys(t *testing.T) {
	jvm, s := topOf(t, jvmtest.JDKs(t)[0], 110, 80, nil)
	// A screen comes in pieces: each of these is waited for.
	s.await(`(?m)^[> ]\s*\d+ .*\w+\s+cpu-30 .*truth\.Rates\.`)
	for _, want := range []string{`(?m)^goprof top  ` + strconv.Itoa(jvm.PID) + ` truth\.Rates `,
		`(?m)^CPU +[\d.]+% of \d+%`, `(?m)^goprof +[\d.]+% of a CPU, .* pauses`, `METHOD by self, \d+ samples`,
		`(?m)^\? help  q quit`} {
		s.await(want)
	}

	byName := func(head string, reversed bool) func(text string) bool {
		return func(text string) bool {
			names := column(text, `sleeping +(sleeper-\d+)`)
			if reversed {
				slices.Reverse(names)
			}
			return regexp.MustCompile(head).MatchString(text) && slices.IsSorted(names) && len(names) >= 5
		}
	}
	s.keys("n")
	s.awaitThat("threads by name", byName(`THREAD by name +JAVA`, false))
	s.keys("n")
	s.awaitThat("threads by name, reversed", byName(`THREAD by name reversed`, true))
	s.keys("s")
	s.await(`THREAD by state`)
	s.keys("a")
	s.await(`THREAD by alloc`)

	s.keys("c/sleeper-1")
	s.await(`filter: sleeper-1`)
	s.keys("\r")
	s.awaitThat("what is filtered", func(text string) bool {
		got := column(text, `(sleeper-\d+|cpu-\d+|evil)`)
		return regexp.MustCompile(`(?m)^filter: sleeper-1  \? help`).MatchString(text) && len(got) >= 11 &&
			!slices.Contains(got, "cpu-30")
	})
	s.keys("\x1b")
	s.awaitWithout(`filter:`)
	s.await(`cpu-30`)

	s.keys("?")
	s.await(`(?m)^  space +freeze the screen`)
	s.keys("x")
	s.awaitWithout(`freeze the screen`)

	s.keys("\t\t")
	s.awaitWithout(`THREAD by`)
	s.keys("t")
	s.await(`METHOD by total`)
	s.keys("\t")
	s.await(`(?s)THREAD by cpu.*METHOD by total`)

	s.keys("q")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// column is what a pattern's group matches, from top to bottom.
func column(text, pattern string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestTopFreeze: a frozen screen stays as it is, while readings come.
func TestTopFreeze(t *testing.T) {
	_, s := topOf(t, jvmtest.JDKs(t)[0], 100, 30, nil, "-i", "200ms")
	s.keys(" ")
	frozen := s.await(`FROZEN`)
	end := time.Now().Add(screenLimit)
	for last := ""; frozen != last && time.Now().Before(end); frozen = s.text() { // until all of that screen has come
		last = frozen
		time.Sleep(300 * time.Millisecond)
	}
	s.mu.Lock()
	seen := len(s.raw)
	s.mu.Unlock()
	time.Sleep(2 * time.Second)
	s.mu.Lock()
	drawn := s.raw[seen:]
	s.mu.Unlock()
	if now := s.text(); now != frozen {
		t.Errorf("a frozen screen has changed, by %q, to\n%s\nfrom\n%s", drawn, now, frozen)
	}
	s.keys(" ")
	s.awaitThat("another screen", func(text string) bool { return text != frozen && !strings.Contains(text, "FROZEN") })
	s.keys("\x03")
	s.wait()
}

// TestTopFiles: d writes a dump, r a recording; both say where, and both are whole.
func TestTopFiles(t *testing.T) {
	_, s := topOf(t, jvmtest.JDKs(t)[0], 120, 30, nil)
	s.keys("d")
	name := column(s.await(`written dump-\S+\.txt`), `written (dump-\S+\.txt)`)[0]
	dump, err := os.ReadFile(filepath.Join(s.cmd.Dir, name))
	if err != nil || !bytes.Contains(dump, []byte(`"sleeper-19" tid=`)) || !bytes.Contains(dump, []byte("truth.Rates.")) {
		t.Errorf("%v; the dump is %.300q", err, dump)
	}
	s.await(`METHOD by self, [1-9]\d* samples`)
	name, wait := s.record()
	report, err := exec.Command("goprof", "report", filepath.Join(s.cmd.Dir, name)).CombinedOutput()
	if err != nil || !bytes.Contains(report, []byte("truth.Rates.")) {
		t.Errorf("report of the recording: %v\n%s", err, report)
	}
	s.keys("r") // ended by q
	s.await(`RECORDING \S+\.jfr`)
	time.Sleep(wait)
	s.keys("q")
	if code := s.wait(); code != 0 || !strings.Contains(s.errors.String(), "goprof: recorded top-") {
		t.Errorf("exit code %d, %s", code, s.errors.String())
	}
}

// record has top make a recording, and tells how long it took until there was a sample: on a busy machine a recording
// begins late.
func (s *onScreen) record() (name string, wait time.Duration) {
	s.t.Helper()
	for wait = 2 * time.Second; wait < screenLimit; wait *= 2 {
		s.keys("r")
		name = column(s.await(`RECORDING \S+\.jfr`), `RECORDING (\S+\.jfr)`)[0]
		time.Sleep(wait)
		s.keys("r")
		text := s.await(`recorded \S+\.jfr|no samples: nothing was recorded`)
		s.awaitWithout(`RECORDING`)
		if strings.Contains(text, "recorded "+name) {
			return name, wait
		}
		s.keys("c") // which takes the message away
		s.awaitWithout(`no samples`)
	}
	s.t.Fatal("no recording has a sample")
	return "", 0
}

// TestTopStack: Enter shows the stack of the selected thread, Esc goes back, and the selection follows its thread.
func TestTopStack(t *testing.T) {
	_, s := topOf(t, jvmtest.JDKs(t)[0], 100, 30, nil)
	s.keys("/sleeper-7\r")
	s.await(`(?m)^>.*sleeper-7`)
	s.keys("\r")
	s.await(`(?s)stack of "sleeper-7" tid=\d+.*java\.lang\.Thread\.sleep.*truth\.Rates\.restForEver +Rates\.java:\d+`)
	s.keys("\x1b")
	s.awaitWithout(`stack of`)
	s.keys("\x1b")
	s.await(`(?s)THREAD by cpu +JAVA FRAME.*\n> [^\n]*sleeper-7`) // among the others again
	s.keys("q")
	s.wait()
}

// TestTopHostileNames: a thread's name cannot do anything to the terminal.
func TestTopHostileNames(t *testing.T) {
	_, s := topOf(t, jvmtest.JDKs(t)[0], 140, 40, nil)
	s.keys("/evil\r")
	s.await(`evil\?\[2J\?\]0;owned\?+;<b>名前`)
	s.keys("\r")
	s.await(`stack of "evil\?\[2J\?\]0;owned\?+;<b>名前" tid=`)
	s.mu.Lock()
	for _, bad := range []string{"\x1b]0;", "\u202e", "owned\a"} {
		if bytes.Contains(s.raw, []byte(bad)) {
			t.Errorf("%q came to the terminal", bad)
		}
	}
	s.mu.Unlock()
	s.keys("q")
	s.wait()
}

// TestTopSizes: a narrow terminal has what is most important, and one that is resized is drawn anew.
func TestTopSizes(t *testing.T) {
	_, s := topOf(t, jvmtest.JDKs(t)[0], 40, 24, nil)
	s.await(`(?m)^.\s+[\d.]+ +\w+ +cpu-30`)
	for _, size := range [][2]int{{100, 30}, {20, 6}, {40, 10}, {1, 1}, {80, 24}} {
		s.setSize(size[0], size[1])
		if size[0] >= 40 {
			s.await(`(?s)THREAD by cpu.*\w+ +cpu-30`)
		}
		time.Sleep(300 * time.Millisecond)
	}
	text := s.await(`(?s)^goprof top  .*THREAD by cpu.*\? help  q quit`)
	if lines := strings.Split(strings.TrimRight(text, "\n"), "\n"); len(lines) != 24 {
		t.Errorf("%d lines on a terminal of 24:\n%s", len(lines), text)
	}
	s.keys("q")
	s.wait()
}

// TestTopColours: NO_COLOR leaves colours out, TERM=dumb all styles.
func TestTopColours(t *testing.T) {
	for name, c := range map[string]struct {
		env              []string
		styled, coloured bool
	}{
		"as ever":  {nil, true, true},
		"NO_COLOR": {[]string{"NO_COLOR=1"}, true, false},
		"dumb":     {[]string{"TERM=dumb"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, c.env)
			s.await(`\w+ +cpu-30`)
			s.keys("q")
			s.wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if styled, coloured := s.screen.styled > 0, s.screen.coloured > 0; styled != c.styled || coloured != c.coloured {
				t.Errorf("styled %v, coloured %v", styled, coloured)
			}
		})
	}
}

// TestTopEnds: by a signal, and by the end of the JVM, the terminal is as it was.
func TestTopEnds(t *testing.T) {
	t.Run("SIGTERM", func(t *testing.T) {
		_, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, nil)
		s.cmd.Process.Signal(syscall.SIGTERM)
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("JVM", func(t *testing.T) {
		jvm, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, nil)
		s.await(`cpu-30`)
		jvm.Kill()
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(s.errors.String(), fmt.Sprintf("process %d has ended", jvm.PID)) {
			t.Errorf("it said %q", s.errors.String())
		}
		for end := time.Now().Add(screenLimit); !strings.Contains(s.text(), "cpu-30"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the last reading is gone:\n%s", s.text())
			}
		}
	})
	t.Run("after a while", func(t *testing.T) {
		_, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, nil, "-d", "3")
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// jobOnScreen starts top as the job of a shell. It returns the job's number.
func jobOnScreen(t *testing.T, jvm *jvmtest.JVM) (*onScreen, int) {
	t.Helper()
	tell, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer tell.Close()
	s := startProgram(t, 80, 24, nil, []*os.File{told}, "onejob", "top", strconv.Itoa(jvm.PID))
	told.Close()
	job := 0
	if _, err := fmt.Fscan(tell, &job); err != nil {
		t.Fatal(err)
	}
	s.await(`\w+ +cpu-30`)
	return s, job
}

// noneStands wants no thread of the JVM to be stopped or traced.
func noneStands(t *testing.T, jvm *jvmtest.JVM) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", jvm.PID))
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		if state := stateOfThread(jvm.PID, tid); strings.ContainsAny(state, "Tt") {
			t.Errorf("thread %d is in state %s", tid, state)
		}
	}
	if len(tasks) == 0 {
		t.Error("the JVM has no threads")
	}
}

// TestTopSuspend: Ctrl-Z gives the terminal back and stops goprof, and nobody else; when it goes on, so does the
// screen.
func TestTopSuspend(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "20")
	s, goprof := jobOnScreen(t, jvm)
	for round := range 3 {
		if round == 1 {
			unix.Kill(goprof, unix.SIGTSTP)
		} else {
			s.keys("\x1a")
		}
		awaitState(t, goprof, "T")
		s.isRestored()
		noneStands(t, jvm)
		unix.Kill(goprof, unix.SIGCONT)
		awaitState(t, goprof, "SR")
		s.await(`(?s)THREAD by cpu.*\w+ +cpu-30`)
	}
	s.keys("q")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTopKilled: whatever ends goprof, the terminal is as it was, and no thread stands.
func TestTopKilled(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "20")
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGABRT, unix.SIGQUIT, unix.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			s, goprof := jobOnScreen(t, jvm)
			unix.Kill(goprof, sig)
			s.cmd.Wait()
			s.isRestored() // the watchdog comes a moment later
			noneStands(t, jvm)
		})
	}
}

// awaitState waits until a process is in one of these states.
func awaitState(t *testing.T, pid int, states string) {
	t.Helper()
	for end := time.Now().Add(screenLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(states, stateOfProcess(t, pid)) {
			return
		}
	}
	t.Fatalf("process %d is not in state %s", pid, states)
}

func stateOfProcess(t *testing.T, pid int) string {
	state := stateOfThread(pid, pid)
	if state == "" {
		t.Fatalf("process %d is gone", pid)
	}
	return state
}

// stateOfThread is the kernel's letter, empty for one that is gone.
func stateOfThread(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if i := bytes.LastIndexByte(b, ')'); err == nil && i > 0 && i+2 < len(b) {
		return string(b[i+2 : i+3])
	}
	return ""
}

// costRefreshes is how many readings the cost is measured over, costTries how often, and costMost what it should be.
const costRefreshes, costTries, costMost = 20, 3, 0.05

// TestTopCost: at one reading a second of 200 threads, each of which wakes up once a second, top uses less than 5 % of
// one CPU. A machine that is shared makes the same work dearer, so make test leaves it out:
//
//	GOPROF_PROVE=1 go test ./cmd/goprof -run TestTopCost -v
func TestTopCost(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") != "1" {
		t.Skip("a figure, measured for a minute: set GOPROF_PROVE=1")
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "200", "1")
	s := startOnScreen(t, 120, 50, nil, "top", strconv.Itoa(jvm.PID))
	s.await(`METHOD by self, [1-9]\d* samples`)
	share, text := 1.0, ""
	for range costTries { // what else the machine does makes the same work dearer, and never cheaper
		cpu, began := cpuOf(t, s.cmd.Process.Pid), time.Now()
		time.Sleep(costRefreshes * time.Second)
		cpu = cpuOf(t, s.cmd.Process.Pid) - cpu
		share, text = cpu.Seconds()/time.Since(began).Seconds(), s.text()
		t.Logf("%.1f ms of CPU for each reading, %.2f %% of one CPU; top itself says %s %%; %s",
			cpu.Seconds()*1e3/costRefreshes, 100*share, column(text, `(?m)^goprof +([\d.]+)% of a CPU`),
			column(text, `(\d+ threads)`))
		if share <= costMost {
			break
		}
	}
	s.keys("q")
	s.wait()
	if share > costMost {
		t.Errorf("top uses %.2f %% of a CPU\n%s", 100*share, text)
	}
}

// cpuOf is what a process has used (proc(5), /proc/PID/stat, utime and stime).
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// TestScreenTooSmall: the emulator bears what a program draws that has not heard of the terminal's new size.
func TestScreenTooSmall(t *testing.T) {
	for _, rows := range []int{1, 3} {
		s := newScreen(1, rows)
		s.write([]byte("\u540d\u524d\x1b[5;9r\n\n\n\x1b[2L\x1b[3M\x1bM\x1b[3;2r\x1b[9;9H\n\x1b[L\x1b[S\x1b[T\x1b[9X\x1b[9P"))
		if text := s.text(); strings.Count(text, "\n") != rows {
			t.Errorf("%d rows: %q", rows, text)
		}
	}
}
