//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestRecordsFormats: the file's name chooses the format. Only the file is left. The spool passes on everything that
// a JFR file would hold.
func TestRecordsFormats(t *testing.T) {
	t.Parallel()
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "--", "1", "2")
	for end, begins := range map[string]string{
		".html": "<!DOCTYPE html>", ".svg": "<?xml", ".json": "{", ".pb.gz": "\x1f\x8b", ".pprof": "\x1f\x8b",
		".speedscope.json": "{", ".firefox.json.gz": "\x1f\x8b",
	} {
		dir := t.TempDir()
		record(t, jvm.PID, filepath.Join(dir, "x"+end), "-d", "1", "-r", "200")
		onlyNamed(t, dir, "x"+end)
		got, err := os.ReadFile(filepath.Join(dir, "x"+end))
		if err != nil || !strings.HasPrefix(strings.ToLower(string(got)), strings.ToLower(begins)) {
			t.Errorf("%s: %v, %.40q", end, err, got)
		}
		if end == ".html" && !strings.Contains(string(got), "cpu mode") {
			t.Error("the page does not say what was recorded")
		}
	}
	dir := t.TempDir()
	var stream []byte
	for range recordTries {
		cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-d", "1", "-q", "-f", "jfr", "-o", "-")
		out, err := cmd.Output()
		if exit.Code(cmd.ProcessState.ExitCode()) == exit.NoSamples {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		stream = out
		break
	}
	name := filepath.Join(dir, "stream.jfr")
	if err := os.WriteFile(name, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 1 {
		t.Errorf("of a stream: %d samples, events %v", b.samples, b.events)
	}
}

// TestSpoolIsConverted: the samples of a spooled recording are in the file that it is converted to.
func TestSpoolIsConverted(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "--", "1", "2")
	name := filepath.Join(t.TempDir(), "x.pb.gz")
	sum := record(t, jvm.PID, name, "-d", "2", "-r", "200")
	file, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := int64(0)
	if err := file.Each(func(s *profile.Sample) error { n += s.Looks(); return nil }); err != nil {
		t.Fatal(err)
	}
	if n != sum.Samples || n == 0 {
		t.Errorf("%d samples in the file, %d in the account", n, sum.Samples)
	}
}
