//go:build linux

package oracle

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/testdata/oldkernel"
)

// TestDebianKernel: root has all of goprof under the defaults of Debian's kernels. perf_event wants CAP_SYS_ADMIN
// there, and before Linux 5.11 BPF programs want locked memory. doctor tells what record will do, and nothing is blamed
// on a security module.
func TestDebianKernel(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	host.NeedPerf(t)
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "1000000000", "2")
		dir := t.TempDir()
		pid := fmt.Sprint(jvm.PID)
		record := func(name string, flags ...string) []string {
			out := filepath.Join(dir, name)
			return slices.Concat([]string{goprof, "record", "--pid", pid, "-d", "1", "-v", "-o", out}, flags)
		}
		// The usual limit of locked memory. To raise a hard limit takes CAP_SYS_RESOURCE, which test machines may lack.
		limited := []string{"prlimit", "--memlock=65536:"}
		const kept = "recordings keep CAP_SYS_ADMIN: kernel.perf_event_paranoid is"
		for _, c := range []struct {
			words []string
			says  string
		}{
			{[]string{goprof, "doctor", pid}, "--engine perf works for process " + pid + "; " + kept},
			{[]string{goprof, "doctor", pid}, "library:function ... work"},
			{record("a", "--engine", "perf"), kept},
			{record("b", "--engine", "auto"), kept},
			{record("c", "--event", "off-cpu"), kept},
			{record("d.jfr", "--event", "alloc=64k,page-faults=1"), "alloc"},
			{slices.Concat([]string{"timeout", "--preserve-status", "-s", "INT", "6", goprof, "agent", "--files", dir,
				"--deny", "."}),
				"goprof: " + kept},
		} {
			out, code := "", 0
			for tries := 0; tries < 3 && (code != 0 || !strings.Contains(out, c.says)); tries++ { // six seconds may be too few
				out, code = runSampled(t, 0, []oldkernel.Rule{oldkernel.Debian, oldkernel.CountedBPF},
					slices.Concat(limited, c.words))
			}
			if code != 0 || !strings.Contains(out, c.says) {
				t.Errorf("%v: exit code %d, %q is wanted:\n%s", c.words, code, c.says, out)
			}
			for _, no := range []string{"security module (", "sudo", "the engine is ptrace", "does not tell goprof",
				"needs CAP_"} {
				if strings.Contains(out, no) {
					t.Errorf("%v: %q:\n%s", c.words, no, out)
				}
			}
		}
	})
}

// TestRefusalsAreNamed: what remains refused is told with its true cause, after goprof has given up its rights, too.
func TestRefusalsAreNamed(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	host.NeedPerf(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv")
	}
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "1000000000", "2")
		record := func(flags ...string) []string {
			return slices.Concat([]string{goprof, "record", "--pid", fmt.Sprint(jvm.PID), "-d", "1", "-o",
				filepath.Join(t.TempDir(), "out.collapsed")}, flags)
		}
		noAdmin := []string{"setpriv", "--bounding-set=-sys_admin"}
		// another user than the JVM's, who may trace it, but not open what only its user may open by mode. With real-time
		// priority, since beside much other work no thread is stopped without it.
		const theirs = "1000"
		public := publicCopy(t, goprof)
		traces := func(flags ...string) []string {
			return slices.Concat([]string{"setpriv", "--reuid", theirs, "--regid", theirs, "--clear-groups", "--inh-caps",
				"+sys_ptrace,+sys_nice", "--ambient-caps", "+sys_ptrace,+sys_nice", public}, flags,
				[]string{"--pid", fmt.Sprint(jvm.PID)})
		}
		for _, c := range []struct {
			rules []oldkernel.Rule
			words []string
			code  int
			says  string
		}{
			{nil, slices.Concat(noAdmin, record("--event", "alloc")), 16, "probes need CAP_SYS_ADMIN, which goprof lacks"},
			{nil, traces("record", "-d", "1", "-o", "-"), 0, "Profile"},
			{nil, traces("dump"), 0, "truth.Allocating"},
			{nil, traces("record", "--mode", "wall", "-d", "1", "-o", "-"), 5,
				"or CAP_DAC_READ_SEARCH: CAP_SYS_PTRACE does not open them"},
			{[]oldkernel.Rule{oldkernel.Debian}, slices.Concat(noAdmin, record("--engine", "perf")), 5,
				"the kernel refuses perf_event by no rule that goprof knows"}, // by this machine's level
			// kernel.perf_event_paranoid 1 would not help: BPF programs would still be refused
			{[]oldkernel.Rule{oldkernel.Debian}, traces("record", "--engine", "perf", "-o", "-"), 5,
				"BPF programs need CAP_BPF and CAP_PERFMON"},
			// no cure names perf, which does not work
			{[]oldkernel.Rule{oldkernel.Debian}, slices.Concat([]string{"setpriv", "--bounding-set=-sys_admin,-sys_nice"},
				record("--engine", "ptrace")), 0, "it lacks CAP_SYS_NICE"},
			{oldkernel.Before517, record("--engine", "perf"), 0, "Profile"},
			{oldkernel.Before55, []string{goprof, "doctor", fmt.Sprint(jvm.PID)}, 0,
				"would not work: this kernel takes no BPF program that goprof needs (invalid argument)"},
			{oldkernel.Before55, record("--event", "alloc"), 16,
				"this kernel takes no BPF program that goprof needs (invalid argument)"},
			{oldkernel.Before417, record("--event", "alloc"), 16,
				"this kernel has no uprobes for perf_event_open (Linux 4.17 on, CONFIG_UPROBE_EVENTS"},
			// without map_files, and without openat2: names come by the path
			{oldkernel.Before417, slices.Concat([]string{"setpriv", "--bounding-set=-checkpoint_restore,-sys_admin"},
				record("--engine", "auto")), 0, "Profile"},
		} {
			out, code := runSampled(t, c.code, c.rules, c.words)
			if code == noSample && strings.Contains(out, "other threads want the CPUs, and goprof has no real-time priority") {
				continue // which is true, and all that can be said on this machine
			}
			if code != c.code || !strings.Contains(out, c.says) ||
				strings.Contains(out, "security module (") || strings.Contains(out, "or --engine perf") ||
				strings.Contains(out, "paranoid=1") ||
				strings.Contains(out, "its file cannot be opened") ||
				!slices.Contains(c.words, theirs) && strings.Contains(out, "sudo goprof") {
				t.Errorf("%v: exit code %d, %q is wanted:\n%s", c.words, code, c.says, out)
			}
		}
	})
}
