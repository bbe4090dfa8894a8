//go:build linux

package main

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"goprof/session"
)

//go:embed programs
var sources embed.FS

func compileAll(dir, java string) error {
	files, err := fs.ReadDir(sources, "programs")
	if err != nil {
		return err
	}
	classes := []string{filepath.Join(java, "bin", "javac"), "-d", dir}
	for _, f := range files {
		text, err := sources.ReadFile("programs/" + f.Name())
		if err != nil {
			return err
		}
		path := filepath.Join(dir, f.Name())
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if program, ok := strings.CutSuffix(path, ".c"); ok {
			if err := run("gcc", "-O2", "-Wall", "-pthread", "-o", program, path); err != nil {
				return err
			}
		} else if java != "" {
			classes = append(classes, path)
		}
	}
	if java == "" {
		return nil
	}
	return run(classes...)
}

func run(line ...string) error {
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, out)
	}
	return nil
}

// program is a target that obeys its standard input.
type program struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	pid   int
	tid   int    // the thread that is looked at
	top   uint64 // of its stack
	bytes int    // in use of it
}

func start(line ...string) (*program, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &program{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20), pid: cmd.Process.Pid}, nil
}

// end ends the program. Those that only read their input end with it, the others are killed.
func (p *program) end() {
	p.in.Close()
	p.cmd.Process.Signal(syscall.SIGKILL)
	p.cmd.Wait()
}

func (p *program) numbers() ([]int64, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s has ended: %w", p.cmd.Path, err)
	}
	var all []int64
	for _, word := range strings.Fields(line) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s says %q", p.cmd.Path, line)
		}
		all = append(all, n)
	}
	return all, nil
}

func (p *program) ready() error {
	line, err := p.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = fmt.Errorf("it says %q", line)
	}
	if err != nil {
		p.end()
		return fmt.Errorf("%s: %w", strings.Join(p.cmd.Args, " "), err)
	}
	return nil
}

// window asks for the figures of the next so long.
func (p *program) window(d time.Duration) ([]int64, error) {
	if _, err := fmt.Fprintf(p.in, "w %d\n", d.Milliseconds()); err != nil {
		return nil, err
	}
	return p.numbers()
}

// rest lets the thread of spin.c or Spin.java rest until it is to run again.
func (p *program) rest(on bool) error {
	run := 1
	if on {
		run = 0
	}
	_, err := fmt.Fprintf(p.in, "r %d\n", run)
	return err
}

// gaps is a window of spin.c or Spin.java.
func (p *program) gaps(d time.Duration) (gaps, error) {
	n, err := p.window(d)
	if err != nil {
		return nil, err
	}
	if len(n) == 0 || int(n[0]) != len(n)-1 {
		return nil, errors.New("the target has said less than it promised")
	}
	g := gaps(n[1:])
	slices.Sort(g)
	return g, nil
}

func startSpinC(dir string) (*program, error) {
	p, err := start(filepath.Join(dir, "spin"))
	if err != nil {
		return nil, err
	}
	n, err := p.numbers()
	if err != nil || len(n) != 2 {
		p.end()
		return nil, fmt.Errorf("spin: %v %w", n, err)
	}
	p.tid, p.top = int(n[0]), uint64(n[1])
	return p, p.measure()
}

// startJava starts a class of ours and waits until it is ready.
func startJava(dir, java, class string, args ...string) (*program, error) {
	line := []string{filepath.Join(java, "bin", "java"), "-Xmx64m", "-XX:+UseSerialGC", "-cp", dir, class}
	p, err := start(append(line, args...)...)
	if err != nil {
		return nil, err
	}
	return p, p.ready()
}

// startSpinJava starts Spin.java and finds its thread, whose name is "spin", and where its stack ends.
func startSpinJava(dir, java string) (*program, error) {
	p, err := startJava(dir, java, "Spin")
	if err != nil {
		return nil, err
	}
	if p.tid, err = threadNamed(p.pid, "spin"); err == nil {
		p.top, err = stackTop(p.pid, p.tid)
	}
	if err == nil {
		err = p.measure()
	}
	if err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

func threadNamed(pid int, name string) (int, error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(b)) == name {
			return strconv.Atoi(filepath.Base(filepath.Dir(f)))
		}
	}
	return 0, fmt.Errorf("process %d has no thread %q", pid, name)
}

// stackTop asks the JVM.
func stackTop(pid, tid int) (uint64, error) {
	s, err := session.Attach(pid)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	threads, err := s.VM.Threads()
	for _, th := range threads {
		if th.NSTID == tid {
			return th.StackBase, nil
		}
	}
	return 0, fmt.Errorf("the JVM does not know its thread %d: %w", tid, err)
}

// measure finds how much of its stack the thread uses, by a first look, and lets it rest.
func (p *program) measure() error {
	snap, err := lookOnce(p.pid, p.tid, p.top)
	if err == nil {
		p.bytes = len(snap.Stack)
		err = p.rest(true)
	}
	return err
}

func findJava(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := exec.LookPath("javac")
	if err != nil {
		return "", errors.New("no JDK: name one by -java, or leave out what needs it (-sections)")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(path)), nil
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			virtual := ""
			if strings.Contains(string(b), " hypervisor") {
				virtual = ", virtual"
			}
			return strings.TrimSpace(value) + virtual
		}
	}
	return runtime.GOARCH
}
