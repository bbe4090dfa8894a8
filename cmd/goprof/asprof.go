package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

// Options of async-profiler's asprof, with goprof's equivalents.

// asprofEvents maps events of "asprof -e" to record's flags. An event without flags is record's default. goprof cannot
// record events that are not in the table.
var asprofEvents = map[string][]string{
	"cpu": {}, "itimer": {}, "ctimer": {}, "perf": {"--engine", "perf"},
	"wall": {"--mode", "wall"},
	"lock": {"--event", "lock"}, "alloc": {"--event", "alloc"}, "nativemem": {"--event", "malloc"},
	"page-faults": {"--event", "page-faults"}, "context-switches": {"--event", "context-switches"},
	"cycles": {"--event", "cycles"}, "instructions": {"--event", "instructions"},
	"cache-misses": {"--event", "cache-misses"}, "branch-misses": {"--event", "branch-misses"},
}

// suggestOfAsprof replaces a flag that only asprof has by goprof's flags. It reports whether the flag was one of these.
func suggestOfAsprof(e *exit.Error, name, letters string, args []string) bool {
	switch {
	case letters != "" && name == "e" || letters == "" && name == "event":
		suggestEvent(e, args)
	case letters == "" && (name == "wall" || name == "lock"):
		e.Why = "that is a mode"
		e.Remedy = exit.CommandLine(withFlag(withoutValue(args, "--"+name), "--"+name, asprofEvents[name]...))
	case letters == "" && (name == "nativemem" || name == "all"):
		e.Why = "what to record is --event, several with commas"
		e.Remedy = "goprof record --event malloc ..., or --event alloc,exceptions -o FILE.jfr"
	case letters == "" && name == "live":
		e.Why, e.Remedy = notLive, countsLive
	case letters == "" && name == "file":
		e.Why = "the file is -o"
		e.Remedy = exit.CommandLine(withFlag(args, "--file", "--output"))
	case letters == "" && (name == "jstackdepth" || name == "depth"), letters != "" && name == "j":
		e.Why, e.Remedy = "the number of frames is --depth", "goprof record --depth 2048 ..."
	case letters == "" && name == "timeout":
		e.Why = "the time is --duration"
		e.Remedy = exit.CommandLine(withFlag(args, "--timeout", "--duration"))
	default:
		return false
	}
	return true
}

const (
	notLive    = "goprof does not know which objects live on: it loads nothing into the JVM"
	countsLive = "goprof record --event alloc ..., or jcmd PID GC.class_histogram"
)

// suggestEvent explains async-profiler's -e EVENT, and suggests the command line with goprof's flags.
func suggestEvent(e *exit.Error, args []string) {
	event, from, to := eventOf(args)
	words, known := asprofEvents[event]
	switch {
	case event == "":
		e.Why = "what to record is --mode cpu, wall or off-cpu"
	case event == "live":
		e.Why, e.Remedy = notLive, countsLive
	case !known:
		e.Why, e.Remedy = fmt.Sprintf("-e %s may be --event %s here", event, event), "goprof events PID"
	case len(words) == 0:
		e.Why = "CPU time is what record records anyway"
		e.Remedy = exit.CommandLine(slices.Delete(slices.Clone(args), from, to))
	default:
		e.Why = fmt.Sprintf("-e %s is %s here", event, strings.Join(words, " "))
		e.Remedy = exit.CommandLine(slices.Replace(slices.Clone(args), from, to, words...))
	}
}

// eventOf finds "-e wall", "-ewall", "--event wall" and "--event=wall".
func eventOf(args []string) (event string, from, to int) {
	for i, a := range args {
		switch {
		case a == "--":
			return "", 0, 0
		case (a == "-e" || a == "--event") && i+1 < len(args):
			return args[i+1], i, i + 2
		case strings.HasPrefix(a, "--event="):
			return a[len("--event="):], i, i + 1
		case strings.HasPrefix(a, "-e") && len(a) > 2:
			return strings.TrimPrefix(a[2:], "="), i, i + 1
		}
	}
	return "", 0, 0
}

// withoutValue removes the value behind a flag that takes none in goprof: asprof's "--wall 10ms".
func withoutValue(args []string, flag string) []string {
	for i, a := range args {
		if a == flag && i+1 < len(args) && strings.HasSuffix(args[i+1], "s") && strings.ContainsAny(args[i+1][:1],
			"0123456789") {
			return slices.Delete(slices.Clone(args), i+1, i+2)
		}
		if strings.HasPrefix(a, flag+"=") {
			args = slices.Clone(args)
			args[i] = flag
			return args
		}
	}
	return args
}

// asprofOutputs maps formats of "asprof -o" to file names of the same format in goprof.
var asprofOutputs = map[string]string{
	"flamegraph": "out.html", "html": "out.html", "jfr": "out.jfr", "collapsed": "out.collapsed",
	"pprof": "out.pb.gz", "svg": "out.svg",
	"flat": "out.json", "tree": "out.html", "traces": "out.collapsed", "text": "out.collapsed", "summary": "out.collapsed",
}

// asprofOutput returns the error for "-o FORMAT", because -o is a file in goprof. ./NAME means a file with such a name.
func asprofOutput(cmd *cobra.Command, name string, args []string) *exit.Error {
	file, is := asprofOutputs[name]
	if !is {
		return nil
	}
	e := usageError(cmd, fmt.Sprintf("-o is a file, and the ending of its name chooses the format; %q is the name "+
		"of a format (a file of that name is ./%[1]s)", name))
	e.Remedy = "goprof record -o " + file + " ..."
	for i, a := range args {
		if a == name && i > 0 && (args[i-1] == "-o" || args[i-1] == "--output") {
			args = slices.Clone(args)
			args[i] = file
			e.Remedy = exit.CommandLine(args)
			break
		}
	}
	return e
}

// asprofFile returns the error for "-f FILE", because -f is the format in goprof.
func asprofFile(cmd *cobra.Command, name string, args []string) *exit.Error {
	if !strings.ContainsAny(name, "./") || filepath.Base(name) == "." {
		return nil
	}
	e := usageError(cmd, fmt.Sprintf("-f is the format; the file %q goes to -o", name))
	for i, a := range args {
		if a == name && i > 0 && (args[i-1] == "-f" || args[i-1] == "--format") {
			args = slices.Clone(args)
			args[i-1] = "-o"
			e.Remedy = exit.CommandLine(args)
			break
		}
	}
	return e
}

// asprofVerbs maps actions of asprof to the nearest command of goprof.
var asprofVerbs = map[string]string{
	"start": "goprof record PID runs until Ctrl-C", "collect": "goprof record PID -d 30s",
	"profile": "goprof record PID -d 30s",
	"stop":    "Ctrl-C, or kill -INT of goprof record", "resume": "goprof record PID", "status": "goprof list",
	"check": "goprof doctor PID",
	"jps":   "goprof list", "jstack": "goprof dump PID", "attach": "goprof record PID", "ps": "goprof list",
}
