//go:build linux

// Bench measures what goprof costs the program that it looks at. It compares with a C loop that does only what any
// profiler that stops threads must do. `make bench` runs it; docs/evidence/performance.md holds what it printed.
//
// Figures of two runs cannot be compared, nor those of two machines. So all that is compared is measured in turns, in
// rounds of an order of their own, and what counts is the ratio within a round. All rounds count. Medians stand with
// their quartiles: where these are far apart the machine was busy.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

type bench struct {
	dir      string // of what is compiled
	java     string // home of a JDK
	goprofs  []string
	engines  []string
	async    string
	jfr      bool
	rounds   int
	pairs    int
	window   time.Duration
	lead     time.Duration // between a profiler's start and the window that is measured
	warm     time.Duration // before the first window of a Java program
	crowds   []int
	loops    int   // busy programs beside, in the section for that
	rates    []int // in Hz
	repeated int
	out      io.Writer
}

func main() {
	if err := helper(os.Args[1:]); err != errNoHelper {
		exit(err)
	}
	b := &bench{crowds: crowds, rates: []int{1000, 100}, out: os.Stdout}
	var sections, goprofs, engines string
	flag.StringVar(&sections, "sections", "pauses,slowdown,idle,crowd,rate,loaded,heap", "which of the sections")
	flag.StringVar(&goprofs, "goprof", "./goprof", "the `binary`, or several to be compared: new,old")
	flag.StringVar(&engines, "engines", "", "engines of goprof to compare: ptrace,perf (as it comes)")
	flag.StringVar(&b.java, "java", "", "`home` of the JDK (that of javac)")
	flag.StringVar(&b.async, "async", os.Getenv("GOPROF_ASYNC"), "`path` of asprof, to be compared with")
	flag.BoolVar(&b.jfr, "jfr", true, "compare with JFR")
	flag.IntVar(&b.rounds, "rounds", 15, "of all that is measured")
	flag.IntVar(&b.pairs, "pairs", 30, "rounds for the slowdown")
	flag.DurationVar(&b.window, "window", time.Second,
		"how long one thing is measured at a time; at 100 Hz pauses are twice as long")
	flag.DurationVar(&b.lead, "lead", 800*time.Millisecond, "between a profiler's start and what is measured")
	flag.DurationVar(&b.warm, "warm", 5*time.Second, "how long the Java program for the slowdown may warm up")
	flag.IntVar(&b.loops, "loops", 40, "busy programs beside what the section loaded measures")
	flag.Func("rates", "in `Hz` (1000,100)", b.setRates)
	flag.Parse()
	b.goprofs = strings.Split(goprofs, ",")
	if engines != "" {
		b.engines = strings.Split(engines, ",")
	}
	exit(b.run(strings.Split(sections, ",")))
}

func (b *bench) setRates(list string) error {
	b.rates = nil
	for word := range strings.SplitSeq(list, ",") {
		hz, err := strconv.Atoi(word)
		if err != nil || hz < 1 || hz > 10_000 {
			return fmt.Errorf("%q is no rate", word)
		}
		b.rates = append(b.rates, hz)
	}
	return nil
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var errNoHelper = errors.New("not a helper")

// helper is what the bench runs in processes of their own: it starts itself.
func helper(args []string) error {
	if len(args) == 0 || args[0] != "look" && args[0] != "scan" {
		return errNoHelper
	}
	n := make([]float64, len(args))
	for i, a := range args[1:] {
		var err error
		if n[i], err = strconv.ParseFloat(a, 64); err != nil { // holds any address of a process: they end below 2^53
			return err
		}
	}
	if args[0] == "scan" {
		return scan(int(n[0]), n[1], n[2])
	}
	benchLook(int(n[0]), int(n[1]), uint64(n[2]), n[3], n[4])
	return nil
}

func (b *bench) run(sections []string) error {
	all := map[string]func() error{"pauses": b.pausesSection, "slowdown": b.slowdownSection, "idle": b.idleSection,
		"crowd": b.crowdSection, "rate": b.rateSection, "loaded": b.loadedSection, "heap": b.heapSection}
	for _, s := range sections {
		if all[s] == nil {
			return fmt.Errorf("there is no section %q", s)
		}
	}
	dir, err := os.MkdirTemp("", "goprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if b.java != "" || slices.ContainsFunc(sections, func(s string) bool { return s != "pauses" && s != "idle" }) {
		if b.java, err = findJava(b.java); err != nil {
			return err
		}
	} else if b.java, err = findJava(""); err != nil {
		b.progress("%v", err) // the C thread remains
	}
	if b.async != "" {
		if b.async, err = asprof(b.async); err != nil {
			return err
		}
	}
	if err := compileAll(dir, b.java); err != nil {
		return err
	}
	b.chooseEngines()
	b.header()
	began := time.Now()
	for _, s := range sections {
		if err := all[s](); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	fmt.Fprintf(b.out, "\n%v in all; %d windows repeated, because a profiler began too late; load at the end %s\n",
		time.Since(began).Round(time.Second), b.repeated, loadAverage())
	return nil
}

// can reports whether goprof's record has that in its help.
func (b *bench) can(what string) bool {
	help, _ := exec.Command(b.goprofs[0], "record", "--help").CombinedOutput()
	return strings.Contains(string(help), what)
}

// chooseEngines compares both where there are two and the kernel permits the second.
func (b *bench) chooseEngines() {
	var fd int
	var err error
	if len(b.engines) > 0 || !b.can("--engine") {
		return
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel}
	if fd, err = unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		b.progress("without the perf engine: perf_event_open: %v", err)
		return
	}
	unix.Close(fd)
	b.engines = []string{"ptrace", "perf"}
}

// records is goprof: each binary, with each of the engines that are to be compared.
func (b *bench) records() (all []profiler) {
	for _, binary := range b.goprofs {
		which := ""
		if len(b.goprofs) > 1 {
			which = filepath.Base(binary)
		}
		if len(b.engines) == 0 {
			all = append(all, record{binary, b.dir, which, "", ""})
		}
		for _, engine := range b.engines {
			all = append(all, record{binary, b.dir, which, engine, ""})
		}
	}
	return all
}

// header says where and by what the figures were had.
func (b *bench) header() {
	var uts unix.Utsname
	unix.Uname(&uts)
	version, _ := exec.Command(b.goprofs[0], "version").Output()
	java := "no JDK"
	if b.java != "" {
		out, _ := exec.Command(filepath.Join(b.java, "bin", "java"), "-version").CombinedOutput()
		java, _, _ = strings.Cut(string(out), "\n")
	}
	fmt.Fprintf(b.out, "# %s\n\n%s, %d CPUs; Linux %s; load %s\n%s; %s\n%s\n\n", time.Now().UTC().Format(time.DateTime),
		cpuModel(), runtime.NumCPU(), unix.ByteSliceToString(uts.Release[:]), loadAverage(),
		strings.TrimSpace(string(version)), java, strings.Join(os.Args[1:], " "))
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// progress is not for the record.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// asprof finds the command, given itself or the library beside it.
func asprof(path string) (string, error) {
	if filepath.Base(path) == "asprof" {
		return filepath.Abs(path)
	}
	beside, err := filepath.Abs(filepath.Join(filepath.Dir(path), "..", "bin", "asprof"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(beside); err != nil {
		return "", fmt.Errorf("asprof of %s: %w", path, err)
	}
	return beside, nil
}
