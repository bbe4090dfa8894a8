//go:build linux

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
)

// TestCoreCommands asks the core of a JVM with a deadlock and virtual threads in each way in which dump, locks and
// triage answer. It asks for redacted JSON, too, which has nothing of the program's package, class and method.
func TestCoreCommands(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		virtual := "2"
		if jdk.Version < 21 {
			virtual = "0"
		}
		jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "-Xmx64m", "--", "3", "12", "mrw", virtual)
		core := corefile.Write(t, jvm.PID)
		dir := filepath.Dir(core)
		put(t, filepath.Join(dir, "words"), "truth\nlocksgraph\nnested\n")
		dump := "dump --json"
		if virtual != "0" {
			dump += " --virtual"
		}
		for _, row := range []struct {
			line string
			code exit.Code
			want []string
		}{
			{"dump", exit.OK, []string{"truth.LocksGraph.nested", `"lock-3"`, "DEADLOCK"}},
			{"dump --group", exit.OK, []string{"truth.LocksGraph.nested", "lock-"}},
			{"dump --format jstack", exit.OK, []string{"at truth.LocksGraph.nested(LocksGraph.java:", "Full thread dump"}},
			{dump, exit.OK, []string{`"core"`, `"deadlocks"`, "truth.LocksGraph.nested"}},
			{"locks --json", exit.Deadlocked, []string{`"deadlocks"`, "truth.LocksGraph$"}},
			{"triage --json", exit.Found, []string{`"deadlock"`}},
			{"heap", exit.OK, []string{"all looked at", "java.lang.String  (boot)", "byte[]  (boot)", "Arrays by length"}},
			{"heap --json", exit.OK, []string{`"truth.LocksGraph$`, `"application"`, `"java.lang.Thread"`}},
		} {
			args := append(strings.Fields(row.line), "--core", core)
			plain := coreAnswer(t, dir, row.code, args...)
			for _, want := range row.want {
				if !strings.Contains(plain, want) {
					t.Errorf("%s lacks %s:\n%.3000s", row.line, want, plain)
				}
			}
			if !strings.Contains(row.line, "json") {
				continue
			}
			hidden := coreAnswer(t, dir, row.code, append(args, "--redact", "default")...)
			if !json.Valid([]byte(plain)) || !json.Valid([]byte(hidden)) {
				t.Errorf("%s: no JSON", row.line)
			}
			put(t, filepath.Join(dir, "answer"), hidden)
			looking(t, dir, exit.OK, "redact", "answer", "--verify", "words")
		}
	})
}

// coreAnswer is the output of a command that reads a core.
func coreAnswer(t *testing.T, dir string, want exit.Code, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "goprof", args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, _ := cmd.Output()
	if code := exit.Code(cmd.ProcessState.ExitCode()); code != want || len(out) == 0 {
		t.Errorf("%s: exit code %d, want %d, %d bytes\n%s", strings.Join(args, " "), code, want, len(out), said.String())
	}
	return string(out)
}
