//go:build linux

package product

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
)

// TestNothingAfterTheEnd: a signal comes while a loop's file is finished. It does not write that file or its account
// again.
func TestNothingAfterTheEnd(t *testing.T) {
	dir := t.TempDir()
	file, err := outfile.Reserve(filepath.Join(dir, "x.collapsed"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := New(format.Collapsed, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := &Recorded{Profile: profile.New(), Summary: &profile.Summary{}}
	for name, end := range map[string]func(*Outputs) error{
		"written":  func(o *Outputs) error { _, err := o.Finish(now); return err },
		"left out": func(o *Outputs) error { return o.LeaveOut(now) },
	} {
		o := &Outputs{Product: made, beside: true}
		if err := end(o); err != nil {
			t.Fatal(err)
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			os.Remove(filepath.Join(dir, e.Name()))
		}
		if _, err := o.SoFar(now); !errors.Is(err, ErrDone) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s: there is %v", name, entries)
		}
	}
}

// TestAccountsOfALoop: no account replaces another one, also if two files begin in the same second.
func TestAccountsOfALoop(t *testing.T) {
	dir := t.TempDir()
	f := Files{Output: filepath.Join(dir, "a.json"), Summary: filepath.Join(dir, "s.json"), As: format.JSON, Loop: true}
	for range 3 {
		o, err := f.Reserve(7)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.writeSummary("", &Recorded{Summary: &profile.Summary{}}); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "s-*.json")); len(names) != 3 {
		t.Errorf("there are %q", names)
	}
}

// TestAccountOfAnother: the account beside stacks replaces only an older account of these stacks.
func TestAccountOfAnother(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	record := func(f *Files) error {
		var err error
		if f.As, err = format.Of(f.Output, ""); err != nil {
			t.Fatal(err)
		}
		o, err := f.Reserve(7)
		if err == nil {
			_, err = o.Finish(&Recorded{Profile: profile.New(),
				Summary: &profile.Summary{Meta: profile.Meta{Version: "v1"}}})
		}
		return err
	}
	kept := func(name string, f *Files) {
		t.Helper()
		before, _ := os.ReadFile(in(name))
		if err := record(f); !errors.As(err, new(*exit.AccountError)) {
			t.Errorf("%s: %v", filepath.Base(f.Output), err)
		}
		if after, err := os.ReadFile(in(name)); err != nil || string(before) != string(after) {
			t.Errorf("%s is no longer what it wAs: %v", name, err)
		}
	}
	done := func(f *Files) {
		t.Helper()
		if err := record(f); err != nil {
			t.Errorf("%s: %v", filepath.Base(f.Output), err)
		}
	}
	done(&Files{Output: in("x.summary.json")})
	kept("x.summary.json", &Files{Output: in("x.collapsed")})
	done(&Files{Output: in("x.collapsed"), Summary: in("other.json")})
	done(&Files{Output: in("y.json"), Summary: in("y.summary.json")})
	kept("y.summary.json", &Files{Output: in("y.collapsed")})
	done(&Files{Output: in("z.collapsed")})
	done(&Files{Output: in("z.collapsed")})

	f := &Files{Output: in("late.collapsed"), As: format.Collapsed}
	o, err := f.Reserve(7)
	if err != nil {
		t.Fatal(err)
	}
	done(&Files{Output: in("late.summary.json")}) // while the other one records
	now := &Recorded{Profile: profile.New(), Summary: &profile.Summary{}}
	if _, err := o.Finish(now); !errors.As(err, new(*exit.AccountError)) {
		t.Errorf("a file that came meanwhile was replaced: %v", err)
	}
}
