package process

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport has the order of the packages: imports point down only. A package of this module that is not listed may
// import nothing, and fails the test.
var mayImport = map[string][]string{
	"goprof/arch":               {},
	"goprof/arch/amd64":         {"goprof/arch"},
	"goprof/arch/arm64":         {"goprof/arch"},
	"goprof/arch/cpus":          {"goprof/arch", "goprof/arch/amd64", "goprof/arch/arm64"},
	"goprof/arch/entry":         {},
	"goprof/arch/disasm":        {},
	"goprof/arch/threadpointer": {},
	"goprof/profile":            {"goprof/process/maybe"},
	"goprof/profile/naming":     {"goprof/profile"},
	"goprof/profile/contention": {"goprof/profile"},
	"goprof/profile/pools":      {"goprof/process/maybe", "goprof/profile", "goprof/profile/naming"},
	"goprof/profile/redact":     {"goprof/profile", "goprof/profile/naming"},
	"goprof/profile/batch":      {"goprof/profile", "goprof/profile/naming", "goprof/profile/resource"},
	"goprof/profile/resource":   {"goprof/profile/protobuf"},
	"goprof/profile/protobuf":   {},
	"goprof/process":            {"goprof/arch", "goprof/arch/cpus", "goprof/process/procfs"},
	"goprof/process/maybe":      {},
	"goprof/process/unpack":     {},
	"goprof/process/procfs":     {"goprof/process/maybe"},
	"goprof/vmstructs":          {"goprof/arch", "goprof/process", "goprof/process/maybe"},
	"goprof/unwind/leaf":        {"goprof/arch", "goprof/process", "goprof/profile", "goprof/vmstructs"},
	"goprof/unwind": {
		"goprof/arch", "goprof/process", "goprof/profile", "goprof/profile/naming", "goprof/unwind/leaf", "goprof/vmstructs",
	},
	"goprof/sampler/osthread": {"goprof/process/procfs"},
	"goprof/sampler/look":     {"goprof/arch", "goprof/process"},
	"goprof/sampler/ptrace": {
		"goprof/arch", "goprof/process", "goprof/process/procfs", "goprof/sampler/look", "goprof/sampler/osthread",
	},
	"goprof/sampler/guard":  {},
	"goprof/sampler":        {"goprof/arch", "goprof/process", "goprof/sampler/look", "goprof/sampler/ptrace"},
	"goprof/sampler/bpf":    {},
	"goprof/sampler/cpuset": {"goprof/process/procfs", "goprof/sampler", "goprof/sampler/ptrace"},
	"goprof/sampler/ring": {
		"goprof/arch", "goprof/arch/cpus", "goprof/process/procfs", "goprof/sampler/cpuset", "goprof/sampler/look",
		"goprof/sampler/ptrace",
	},
	"goprof/sampler/span": {
		"goprof/arch/threadpointer", "goprof/sampler/bpf", "goprof/sampler/cpuset", "goprof/sampler/look",
		"goprof/sampler/ptrace", "goprof/sampler/ring",
	},
	"goprof/sampler/threads": {
		"goprof/arch", "goprof/process", "goprof/process/procfs", "goprof/sampler", "goprof/sampler/look",
		"goprof/sampler/ptrace",
	},
	"goprof/sampler/stops": {
		"goprof/process/procfs", "goprof/sampler", "goprof/sampler/look", "goprof/sampler/ptrace",
	},
	"goprof/sampler/visit": {
		"goprof/arch", "goprof/arch/cpus", "goprof/process/procfs", "goprof/sampler", "goprof/sampler/cpuset",
		"goprof/sampler/look", "goprof/sampler/ptrace", "goprof/sampler/ring", "goprof/sampler/threads",
		"goprof/sampler/stops",
	},
	"goprof/sampler/wall": {
		"goprof/arch", "goprof/process/procfs", "goprof/sampler", "goprof/sampler/look", "goprof/sampler/ptrace",
		"goprof/sampler/threads", "goprof/sampler/stops",
	},
	"goprof/sampler/perf": {
		"goprof/arch", "goprof/arch/cpus", "goprof/process", "goprof/process/procfs", "goprof/sampler", "goprof/sampler/bpf",
		"goprof/sampler/cpuset", "goprof/sampler/look", "goprof/sampler/osthread", "goprof/sampler/ptrace",
		"goprof/sampler/ring", "goprof/sampler/span", "goprof/sampler/threads",
	},
	"goprof/sampler/events": {
		"goprof/arch", "goprof/arch/cpus", "goprof/process", "goprof/process/procfs", "goprof/sampler", "goprof/sampler/bpf",
		"goprof/sampler/cpuset", "goprof/sampler/look", "goprof/sampler/ptrace", "goprof/sampler/ring", "goprof/sampler/span",
		"goprof/sampler/threads",
	},
	"goprof/sampler/offcpu": {
		"goprof/arch", "goprof/arch/cpus", "goprof/sampler", "goprof/sampler/bpf",
		"goprof/sampler/cpuset", "goprof/sampler/look", "goprof/sampler/ptrace", "goprof/sampler/ring", "goprof/sampler/span",
		"goprof/sampler/threads", "goprof/sampler/stops",
	},
	"goprof/session": {
		"goprof/arch", "goprof/heap/heapdump", "goprof/process", "goprof/process/maybe", "goprof/process/procfs",
		"goprof/profile", "goprof/profile/naming", "goprof/profile/pools", "goprof/sampler", "goprof/sampler/events",
		"goprof/sampler/look", "goprof/sampler/offcpu", "goprof/sampler/perf", "goprof/sampler/ptrace", "goprof/sampler/ring",
		"goprof/sampler/span", "goprof/sampler/threads", "goprof/sampler/visit", "goprof/sampler/wall", "goprof/unwind",
		"goprof/vmstructs",
	},
	"goprof/session/postmortem": {
		"goprof/arch", "goprof/heap/heapdump", "goprof/process", "goprof/process/maybe", "goprof/profile", "goprof/unwind",
		"goprof/vmstructs",
	},
	"goprof/annotate": {"goprof/output", "goprof/profile", "goprof/profile/naming"},
	"goprof/annotate/machine": {
		"goprof/annotate", "goprof/arch", "goprof/arch/disasm", "goprof/process", "goprof/profile", "goprof/profile/naming",
		"goprof/unwind", "goprof/vmstructs",
	},
	"goprof/heap":           {"goprof/process", "goprof/profile", "goprof/profile/naming", "goprof/vmstructs"},
	"goprof/memory":         {"goprof/process", "goprof/process/procfs", "goprof/profile", "goprof/vmstructs"},
	"goprof/heap/heapdump":  {"goprof/output/hprof", "goprof/process", "goprof/profile", "goprof/vmstructs"},
	"goprof/agent/alarm":    {"goprof/triage/vitals"},
	"goprof/agent/identity": {"goprof/process", "goprof/process/procfs", "goprof/profile/resource"},
	"goprof/triage/vitals": {
		"goprof/process", "goprof/process/maybe", "goprof/process/procfs", "goprof/session", "goprof/vmstructs",
	},
	"goprof/diagnose": {
		"goprof/arch/cpus", "goprof/process", "goprof/process/maybe", "goprof/process/procfs", "goprof/profile",
		"goprof/sampler", "goprof/sampler/bpf", "goprof/sampler/events", "goprof/sampler/guard", "goprof/sampler/offcpu",
		"goprof/sampler/perf", "goprof/sampler/ptrace", "goprof/sampler/ring", "goprof/session", "goprof/vmstructs",
	},
	"goprof/triage/hserr": {"goprof/arch", "goprof/arch/cpus", "goprof/profile"},
	"goprof/triage/autopsy": {
		"goprof/process/maybe", "goprof/profile", "goprof/profile/contention", "goprof/profile/pools",
		"goprof/session/postmortem", "goprof/triage/hserr",
	},
	"goprof/triage": {
		"goprof/profile", "goprof/profile/contention", "goprof/profile/naming", "goprof/profile/pools",
		"goprof/triage/vitals", "goprof/vmstructs",
	},
	"goprof/triage/examine": {
		"goprof/heap", "goprof/memory", "goprof/process", "goprof/process/procfs", "goprof/profile", "goprof/profile/pools",
		"goprof/session", "goprof/triage", "goprof/triage/vitals",
	},
	"goprof/agent": {
		"goprof/diagnose", "goprof/process", "goprof/process/maybe", "goprof/process/procfs", "goprof/profile",
		"goprof/profile/batch", "goprof/profile/resource", "goprof/sampler", "goprof/sampler/events", "goprof/sampler/perf",
		"goprof/sampler/ring", "goprof/sampler/threads", "goprof/sampler/visit", "goprof/session", "goprof/unwind",
	},
	"goprof/agent/config":    {"goprof/agent", "goprof/agent/alarm", "goprof/profile", "goprof/session"},
	"goprof/output/outfile":  {"goprof/output/format"},
	"goprof/output":          {"goprof/output/format", "goprof/profile", "goprof/profile/naming"},
	"goprof/output/requests": {"goprof/output", "goprof/profile", "goprof/profile/naming"},
	"goprof/output/dumps": {
		"goprof/output", "goprof/process/maybe", "goprof/profile", "goprof/profile/contention", "goprof/profile/naming",
		"goprof/profile/pools",
	},
	"goprof/output/flame": {"goprof/output"},
	"goprof/output/diff": {
		"goprof/output", "goprof/output/flame", "goprof/output/recording", "goprof/profile", "goprof/profile/naming",
	},
	"goprof/output/findings": {"goprof/output", "goprof/output/flame", "goprof/profile"},
	"goprof/output/format":   {},
	"goprof/output/convert": {
		"goprof/output", "goprof/output/firefox", "goprof/output/flame", "goprof/output/format", "goprof/output/jfr",
		"goprof/output/pprof", "goprof/output/recording", "goprof/output/speedscope", "goprof/profile",
	},
	"goprof/output/hprof": {},
	"goprof/output/jfr":   {"goprof/profile", "goprof/profile/redact"},
	"goprof/output/top":   {"goprof/output", "goprof/profile", "goprof/profile/naming"},
	"goprof/output/pprof": {
		"goprof/profile", "goprof/profile/batch", "goprof/profile/naming", "goprof/profile/protobuf", "goprof/profile/redact",
	},
	"goprof/output/heat": {
		"goprof/output", "goprof/output/diff", "goprof/output/flame", "goprof/output/recording", "goprof/profile",
		"goprof/profile/naming",
	},
	"goprof/output/recording": {
		"goprof/output", "goprof/output/jfr", "goprof/output/outfile", "goprof/output/pprof", "goprof/output/snap",
		"goprof/profile", "goprof/profile/naming",
	},
	"goprof/output/redaction": {
		"goprof/output", "goprof/output/jfr", "goprof/output/outfile", "goprof/output/pprof", "goprof/output/recording",
		"goprof/profile", "goprof/profile/redact",
	},

	// These send profiles to servers.
	"goprof/output/batchdir": {
		"goprof/output/jfr", "goprof/output/outfile", "goprof/output/pprof", "goprof/output/folderlock", "goprof/profile",
		"goprof/profile/batch", "goprof/profile/resource",
	},
	"goprof/output/folderlock": {},
	"goprof/output/snap":       {"goprof/output"},
	"goprof/output/replay": {
		"goprof/output/recording", "goprof/profile", "goprof/profile/batch", "goprof/profile/resource",
	},
	"goprof/output/ship":      {"goprof/output/folderlock", "goprof/profile/batch"},
	"goprof/output/ship/wire": {"goprof/output/ship", "goprof/profile/protobuf", "goprof/profile/resource"},
	"goprof/output/otlp": {
		"goprof/output", "goprof/output/ship", "goprof/output/ship/wire", "goprof/profile", "goprof/profile/batch",
		"goprof/profile/naming", "goprof/profile/protobuf", "goprof/profile/resource",
	},
	"goprof/output/pyroscope": {
		"goprof/output/pprof", "goprof/output/ship/wire", "goprof/profile/batch", "goprof/profile/protobuf",
		"goprof/profile/resource",
	},
	"goprof/output/parca": {
		"goprof/output/pprof", "goprof/output/ship/wire", "goprof/profile/batch", "goprof/profile/protobuf",
		"goprof/profile/resource",
	},

	// These write a recording in time order.
	"goprof/output/timeline":   {"goprof/output", "goprof/output/recording", "goprof/profile", "goprof/profile/naming"},
	"goprof/output/speedscope": {"goprof/output/recording", "goprof/output/timeline"},
	"goprof/output/firefox":    {"goprof/output", "goprof/output/recording", "goprof/output/timeline", "goprof/profile"},
}

// commands may import all other packages.
var commands = []string{"goprof/cmd/", "goprof/scripts/"}

func isCommand(pkg string) bool {
	return slices.ContainsFunc(commands, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) })
}

// helpers are packages that only tests use. They may import any package. Packages of the program must not import them.
const helpers = "goprof/testdata/"

func TestImports(t *testing.T) {
	// The imports of a package's own files, without those of its tests.
	list := goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	architecture, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(list) {
		pkg, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(pkg, helpers) {
			continue
		}
		seen++
		if name := strings.TrimPrefix(pkg, "goprof/"); !strings.HasPrefix(name, "scripts/") &&
			!regexp.MustCompile(`(?m)(^| )`+name+`[ .,\n]`).Match(architecture) {
			t.Errorf("ARCHITECTURE.md does not say what %s is", name)
		}
		allowed, known := mayImport[pkg]
		if !known && !isCommand(pkg) {
			t.Errorf("package %s has no place in the order: see mayImport", pkg)
		}
		for _, imported := range strings.Fields(rest) {
			if !strings.HasPrefix(imported, "goprof/") {
				continue
			}
			if strings.HasPrefix(imported, helpers) || known && !slices.Contains(allowed, imported) {
				t.Errorf("%s must not import %s", pkg, imported)
			}
		}
		for _, name := range allowed {
			if !slices.Contains(strings.Fields(rest), name) {
				t.Errorf("%s need not import %s: its row of mayImport is too long", pkg, name)
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d packages found", seen)
	}
}

// TestNoDelveProc: delve's packages for processes change their target (they leave a breakpoint in its loader), and add
// megabytes. At run time goprof uses only two small packages of delve.
func TestNoDelveProc(t *testing.T) {
	const delve = "github.com/go-delve/delve/pkg/"
	const evaluates = "goprof/unwind"
	for line := range strings.Lines(goList(t, "-deps", "-test", "-f", "{{.ImportPath}}", "./...", "./testdata/oracle")) {
		pkg := strings.TrimSpace(line)
		if pkg == delve+"proc" || strings.HasPrefix(pkg, delve+"proc/") {
			t.Errorf("something of ours, or a test, imports %s", pkg)
		}
	}
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(imports, delve) && pkg != evaluates {
			t.Errorf("%s imports a package of delve; at run time %s alone may, behind a recover", pkg, evaluates)
		}
	}
	// op and regnum need leb128 and the parent package.
	atRunTime := []string{delve + "dwarf", delve + "dwarf/op", delve + "dwarf/regnum", delve + "dwarf/leb128",
		delve + "logflags"}
	for line := range strings.Lines(goList(t, "-deps", "-f", "{{.ImportPath}}", "./...")) {
		pkg := strings.TrimSpace(line)
		if strings.HasPrefix(pkg, delve) && !slices.Contains(atRunTime, pkg) {
			t.Errorf("something of ours imports %s at run time", pkg)
		}
	}
}

// TestOwnSenders: goprof writes messages to servers, and calls them, with its own code (docs/decisions/0017). Tests
// compare it with other implementations.
func TestOwnSenders(t *testing.T) {
	for line := range strings.Lines(goList(t, "-deps", "-f", "{{.ImportPath}}", "./...")) {
		for _, library := range []string{"google.golang.org/grpc", "google.golang.org/protobuf", "go.opentelemetry.io/"} {
			if strings.HasPrefix(line, library) {
				t.Errorf("something of ours takes %s in", strings.TrimSpace(line))
			}
		}
	}
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	question := os.Getenv("GOOS") + strings.Join(args, " ")
	if answer, ok := listed[question]; ok {
		return answer
	}
	if _, err := exec.LookPath("go"); err != nil && os.Getenv("GOPROF_EMULATED") != "" {
		t.Skip("compiled elsewhere: there is no go here, and nothing that depends on the CPU") // scripts/test-arm64.sh
	}
	cmd := exec.Command("go", append([]string{"list", "-e"}, args...)...)
	cmd.Dir = ".."
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errors.String())
	}
	listed[question] = string(out)
	return string(out)
}

// listed caches the output of go list, because several tests need the same.
var listed = map[string]string{}
