//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// fullDisk is a file on a disk without room.
type fullDisk struct{ name string }

var errFull = errors.New("no space left on device")

func (d fullDisk) Write([]byte) (int, error)      { return 0, errFull }
func (d fullDisk) Seek(int64, int) (int64, error) { return 0, nil }
func (d fullDisk) Truncate(int64) error           { return nil }
func (d fullDisk) Publish() error                 { return nil }
func (d fullDisk) EndSoon()                       {}
func (d fullDisk) Close() error                   { return nil }
func (d fullDisk) Name() string                   { return d.name }

// recordedOnto is a recorder of a JFR file on a full disk. It has noticed that the disk is full. Its account goes
// elsewhere.
func recordedOnto(t *testing.T, account string) *recorder {
	t.Helper()
	file, err := outfile.Reserve(filepath.Join(t.TempDir(), "x.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	summary, err := outfile.Reserve(account)
	if err != nil {
		t.Fatal(err)
	}
	p := product.NewJFR(file, fullDisk{file.Name()}, product.Options{Chunk: time.Second})
	stopped := false
	p.Start(session.Facts{}, func() { stopped = true })
	p.Begin(profile.Instant{}, profile.Meta{})
	for i := range 4 {
		p.Tick(profile.Instant{Wall: int64(i) * 1e9, Ticks: int64(i) * 1e9}, 1)
	}
	if !stopped {
		t.Fatal("a full disk has not ended the recording")
	}
	return &recorder{part: part{flags: &recordFlags{quiet: true}}, talk: io.Discard,
		out: &outputs{Product: p, summary: summary, asked: true}}
}

// TestFullDiskWithoutSamples: goprof says that the disk was full, and not that all threads were idle.
func TestFullDiskWithoutSamples(t *testing.T) {
	account := filepath.Join(t.TempDir(), "account.json")
	for _, samples := range []int64{0, 1} {
		r := recordedOnto(t, account)
		res := &result{profile: profile.New(), summary: profile.Summary{Samples: samples}}
		err := r.tell(io.Discard, res)
		var told *exit.Error
		if !errors.As(err, &told) || told.Code != exit.OutputFailed || !strings.Contains(told.Err.Error(), errFull.Error()) {
			t.Errorf("%d samples: %v", samples, err)
		}
		if _, err := os.Stat(account); err != nil {
			t.Errorf("%d samples: the account that was asked for: %v", samples, err)
		}
		os.Remove(account)
	}
	r := recordedOnto(t, account)
	if err := r.finishOne(r.out, &result{profile: profile.New()}); err == nil {
		t.Error("a loop goes on although its disk is full")
	}
}

// TestNothingAfterTheEnd: a signal comes while a loop's file is finished. It does not write that file or its account
// again.
func TestNothingAfterTheEnd(t *testing.T) {
	dir := t.TempDir()
	file, err := outfile.Reserve(filepath.Join(dir, "x.collapsed"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := product.New(format.Collapsed, file, product.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := &product.Recorded{Profile: profile.New(), Summary: &profile.Summary{}}
	for name, end := range map[string]func(*outputs) error{
		"written":  func(o *outputs) error { _, err := o.write(now); return err },
		"left out": func(o *outputs) error { return o.leaveOut(now, true) },
	} {
		o := &outputs{Product: made, beside: true}
		if err := end(o); err != nil {
			t.Fatal(err)
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			os.Remove(filepath.Join(dir, e.Name()))
		}
		if _, err := o.writeSoFar(now); !errors.Is(err, errDone) {
			t.Errorf("%s: %v", name, err)
		}
		onlyNamed(t, dir)
	}
}

// TestAccountsOfALoop: no account replaces another one, also if two files begin in the same second.
func TestAccountsOfALoop(t *testing.T) {
	dir := t.TempDir()
	f := recordFlags{output: filepath.Join(dir, "a.json"), summary: filepath.Join(dir, "s.json"), as: format.JSON,
		loopFlags: loopFlags{loop: time.Second}}
	for range 3 {
		o, err := f.reserve(7)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.writeSummary("", &product.Recorded{Summary: &profile.Summary{}}); err != nil {
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
	record := func(f *recordFlags) error {
		f.interval = time.Second
		var err error
		if f.as, err = format.Of(f.output, ""); err != nil {
			t.Fatal(err)
		}
		o, err := f.reserve(7)
		if err == nil {
			_, err = o.write(&product.Recorded{Profile: profile.New(),
				Summary: &profile.Summary{Meta: profile.Meta{Version: "v1"}}})
		}
		return err
	}
	kept := func(name string, f *recordFlags) {
		t.Helper()
		before, _ := os.ReadFile(in(name))
		if err := record(f); !errors.As(err, new(*accountError)) {
			t.Errorf("%s: %v", filepath.Base(f.output), err)
		}
		if after, err := os.ReadFile(in(name)); err != nil || string(before) != string(after) {
			t.Errorf("%s is no longer what it was: %v", name, err)
		}
	}
	done := func(f *recordFlags) {
		t.Helper()
		if err := record(f); err != nil {
			t.Errorf("%s: %v", filepath.Base(f.output), err)
		}
	}
	done(&recordFlags{output: in("x.summary.json")})
	kept("x.summary.json", &recordFlags{output: in("x.collapsed")})
	done(&recordFlags{output: in("x.collapsed"), summary: in("other.json")})
	done(&recordFlags{output: in("y.json"), summary: in("y.summary.json")})
	kept("y.summary.json", &recordFlags{output: in("y.collapsed")})
	done(&recordFlags{output: in("z.collapsed")})
	done(&recordFlags{output: in("z.collapsed")})

	f := &recordFlags{output: in("late.collapsed"), as: format.Collapsed}
	o, err := f.reserve(7)
	if err != nil {
		t.Fatal(err)
	}
	done(&recordFlags{output: in("late.summary.json")}) // while the other one records
	now := &product.Recorded{Profile: profile.New(), Summary: &profile.Summary{}}
	if _, err := o.write(now); !errors.As(err, new(*accountError)) {
		t.Errorf("a file that came meanwhile was replaced: %v", err)
	}
}
