//go:build linux

package main

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOpenerOutlivesSignals: the Ctrl-C that ends a recording reaches the second goprof, too. It shows the page.
func TestOpenerOutlivesSignals(t *testing.T) {
	var told strings.Builder
	cmd := exec.Command("goprof", openerName)
	cmd.Env = append(os.Environ(), "DISPLAY=", "WAYLAND_DISPLAY=")
	cmd.Stderr = &told
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	cmd.Stdin = read
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.WriteString("f.ht")
	for left := 1; left > 0; time.Sleep(time.Millisecond) { // what has been read was read after the signals were caught
		if left, err = unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
	read.Close()
	cmd.Process.Signal(unix.SIGINT)
	cmd.Process.Signal(unix.SIGTERM)
	write.WriteString("ml\n")
	if err := cmd.Wait(); err != nil || !strings.Contains(told.String(), "goprof: open it in a browser: ") {
		t.Errorf("%v, %q", err, told.String())
	}
}

// TestOpenTellsWhere: if the second goprof is gone, the first one says where the page is.
func TestOpenTellsWhere(t *testing.T) {
	for what, want := range map[string]string{"x.html": "goprof: open it in a browser: x.html\n",
		"a b.jfr": "goprof: the page is not drawn: goprof flame 'a b.jfr'\n"} {
		var told strings.Builder
		if tellWhere(&told, what); told.String() != want {
			t.Errorf("%q", told.String())
		}
	}
}

// TestOpenAddress: the secret of serve is not among the arguments of the browser, and the browser has a session of its
// own, which no Ctrl-C reaches. The browser does not run as root, so root runs the test as nobody.
func TestOpenAddress(t *testing.T) {
	dir, err := os.MkdirTemp("", "goprof-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	goprof, err := exec.LookPath("goprof")
	own, named, xdg := filepath.Join(dir, "goprof"), filepath.Join(dir, "f.collapsed"), filepath.Join(dir, "xdg-open")
	script := "#!/bin/sh\ncd " + dir + "\n{ echo $* $$ $(cut -d' ' -f6 /proc/$$/stat); cat $1; } >opened\nmv opened seen\n"
	if err := cmp.Or(err, os.Chmod(dir, 0o777), copyFile(goprof, own), os.WriteFile(named, []byte("main;a 3\n"), 0o644),
		os.WriteFile(xdg, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own, "serve", named, "--open")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "DISPLAY=:0", "TMPDIR=" + dir}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	told, err := cmd.StderrPipe()
	if err := cmp.Or(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Fields(line)[1]
	var seen []byte
	for end := time.Now().Add(screenLimit); len(seen) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		seen, _ = os.ReadFile(filepath.Join(dir, "seen"))
	}
	arguments, page, _ := strings.Cut(string(seen), "\n")
	words := strings.Fields(arguments)
	if len(words) != 3 || !strings.HasSuffix(words[0], "/address.html") || words[1] != words[2] ||
		!strings.Contains(page, "url="+url+`"`) {
		t.Errorf("%s: the browser has %q, and reads %q", url, arguments, page)
	}
}

// copyFile makes a copy that everybody may run.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
