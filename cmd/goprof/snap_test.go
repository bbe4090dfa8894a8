//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/diagnose"
	"goprof/output/snap"
	"goprof/process/procfs"
	"goprof/profile"
	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// said runs goprof. It returns what goprof wrote on standard output and on standard error.
func said(t *testing.T, want exit.Code, args ...string) (out, told string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "goprof", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	if code := exit.Code(cmd.ProcessState.ExitCode()); code != want {
		t.Errorf("goprof %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// states are the parts of a snap.
func states(t *testing.T, name string) map[string]snap.Part {
	t.Helper()
	r, err := snap.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Contents()
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]snap.Part{}
	for _, p := range c.Parts {
		parts[p.Name] = p
		for _, file := range p.Files {
			if _, err := r.File(file); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	return parts
}

// TestSnap: a JVM with a deadlock that is stopped, too, is kept whole, and each viewer shows its part. Ctrl-C keeps
// what there is.
func TestSnap(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		dir := t.TempDir()
		log := "-Xlog:gc:file=" + filepath.Join(dir, "collections-%p.log")
		jvm := jvmtest.Start(t, jdk, "truth.Deadlocks", log, "--", "classes")
		pid, file := strconv.Itoa(jvm.PID), filepath.Join(dir, "a.zip")
		crashes(t, jvm.PID)

		part := filepath.Join(dir, "part.zip")
		interruptSnap(t, pid, part)
		parts := states(t, part)
		for name, want := range map[string]snap.State{"dump": snap.Kept, "triage": snap.Missing, "heap": snap.Missing} {
			if p := parts[name]; p.State != want || want == snap.Missing && !strings.Contains(p.Why, "interrupted") {
				t.Errorf("after Ctrl-C: %+v", p)
			}
		}
		if _, told := said(t, exit.Incomplete, "heap", part); !strings.Contains(told, "heap.txt: interrupted") {
			t.Error(told)
		}

		if err := syscall.Kill(jvm.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(jvm.PID, syscall.SIGCONT)
		machine.WaitFor(t, "the JVM has stopped", func() bool {
			stat, _, err := procfs.ReadStat(jvm.PID, jvm.PID)
			return err == nil && stat.State == 'T'
		})
		triagesEach(t, jvm.PID)
		_, told := said(t, exit.OK, "snap", pid, "-d", "1s", "-o", file)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v\n%s", info, err, told)
		}
		for name, p := range states(t, file) {
			if p.State != snap.Kept {
				t.Errorf("%s: %s, %s", name, p.State, p.Why)
			}
		}
		keptFiles(t, file)
		viewSnap(t, file, pid)
	})
}

// triagesEach: what triage --all says of a JVM with a deadlock, of one that it may not look into, and of one that has
// ended.
func triagesEach(t *testing.T, pid int) {
	f := &triageFlags{duration: triageLeast}
	forbidden := &diagnose.Cause{Class: diagnose.Forbidden, Why: "it is another user's", Remedy: "sudo"}
	all := f.triageEach(t.Context(), terminal.NewStatusLine(io.Discard), []diagnose.JVM{{PID: 1, Main: "a.Other",
		Problem: forbidden}, {PID: 1 << 30, Main: "a.Gone"}, {PID: pid, Main: "truth.Deadlocks"}})
	sortTriaged(all)
	if len(all) != 2 || all[0].PID != pid || all[0].Findings[0].ID != profile.Deadlocked || all[1].Problem == "" {
		t.Fatalf("%+v", all)
	}
	var b strings.Builder
	if err := triagedText(&b, all); err != nil || !strings.Contains(b.String(), "\n  1. deadlock (critical)\n") ||
		!strings.HasSuffix(b.String(), "\n1 a.Other: cannot look at process 1: it is another user's\n") {
		t.Errorf("%v\n%s", err, &b)
	}
	for want, some := range map[exit.Code][]*triagedJVM{exit.Found: all, exit.NotPermitted: all[1:], exit.OK: nil} {
		if err := worstOf(some); exit.Tell(io.Discard, err) != want {
			t.Errorf("%v, want %d", err, want)
		}
	}
}

// TestTriagedOrder: the worst comes first, and what is not known before what is well.
func TestTriagedOrder(t *testing.T) {
	jvm := func(pid int, err error, severities ...profile.Severity) *triagedJVM {
		t := &triagedJVM{PID: pid, err: err}
		for _, s := range severities {
			t.Findings = append(t.Findings, profile.Finding{Severity: s})
		}
		return t
	}
	all := []*triagedJVM{jvm(5, nil), jvm(4, io.EOF), jvm(3, nil, profile.Notice),
		jvm(2, nil, profile.Warning, profile.Notice), jvm(1, nil, profile.Critical), jvm(0, nil, profile.Critical,
			profile.Warning)}
	sortTriaged(all)
	for i, got := range all {
		if got.PID != i {
			t.Errorf("place %d has process %d", i, got.PID)
		}
	}
}

// crashes puts files into the JVM's folder: one that a crash left, and a link to a file that is none of the JVM's.
func crashes(t *testing.T, pid int) {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		t.Fatal(err)
	}
	text := crashOf(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	put(t, elsewhere, strings.Replace(text, "SIGSEGV", "SECRET", 1))
	put(t, filepath.Join(cwd, "hs_err_pid7.log"), text)
	if err := os.Symlink(elsewhere, filepath.Join(cwd, "hs_err_pid8.log")); err != nil {
		t.Fatal(err)
	}
}

// interruptSnap ends a long snap as soon as it says that it has begun to record.
func interruptSnap(t *testing.T, pid, file string) {
	cmd := exec.CommandContext(t.Context(), "goprof", "snap", pid, "-d", "10m", "-o", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	machine.WaitFor(t, "goprof has begun to record", func() bool {
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd")
		for _, fd := range tasks { // the recording goes into a file without a name
			to, _ := os.Readlink("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/" + fd.Name())
			if strings.HasSuffix(to, ".tmp (deleted)") {
				return true
			}
		}
		return false
	})
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := exit.Code(cmd.ProcessState.ExitCode()); code != exit.Incomplete ||
		!strings.Contains(stderr.String(), "missing: triage: interrupted\n") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// keptFiles looks into files that no viewer shows.
func keptFiles(t *testing.T, name string) {
	r, err := snap.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for file, want := range map[string]string{"gc.log": "Using ", "hs_err.1.log": "SIGSEGV", "kernel.txt": "oom_score",
		"neighbours.txt": "PID", "vitals.csv": "heap_used_bytes", "flags.txt": "(ergonomic)",
		"list.json": "truth.Deadlocks", "doctor.json": "checks", "recording.txt": "off-cpu"} {
		f, err := r.File(file)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := io.ReadAll(f)
		if err != nil || !bytes.Contains(text, []byte(want)) || bytes.Contains(text, []byte("SECRET")) {
			t.Errorf("%s: %v\n%.500s", file, err, text)
		}
	}
	if _, err := r.File("hs_err.2.log"); err == nil {
		t.Error("the link's file was read")
	}
}

func viewSnap(t *testing.T, file, pid string) {
	for line, want := range map[string]struct {
		code exit.Code
		text string
	}{
		"triage": {exit.Found, "deadlock (critical)"}, "triage --json": {exit.Found, `"id": "deadlock"`},
		"dump": {exit.OK, "=== dump 3 of 3"}, "dump --json": {exit.OK, `"pid": ` + pid},
		"dump -f jstack": {exit.OK, "Full thread dump"},
		"locks":          {exit.Deadlocked, "classes-1"}, "locks --json": {exit.Deadlocked, `"deadlocks"`},
		"heap": {exit.OK, "java.lang.String"}, "heap --json": {exit.OK, `"classes"`},
		"memory": {exit.OK, "Java heap"}, "memory --json": {exit.OK, `"resident_bytes"`},
		"report --event off-cpu": {exit.OK, "[stopped]"}, "flame --event off-cpu -o -": {exit.OK, "<html"},
		"convert -f collapsed --event off-cpu -o -": {exit.OK, "[stopped]"},
		"locks --json --redact default":             {exit.Deadlocked, `"deadlocks"`},
	} {
		command, flags, _ := strings.Cut(line, " ")
		out, _ := said(t, want.code, append([]string{command, file}, strings.Fields(flags)...)...)
		if !strings.Contains(out, want.text) {
			t.Errorf("%s lacks %q:\n%.500s", line, want.text, out)
		}
		if strings.Contains(flags, "json") && !json.Valid([]byte(out)) {
			t.Errorf("%s is no JSON", line)
		}
		if strings.Contains(flags, "redact") && strings.Contains(out, "classes-1") {
			t.Errorf("%s tells a name", line)
		}
	}
	for _, args := range [][]string{{"dump", file, "--group"}, {"heap", file, "-o", "x.html"},
		{"triage", file, "-d", "5s"}} {
		said(t, exit.General, args...)
	}
}

// TestShowKept: what a file holds cannot steer a terminal, and means the same as JSON.
func TestShowKept(t *testing.T) {
	for format, want := range map[string]string{"json": "{\"a\":\"\\u001b[2J\\u202e\"}\n", "text": "{\"a\":\"?[2J?\"}\n"} {
		var b bytes.Buffer
		err := copyKept(&b, strings.NewReader("{\"a\":\"\x1b[2J\u202e\"}\n"), format, nil)
		if err != nil || b.String() != want {
			t.Errorf("%s: %q, %v", format, b.String(), err)
		}
	}
}
