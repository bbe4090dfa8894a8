//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// topOf starts the program with known rates, and top on a screen.
func topOf(t *testing.T, jdk jvmtest.JDK, columns, rows int, env []string, args ...string) (*jvmtest.JVM, *onScreen) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Rates", "--", "20")
	s := startOnScreen(t, columns, rows, env, append([]string{"top", strconv.Itoa(jvm.PID)}, args...)...)
	s.await(`THREAD by cpu`)
	return jvm, s
}

// TestTopKeys: the screen shows what each key does.
func TestTopKeys(t *testing.T) {
	t.Parallel()
	jvm, s := topOf(t, jvmtest.JDKs(t)[0], 110, 80, nil)
	// A screen comes in pieces, so the test waits for each of these.
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

	selectByKeys(t, s)
	scrollStack(s)

	s.keys("q")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// selectByKeys tries the keys that choose a thread, on a list that is longer than the screen. The marked line on the
// screen shows which thread is chosen. Backspace and Ctrl-U take typed text back.
func selectByKeys(t *testing.T, s *onScreen) {
	t.Helper()
	s.keys("n/xyz\x15sleeper-y\x7f")
	s.await(`filter: sleeper-[^y]`)
	s.keys("\r")
	all := column(s.awaitThat("all sleepers", func(text string) bool {
		return len(column(text, `sleeping +(sleeper-\d+)`)) == 19
	}), `sleeping +(sleeper-\d+)`)
	marked := func(name string) { s.t.Helper(); s.await(`(?m)^> .*sleeping +` + name + ` `) }
	s.setSize(110, 24)
	s.keys(endKey)
	page := len(column(s.await(`(?m)^> .*sleeping +`+all[18]+` `), `sleeping +(sleeper-\d+)`))
	if page < 3 || page > 17 {
		t.Fatalf("%d of 19 threads are shown", page)
	}
	marked(all[18])
	s.keys(homeKey)
	marked(all[0])
	s.keys(downKey + downKey)
	marked(all[2])
	s.keys(upKey)
	marked(all[1])
	s.keys(pageDownKey)
	marked(all[min(1+page, 18)])
	s.keys(pageUpKey)
	marked(all[max(min(1+page, 18)-page, 0)])
}

// A terminal sends these for keys without a letter (ECMA-48's CSI, as xterm uses it).
const (
	upKey, downKey, homeKey, endKey = "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F"
	pageUpKey, pageDownKey          = "\x1b[5~", "\x1b[6~"
)

// scrollStack tries the keys that move through the selected thread's stack, on a screen with room for half of it.
func scrollStack(s *onScreen) {
	s.t.Helper()
	s.setSize(110, 14)
	s.keys("\r")
	s.await(`(?s)stack of "sleeper-\d+".*java\.lang\.Thread\.sleep.*truth\.Rates\.restForEver`)
	s.keys(endKey)
	s.awaitWithout(`restForEver`)
	s.await(`stack of`)
	s.keys(homeKey)
	s.await(`(?s)Thread\.sleep.*restForEver`)
	const many = 30 // lines: no stack here has more
	s.keys(strings.Repeat(downKey, many))
	s.awaitWithout(`Thread\.sleep`)
	s.keys(strings.Repeat(upKey, many))
	s.await(`Thread\.sleep`)
	s.keys(strings.Repeat(pageDownKey, 3))
	s.awaitWithout(`Thread\.sleep`)
	s.keys(strings.Repeat(pageUpKey, 3))
	s.await(`Thread\.sleep`)
	s.keys(" ")
	s.await(`FROZEN`)
	s.keys(" ?")
	s.await(`freeze the screen`)
	s.keys("x\x1b")
	s.await(`THREAD by name`)
}

// column is what the group of a pattern matches, from top to bottom.
func column(text, pattern string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestTopFreeze: a frozen screen does not change while readings come.
func TestTopFreeze(t *testing.T) {
	t.Parallel()
	_, s := topOf(t, jvmtest.JDKs(t)[0], 100, 30, nil, "-i", "200ms")
	s.keys(" ")
	frozen := s.await(`FROZEN`)
	end := time.Now().Add(screenLimit)
	// The rest of the screen comes when goprof has a CPU. Then the screen must not change for ten readings.
	for last := ""; frozen != last; frozen = s.text() {
		if time.Now().After(end) {
			t.Fatalf("a frozen screen changes again and again, to\n%s\nfrom\n%s", frozen, last)
		}
		last = frozen
		time.Sleep(2 * time.Second)
	}
	s.keys(" ")
	s.awaitThat("another screen", func(text string) bool { return text != frozen && !strings.Contains(text, "FROZEN") })
	s.keys("\x03")
	s.wait()
}

// TestTopFiles: d writes a dump, r writes a recording. Both say where, and both files are whole.
func TestTopFiles(t *testing.T) {
	t.Parallel()
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
	s.keys("r") // q ends this one
	s.await(`RECORDING \S+\.jfr`)
	time.Sleep(2 * wait) // the machine may stand still for a part of that time
	s.keys("q")
	if code := s.wait(); code != 0 || !strings.Contains(s.errors.String(), "goprof: recorded top-") {
		t.Errorf("exit code %d, %s", code, s.errors.String())
	}
}

// record makes a recording in top. It tells how long it took until there was a sample: on a busy machine a recording
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
		s.keys("c") // this removes the message
		s.awaitWithout(`no samples`)
	}
	s.t.Fatal("no recording has a sample")
	return "", 0
}

// TestTopStack: Enter shows the stack of the selected thread. Esc goes back. The selection follows its thread.
func TestTopStack(t *testing.T) {
	t.Parallel()
	_, s := topOf(t, jvmtest.JDKs(t)[0], 100, 30, nil)
	s.keys("/sleeper-7\r")
	s.await(`(?m)^>.*sleeper-7`)
	s.keys("\r")
	s.await(`(?s)stack of "sleeper-7" tid=\d+.*java\.lang\.Thread\.sleep.*truth\.Rates\.restForEver +Rates\.java:\d+`)
	s.keys("\x1b")
	s.awaitWithout(`stack of`)
	s.keys("\x1b")
	s.await(`(?s)THREAD by cpu +JAVA FRAME.*\n> [^\n]*sleeper-7`) // it is among the others again
	s.keys("q")
	s.wait()
}

// TestTopHostileNames: no name of a thread can steer the terminal.
func TestTopHostileNames(t *testing.T) {
	t.Parallel()
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

// TestTopSizes: a narrow terminal shows what is most important. A resized terminal is drawn anew.
func TestTopSizes(t *testing.T) {
	t.Parallel()
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

// TestTopDumb: a terminal that cannot move its cursor gets no screen.
func TestTopDumb(t *testing.T) {
	s := startOnScreen(t, 80, 24, []string{"TERM=dumb"}, "top", "1")
	if code := s.wait(); code != int(exit.General) {
		t.Errorf("exit code %d", code)
	}
	want := "goprof: cannot show the screen: TERM=dumb is a terminal that cannot move its cursor\n" +
		"try: goprof top 1 --once\n"
	if got := s.errors.String(); got != want || len(s.raw) > 0 {
		t.Errorf("stderr %q, the terminal %q", got, s.raw)
	}
}

// TestTopColours: NO_COLOR leaves colours out.
func TestTopColours(t *testing.T) {
	for name, c := range map[string]struct {
		env              []string
		styled, coloured bool
	}{
		"as ever":  {nil, true, true},
		"NO_COLOR": {[]string{"NO_COLOR=1"}, true, false},
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
