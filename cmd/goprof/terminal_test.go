//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
)

// TestProgressOnTerminal: goprof draws the line, draws it anew within the terminal's width, and wipes it. The screen
// then shows what a pipe would get.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	args := []string{"record", "--pid", fmt.Sprint(jvm.PID), "-d", "10m", "-o", t.TempDir() + "/o.collapsed"}

	const width = 34
	drawn := regexp.MustCompile(`\r\x1b\[K(\w+ left of 10m0s  \d+ s[^\r\n]*)`)
	draws := [][]string(nil)
	raw := onTerminal(t, width, "xterm", func(raw string) bool {
		draws = drawn.FindAllStringSubmatch(raw, -1)
		return hasSamples.MatchString(raw) && draws[0][1] != draws[len(draws)-1][1]
	}, args...)
	for _, d := range draws {
		if len(d[1]) >= width {
			t.Errorf("%q wraps on a terminal of %d columns", d[1], width)
		}
	}
	screen := show(t, raw)
	if !regexp.MustCompile(`^CPU +used [0-9.]+ m?s in `).MatchString(screen) || strings.Contains(screen, "of 10m0s") {
		t.Errorf("the screen shows %q", screen)
	}
	sees := regexp.MustCompile(`left of 10m0s  [1-9]\d* samples  \d+ % \S.*\(Ctrl-C ends and writes\)`)
	if screen := onTerminal(t, 200, "xterm", sees.MatchString, args...); !sees.MatchString(screen) {
		t.Errorf("on a wide terminal: %q", screen)
	}

	args[4] = "1.5"
	for name, raw := range map[string]string{
		"a pipe":          toPipe(t, args...),
		"a dumb terminal": onTerminal(t, width, "dumb", nil, args...),
		"a quiet one":     onTerminal(t, width, "xterm", nil, append(args, "-q")...),
	} {
		if strings.Contains(raw, "\x1b") || strings.Contains(raw, "Ctrl-C") || strings.Contains(raw, "of 1.5s") {
			t.Errorf("%s got %q", name, raw)
		}
	}
}

// hasSamples matches a progress line that tells of samples.
var hasSamples = regexp.MustCompile(`of 10m0s  [1-9]\d* sample`)

// onTerminal runs goprof with a terminal as its standard error. It returns what came there. It interrupts goprof as
// soon as enough has come; with nil, goprof ends by itself.
func onTerminal(t *testing.T, width int, term string, enough func(raw string) bool, args ...string) string {
	t.Helper()
	ours, theirs := openTerminal(t, width)
	cmd := exec.Command("goprof", args...)
	cmd.Stderr, cmd.Env = theirs, append(os.Environ(), "TERM="+term)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	var raw bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		part := make([]byte, 1<<12)
		for n, err := ours.Read(part); err == nil; n, err = ours.Read(part) { // until EIO: the other end is closed
			raw.Write(part[:n])
			if enough != nil && enough(raw.String()) {
				cmd.Process.Signal(os.Interrupt)
				enough = nil
			}
		}
	}()
	err := cmd.Wait()
	hangs.Stop()
	theirs.Close()
	select {
	case <-read:
	case <-time.After(time.Minute):
		t.Fatal("the terminal is still open")
	}
	ours.Close()
	if code := exit.Code(cmd.ProcessState.ExitCode()); err != nil && code != exit.NoSamples {
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
	err := cmd.Run()
	if code := exit.Code(cmd.ProcessState.ExitCode()); err != nil && code != exit.NoSamples {
		t.Fatalf("%v: %q", err, raw.String())
	}
	return raw.String()
}

// show is the screen of a terminal that knows line feed, carriage return and EL, and no other sequence.
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

// TestStatusLineMakesRoom: text that is written while the line is there does not stick to the line.
func TestStatusLineMakesRoom(t *testing.T) {
	ours, theirs := openTerminal(t, 80)
	defer ours.Close()
	defer theirs.Close()
	t.Setenv("TERM", "xterm")
	line := terminal.NewStatusLine(theirs)
	line.Draw("3s  120 samples")
	fmt.Fprintln(line, "goprof: 120 samples so far are in a")
	line.Draw("4s  150 samples")
	line.Wipe()
	line.Wipe()
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
