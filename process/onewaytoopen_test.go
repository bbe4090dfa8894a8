package process

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opens are the functions that open a file by name.
var opens = []string{
	"os.Open", "os.OpenFile", "os.ReadFile", "os.ReadDir", "os.Create", "os.WriteFile", "os.OpenRoot", "os.DirFS",
	"os.OpenInRoot",
	"unix.Open", "unix.Openat", "unix.Openat2", "unix.Creat", "unix.OpenByHandleAt", "syscall.Open", "syscall.Openat",
	"syscall.Creat",
	"elf.Open", "filepath.EvalSymlinks",
}

// ownNames are the functions that may open files, because goprof makes the names: files of /proc and /sys that the
// kernel writes. All other code that looks into a target opens files with openForeign.
var ownNames = []string{
	"process/foreign.go reopen", "process/foreign.go findForeign", "process/foreign_walk.go enter",
	"process/process.go open",              // /proc/PID/mem and maps
	"process/core_open_other.go openBelow", // below a folder that the user named, on systems without openat2
	"process/procfs/read.go Read",          // stat, status
	"process/threads.go listOnce",          // task
	"process/procfs/dir.go OpenDir",
	"sampler/cpuset/online.go readSmall", "sampler/wall/quiet.go allCPUsTick", "sampler/ptrace/watchdog.go Watch",
	"sampler/ptrace/sysmon.go findSysmon", "sampler/ptrace/sysmon.go sleepers", // of goprof's own threads
	"sampler/ptrace/sysmon.go writeSlack",
	"session/ahead.go setPriority",           // goprof's own task
	"session/facts.go systemName",            // /etc/os-release
	"sampler/events/probe.go ProbeType",      // /sys/bus/event_source
	"session/event_find.go tracepoint",       // tracefs, by the user's name without slashes and dots
	"session/event_find.go TracepointsError", // the kernel's lockdown, by a fixed name
	"session/kernel.go openKernelNames",      // /proc/kallsyms
	"diagnose/causes_missing.go pids",
	"diagnose/logs.go namesIn",          // /proc/PID/fd, and the folder behind /proc/PID/cwd
	"diagnose/causes_proc.go libraries", // maps
	"diagnose/jvms_proc.go threads",
	"diagnose/needs_try.go checkKernelNames", "diagnose/needs_try.go opensMappedFile", // kallsyms; goprof's own map_files
	"sampler/ptrace/preempters.go prepare", // goprof's own sched
	"sampler/ptrace/admit.go openFile",     // goprof's own schedstat, loadavg, and the cpu.stat of its own control groups
}

// TestOneWayToOpen: paths that a target chose are followed in one place only. If a new call opens a file, its author
// checks where the name comes from, and then adds the call to ownNames.
func TestOneWayToOpen(t *testing.T) {
	seen := map[string]bool{}
	dirs := []string{"process", "process/procfs", "vmstructs", "unwind", "sampler", "session", "session/postmortem",
		"diagnose", "arch"}
	engines, err := filepath.Glob("../sampler/*/doc.go")
	if err != nil || len(engines) < 10 {
		t.Fatal(engines, err)
	}
	for _, doc := range append(engines, "../sampler/look/look.go") {
		dirs = append(dirs, "sampler/"+filepath.Base(filepath.Dir(doc)))
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, f := range opensIn(t, name) {
				where := dir + "/" + filepath.Base(name) + " " + f
				if seen[where] = true; !slices.Contains(ownNames, where) {
					t.Errorf("%s opens a file: by openForeign, if anything of its name comes from a target", where)
				}
			}
		}
	}
	for _, where := range ownNames {
		if !seen[where] {
			t.Errorf("%s opens nothing any more", where)
		}
	}
}

// opensIn lists the functions in a file that open something.
func opensIn(t *testing.T, name string) (functions []string) {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(opens, pkg.Name+"."+s.Sel.Name) &&
				!slices.Contains(functions, f.Name.Name) {
				functions = append(functions, f.Name.Name)
			}
			return true
		})
	}
	return functions
}
