//go:build linux

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	children["files"] = func() {
		EnterFiles(Files{})
		childSays()
		for _, c := range forFiles {
			fmt.Printf("%s: %v\n", c.name, errors.Is(c.call(), unix.EPERM))
		}
	}
}

// forFiles are calls of a goprof that looks at processes. They give EPERM to a goprof that only reads files.
var forFiles = []struct {
	name string
	call func() error
}{
	{"ptrace GETREGSET", raw(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, 1, unix.NT_PRSTATUS)},
	{"ptrace SEIZE", raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1<<30, 0)},
	{"process_vm_readv", raw(unix.SYS_PROCESS_VM_READV, 1<<30, 0, 0)},
	{"perf_event_open", raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0)},
	{"bpf", raw(unix.SYS_BPF, unix.BPF_PROG_LOAD, 0, 0)},
	{"socket", func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
	{"execve", raw(unix.SYS_EXECVE, 0, 0, 0)},
}

// TestFilesNeedNothing: a goprof that reads files of its own has no capability left in any OS thread, and looks at
// no process.
func TestFilesNeedNothing(t *testing.T) {
	needThreads(t)
	said := runChild(t, "files")
	want := fmt.Sprintf("state CapPrm=%016x CapEff=%016x CapInh=%016x NoNewPrivs=1 Seccomp=2", 0, 0, 0)
	if said[want] == "" || said[want] != said["threads"] {
		t.Errorf("%v, want %q", said, want)
	}
	for _, c := range forFiles {
		if said[c.name] != "true" {
			t.Errorf("%s is not refused", c.name)
		}
	}
}

// TestFilesOfOthers: root reads a user's file and writes into a user's folder, as with sudo. goprof keeps a
// capability for that purpose only.
func TestFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	dir, theirs := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
	own, secret, sticky := filepath.Join(dir, "own"), filepath.Join(dir, "secret"), filepath.Join(theirs, "sticky")
	for _, err := range []error{os.Mkdir(theirs, 0o755), os.WriteFile(own, nil, 0o600), os.WriteFile(secret, nil, 0o600),
		os.Mkdir(sticky, 0o755), os.Chmod(sticky, 0o777|os.ModeSticky), os.WriteFile(filepath.Join(sticky, "a"), nil, 0o600),
		os.Chown(secret, 1000, 1000), os.Chown(theirs, 1000, 1000), os.Chown(sticky, 1000, 1000),
		os.Chown(filepath.Join(sticky, "a"), 1001, 1001)} {
		if errors.Is(err, unix.EPERM) {
			t.Skip("this root may not give files away: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read, write := Keep{unix.CAP_DAC_READ_SEARCH}, Keep{unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}
	for what, c := range map[string]struct {
		files Files
		want  Keep
	}{
		"its own":            {Files{Read: []string{own, dir, ""}, Write: []string{filepath.Join(dir, "new"), ""}}, nil},
		"none":               {Files{Read: []string{filepath.Join(dir, "no", "such")}}, nil},
		"a user's":           {Files{Read: []string{own, secret}}, read},
		"a user's folder":    {Files{Read: []string{theirs}, Write: []string{filepath.Join(theirs, "new")}}, write},
		"into it":            {Files{Write: []string{theirs}}, write},
		"both":               {Files{Read: []string{secret}, Write: []string{theirs}}, slices.Concat(read, write)},
		"new in sticky":      {Files{Write: []string{filepath.Join(sticky, "new")}}, nil},
		"another's in it":    {Files{Write: []string{filepath.Join(sticky, "a")}}, write},
		"a device for all":   {Files{Write: []string{"/dev/null"}}, nil},
		"a name with a zero": {Files{Read: []string{"a\x00b"}}, nil},
	} {
		before, _ := capabilities()
		if got := c.files.keep(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v is kept, want %v", what, got, c.want)
		}
		if after, _ := capabilities(); after != before {
			t.Fatalf("%s: the thread has lost %x", what, before.effective&^after.effective)
		}
	}
}
