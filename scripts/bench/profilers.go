//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"goprof/output"
)

// profiler is one way to look at a target.
type profiler interface {
	name() string
	// begin starts it for at least so long. What it gives back waits for its end.
	begin(p *program, hz int, d time.Duration) (end func() (result, error), err error)
}

type process interface {
	profiler
	line(p *program, hz int, d time.Duration) []string // the command
}

// result is what a profiler says of itself; what it does not say is 0.
type result struct {
	samples float64
	wall    time.Duration // in which it took them
	cpu     time.Duration // its own
	startup time.Duration // until it took the first
}

// exitNoSamples is how goprof record says that it has seen nothing (cmd/goprof/exit): on a busy machine it
// may have had no CPU for so long.
const exitNoSamples = 7

var errNoSamples = errors.New("no samples")

// child is a profiler that runs for so long as its command line says.
func child(line []string, read func(stdout string, elapsed time.Duration) (result, error)) (func() (result, error),
	error) {
	cmd := exec.Command(line[0], line[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() (result, error) {
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() == exitNoSamples {
			return result{}, errNoSamples
		} else if err != nil {
			return result{}, fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, stderr.String())
		}
		return read(stdout.String(), time.Since(began))
	}, nil
}

// samplesAndCPU reads the line "SAMPLES CPU_NS".
func samplesAndCPU(d time.Duration) func(string, time.Duration) (result, error) {
	return func(stdout string, _ time.Duration) (result, error) {
		r := result{wall: d}
		_, err := fmt.Sscan(stdout, &r.samples, &r.cpu)
		return r, err
	}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

type cLoop struct{ dir string }

func (cLoop) name() string { return "C loop" }

func (c cLoop) line(p *program, hz int, d time.Duration) []string {
	return []string{filepath.Join(c.dir, "loop"), strconv.Itoa(p.tid), strconv.Itoa(hz), seconds(d), strconv.Itoa(p.bytes)}
}

func (c cLoop) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	return child(c.line(p, hz, d), samplesAndCPU(d))
}

// urgentLoop is loop.c with real-time priority, as goprof has.
type urgentLoop struct{ dir string }

func (urgentLoop) name() string { return "C loop, real-time priority" }

func (c urgentLoop) line(p *program, hz int, d time.Duration) []string {
	return append(cLoop(c).line(p, hz, d), "1")
}

func (c urgentLoop) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	return child(c.line(p, hz, d), samplesAndCPU(d))
}

// cLoops is loop.c twice, one for each thread of Work.java.
type cLoops struct{ dir string }

func (cLoops) name() string { return "a C loop for each thread" }

func (c cLoops) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	var ends []func() (result, error)
	for _, name := range []string{"work-1", "work-2"} {
		one := *p
		var err error
		if one.tid, err = threadNamed(p.pid, name); err != nil {
			return nil, err
		}
		one.bytes = 16 << 10
		end, err := cLoop(c).begin(&one, hz, d)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return func() (sum result, err error) {
		for _, end := range ends {
			r, e := end()
			sum.samples += r.samples
			err = errors.Join(err, e)
		}
		return sum, err
	}, nil
}

// ourLook is goprof's stop alone.
type ourLook struct{}

func (ourLook) name() string { return "our stop" }

func (ourLook) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child([]string{self, "look", strconv.Itoa(p.pid), strconv.Itoa(p.tid), strconv.FormatUint(p.top, 10),
		strconv.Itoa(hz), seconds(d)}, samplesAndCPU(d))
}

// noWalk is goprof's sampler, without a walk of the stacks.
type noWalk struct{}

func (noWalk) name() string { return "our sampler, no walks" }

func (noWalk) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child([]string{self, "scan", strconv.Itoa(p.pid), strconv.Itoa(hz), seconds(d)}, samplesAndCPU(d))
}

// record is the whole goprof.
type record struct {
	goprof, dir string
	which       string // distinguishes it from other binaries
	engine      string // "": as it comes
	mode        string
}

func (r record) name() string {
	name := "goprof record"
	for _, more := range []string{r.which, r.engine, r.mode} {
		if more != "" {
			name += ", " + more
		}
	}
	return name
}

func (r record) out() string { return filepath.Join(r.dir, "out.collapsed") }

func (r record) line(p *program, hz int, d time.Duration) []string {
	line := []string{r.goprof, "record", "-q", "-p", strconv.Itoa(p.pid), "-r", strconv.Itoa(hz), "-d", seconds(d) + "s",
		"-o", r.out()}
	if r.engine != "" {
		line = append(line, "--engine", r.engine)
	}
	if r.mode != "" {
		line = append(line, "--mode", r.mode)
	}
	return line
}

func (r record) begin(p *program, hz int, d time.Duration) (func() (result, error), error) {
	return child(r.line(p, hz, d), func(_ string, elapsed time.Duration) (result, error) {
		f, err := os.Open(output.SummaryPath(r.out()))
		if err != nil {
			return result{}, err
		}
		defer f.Close()
		s, err := output.ReadSummary(f)
		if err != nil {
			return result{}, err
		}
		return result{float64(s.Attempted), s.Meta.Duration, s.OwnCPU, elapsed - s.Meta.Duration}, nil
	})
}

// asyncProfiler is asprof, where it is given.
type asyncProfiler struct{ asprof, dir string }

func (asyncProfiler) name() string { return "async-profiler" }

func (a asyncProfiler) begin(p *program, hz int, _ time.Duration) (func() (result, error), error) {
	pid := strconv.Itoa(p.pid)
	interval := strconv.Itoa(1_000_000_000 / hz)
	if err := run(a.asprof, "start", "-e", "cpu", "-i", interval, pid); err != nil {
		return nil, err
	}
	return func() (result, error) {
		return result{}, run(a.asprof, "stop", "-o", "collapsed", "-f", filepath.Join(a.dir, "async.collapsed"), pid)
	}, nil
}

// jfr is the JDK's own.
type jfr struct{ java, dir string }

func (jfr) name() string { return "JFR" }

func (j jfr) begin(p *program, hz int, _ time.Duration) (func() (result, error), error) {
	pid, jcmd := strconv.Itoa(p.pid), filepath.Join(j.java, "bin", "jcmd")
	period := fmt.Sprintf("%dms", 1000/hz)
	out, err := exec.Command(jcmd, pid, "JFR.start", "name=bench", "settings=none", "jdk.ExecutionSample#enabled=true",
		"jdk.ExecutionSample#period="+period, "jdk.NativeMethodSample#enabled=true",
		"jdk.NativeMethodSample#period="+period).CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("Started recording")) {
		err = errors.New("it has not started")
	}
	if err != nil {
		return nil, fmt.Errorf("jcmd JFR.start: %w\n%s", err, out)
	}
	return func() (result, error) {
		return result{}, run(jcmd, pid, "JFR.stop", "name=bench", "filename="+filepath.Join(j.dir, "bench.jfr"))
	}, nil
}
