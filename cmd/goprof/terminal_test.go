//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// TestProgressOnTerminal: the line is drawn, drawn anew within the terminal's width, and
// wiped; what stays on the screen is what a pipe would get.
func TestProgressOnTerminal(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "--", "1", "2")
	args := []string{"record", "--pid", fmt.Sprint(jvm.PID), "-d", "3.5", "-o", t.TempDir() + "/o.collapsed"}

	const width = 30
	raw := onTerminal(t, width, "xterm", args...)
	draws := regexp.MustCompile(`\r\x1b\[K(\d+s of 3\.5s  \d+ samples[^\r\n]*)`).FindAllStringSubmatch(raw, -1)
	if len(draws) < 2 {
		t.Fatalf("%d progress lines in %q", len(draws), raw)
	}
	if draws[0][1] == draws[len(draws)-1][1] {
		t.Errorf("the line stays the same: %q", raw)
	}
	for _, d := range draws {
		if len(d[1]) >= width {
			t.Errorf("%q wraps on a terminal of %d columns", d[1], width)
		}
	}
	screen := show(t, raw)
	if !regexp.MustCompile(`^CPU +used [0-9.]+ m?s in `).MatchString(screen) || strings.Contains(screen, "of 3.5s") {
		t.Errorf("the screen shows %q", screen)
	}
	if screen := onTerminal(t, 100, "xterm", args...); !strings.Contains(screen, "samples  (Ctrl-C ends and writes)") &&
		!strings.Contains(screen, "(Ctrl-C ends and writes)") {
		t.Errorf("on a wide terminal: %q", screen)
	}

	args[4] = "1.5"
	for name, raw := range map[string]string{
		"a pipe":          toPipe(t, args...),
		"a dumb terminal": onTerminal(t, width, "dumb", args...),
		"a quiet one":     onTerminal(t, width, "xterm", append(args, "-q")...),
	} {
		if strings.Contains(raw, "\x1b") || strings.Contains(raw, "Ctrl-C") || strings.Contains(raw, "of 1.5s") {
			t.Errorf("%s got %q", name, raw)
		}
	}
}

// onTerminal runs goprof with a terminal as its standard error, and returns what came there.
func onTerminal(t *testing.T, width int, term string, args ...string) string {
	t.Helper()
	ours, theirs := openTerminal(t, width)
	var raw bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&raw, ours) // until EIO: nobody has the other end
	}()
	cmd := exec.Command("goprof", args...)
	cmd.Stderr, cmd.Env = theirs, append(os.Environ(), "TERM="+term)
	err := cmd.Run()
	theirs.Close()
	select {
	case <-read:
	case <-time.After(time.Minute):
		t.Fatal("the terminal is still open")
	}
	ours.Close()
	if err != nil {
		t.Fatalf("%v: %q", err, raw.String())
	}
	return strings.ReplaceAll(raw.String(), "\r\n", "\n")
}

// openTerminal opens both ends of a pseudo terminal (ptmx(4)).
func openTerminal(t *testing.T, width int) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		ours.Close()
		t.Fatal(err)
	}
	return ours, theirs
}

func toPipe(t *testing.T, args ...string) string {
	t.Helper()
	var raw bytes.Buffer
	cmd := exec.Command("goprof", args...)
	cmd.Stderr = &raw
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %q", err, raw.String())
	}
	return raw.String()
}

// show is what a terminal shows that knows line feed, carriage return and EL, and no other sequence.
func show(t *testing.T, raw string) string {
	t.Helper()
	lines, at := [][]byte{nil}, 0
	for rest := raw; rest != ""; {
		last := len(lines) - 1
		switch {
		case strings.HasPrefix(rest, "\x1b[K"):
			lines[last] = lines[last][:at]
			rest = rest[3:]
			continue
		case rest[0] == '\r':
			at = 0
		case rest[0] == '\n':
			lines, at = append(lines, nil), 0
		case rest[0] < ' ':
			t.Fatalf("an unexpected %q in %q", rest[:1], raw)
		default:
			lines[last] = append(lines[last][:at], rest[0])
			at++
		}
		rest = rest[1:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// TestStatusLineMakesRoom: what is written while the line is there does not hang on to it.
func TestStatusLineMakesRoom(t *testing.T) {
	ours, theirs := openTerminal(t, 80)
	defer ours.Close()
	defer theirs.Close()
	t.Setenv("TERM", "xterm")
	line := newStatusLine(theirs)
	line.draw("3s  120 samples")
	fmt.Fprintln(line, "goprof: 120 samples so far are in a")
	line.draw("4s  150 samples")
	line.wipe()
	line.wipe()
	fmt.Fprintln(line, "END")
	var raw []byte
	for !bytes.Contains(raw, []byte("END\r\n")) {
		part := make([]byte, 1024)
		n, err := ours.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, part[:n]...)
	}
	if got, want := show(t, strings.ReplaceAll(string(raw), "\r\n", "\n")),
		"goprof: 120 samples so far are in a\nEND\n"; got != want {
		t.Errorf("the screen shows %q, want %q", got, want)
	}
}
