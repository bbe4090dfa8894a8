//go:build linux

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// named are the files that goprof opens by a name that no target has a say in ("What goprof opens" in
// docs/security.md).
var named = []*regexp.Regexp{
	regexp.MustCompile(`^/proc(/(self|thread-self|\d+)(/(task(/\d+(/(stat|status|schedstat|sched|syscall|comm|cmdline|cgroup|wchan))?)?|` +
		`stat|statm|status|schedstat|maps|mem|cmdline|cgroup|exe|root|auxv|environ|mountinfo|limits|fd(/\d+)?|timens_offsets|map_files/[0-9a-f]+-[0-9a-f]+|` +
		`oom_score_adj|attr/current|sched))?)?$`),
	regexp.MustCompile(`^/proc/(uptime|stat|cpuinfo|sys/kernel/[a-z_/]+|mounts)$`),
	regexp.MustCompile(`^/sys/(devices/system/cpu/(online|nohz_full|possible)|kernel/mm/[a-z_/]+|kernel/security/(lsm|lockdown)|fs/selinux/enforce|module/[a-z_/]+)$`),
	// Go's runtime asks how many CPUs it has; a gate asks for limits on goprof's own CPU time
	regexp.MustCompile(`^/sys/fs/cgroup/([^.]*/)?memory\.(events|oom_control)$`),
	regexp.MustCompile(`^/sys/fs/cgroup/([^.]*/)?cpu\.(max|stat|cfs_quota_us|cfs_period_us|rt_runtime_us)$`),
	// whether the target is frozen: its control group and those above it
	regexp.MustCompile(`^/sys/fs/cgroup/([^.]*/)?(cgroup\.(freeze|events)|freezer\.(state|self_freezing|parent_freezing))$`),
	regexp.MustCompile(`^/sys/bus/event_source/devices/uprobe/type$`),
	// what the machine has and hides, for doctor
	regexp.MustCompile(`^/proc/(loadavg|pressure/cpu|kallsyms|self/map_files)$`),
	regexp.MustCompile(`^/etc/(os-release|passwd|group|nsswitch\.conf|localtime)$`),
	regexp.MustCompile(`^/usr/share/zoneinfo/|^/dev/null$`),
	// below a kept /proc/PID or /proc/PID/task; timerslack_ns is that of a thread of goprof's own
	regexp.MustCompile(`^(timerslack_ns|stat|status|schedstat|syscall|\d+(/(stat|status|schedstat|sched|syscall|wchan|comm))?)$`),
}

// hostDebug is the only file that openat2 may find in the host's root: its name is a build id.
var hostDebug = regexp.MustCompile(`^/usr/lib/debug/\.build-id/[0-9a-f]{2}/[0-9a-f]+\.debug$`)

var (
	openCall  = regexp.MustCompile(`^(?:open\(|openat\((?:AT_FDCWD(?:<[^>]*>)?|\d+<[^>]*>), )"([^"]*)", ([A-Z_|0-9]+).*\) += (-?\d+)`)
	openat2   = regexp.MustCompile(`^openat2\((\d+)<[^>]*>, "([^"]*)", \{flags=([A-Z_|]+), resolve=([A-Z_|]+)\}, \d+\) += `)
	otherOpen = regexp.MustCompile(`^(creat|open_by_handle_at|openat2|openat|open|fsopen|open_tree)\(`)
)

// traced runs goprof under strace, and wants every open to be one of those that are written down.
func traced(t *testing.T, as []string, goprof string, args ...string) ran {
	t.Helper()
	tool(t, "strace", "-V")
	log := filepath.Join(t.TempDir(), "trace")
	command := slices.Concat(as, []string{"strace", "-f", "-y", "-s", "4096", "-e", "signal=none", "-o", log,
		"-e", "trace=open,openat,openat2,creat,open_by_handle_at,fsopen,open_tree", goprof}, args)
	r := runIt(t, command...)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	checkOpens(t, string(text))
	if !regexp.MustCompile(`"/proc/self/oom_score_adj", O_WRONLY[^)]*\) += \d`).Match(text) {
		t.Errorf("%s does not ask to go first when memory runs out", args[0])
	}
	return r
}

// checkOpens reads a trace.
func checkOpens(t *testing.T, trace string) {
	t.Helper()
	seen := 0
	roots := map[string]string{} // descriptor -> by what name it was opened
	begun := map[string]string{} // thread -> the call that it is in
	for line := range strings.Lines(trace) {
		thread, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if head, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
			begun[thread] = head
			continue
		}
		if _, tail, ok := strings.Cut(call, " resumed>"); ok && strings.HasPrefix(call, "<... ") {
			call = begun[thread] + tail
		}
		if !otherOpen.MatchString(call) {
			continue
		}
		seen++
		if m := openCall.FindStringSubmatch(call); m != nil {
			checkNamed(t, m[1], m[2], call)
			roots[m[3]] = m[1]
			continue
		}
		m := openat2.FindStringSubmatch(call)
		switch {
		case m == nil:
			t.Errorf("opened in a way that is not written down: %s", call)
		case !strings.Contains(m[3], "O_PATH") || !strings.Contains(m[4], "RESOLVE_IN_ROOT") ||
			!strings.Contains(m[4], "RESOLVE_NO_MAGICLINKS"):
			t.Errorf("a target's path is followed out of its root: %s", call)
		case roots[m[1]] == "/" && !hostDebug.MatchString(m[2]):
			t.Errorf("a target's path is followed in the host's root: %s", call)
		case roots[m[1]] != "/" && !regexp.MustCompile(`^/proc/\d+/root$`).MatchString(roots[m[1]]):
			t.Errorf("in no known root (%s): %s", roots[m[1]], call)
		}
	}
	if seen < 10 {
		t.Errorf("only %d opens in the trace", seen)
	}
}

func checkNamed(t *testing.T, name, flags, call string) {
	t.Helper()
	if name == "/" && strings.Contains(flags, "O_PATH") {
		return
	}
	if !slices.ContainsFunc(named, func(re *regexp.Regexp) bool { return re.MatchString(name) }) {
		t.Errorf("a name that is not written down: %s", call)
	}
}

// TestOpensAreWrittenDown: what goprof opens to record, dump and list a JVM in each mode is what docs/security.md
// says.
func TestOpensAreWrittenDown(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace (scripts/tools.sh strace installs it)")
	}
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	pid := strconv.Itoa(jvmtest.Start(t, jdk, "truth.Shares", "--", "1", "1", "6").PID)
	for _, args := range [][]string{
		{"record", "--pid", pid, "-d", "1", "-o", "-", "--engine", "ptrace"},
		{"record", "--pid", pid, "-d", "1", "-o", "-", "--mode", "wall"},
		{"record", "--pid", pid, "-d", "1", "-o", "-", "--engine", "perf"},
		{"dump", "--pid", pid},
		{"doctor", "--pid", pid},
		{"list"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r := traced(t, nil, goprof, args...)
			if r.code != 0 && r.code != 7 && !slices.Contains(args, "perf") { // 7: no sample
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
		})
	}
}
