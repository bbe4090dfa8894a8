//go:build linux

package recorder

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/redact"
	"goprof/session"
)

// recordedOnto is a recorder of a JFR file on a full disk. It has noticed that the disk is full. Its account goes
// elsewhere.
func recordedOnto(t *testing.T, account string) *Recorder {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	file, err := outfile.Reserve(filepath.Join(t.TempDir(), "x.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Quiet: true, Files: product.Files{As: format.JFR, Summary: account, Spool: full, Whole: file,
		Options: product.Options{Chunk: time.Second}}}
	r := &Recorder{part: part{o: o}, talk: io.Discard}
	if r.out, err = o.Files.Reserve(7); err != nil {
		t.Fatal(err)
	}
	stopped := false
	sink := r.out.Start(session.Facts{}, func() { stopped = true })
	sink.Begin(profile.Instant{}, profile.Meta{})
	for i := range 4 {
		sink.Tick(profile.Instant{Wall: int64(i) * 1e9, Ticks: int64(i) * 1e9}, 1)
	}
	if !stopped {
		t.Fatal("a full disk has not ended the recording")
	}
	return r
}

// TestFullDiskWithoutSamples: goprof says that the disk was full, and not that all threads were idle.
func TestFullDiskWithoutSamples(t *testing.T) {
	account := filepath.Join(t.TempDir(), "account.json")
	for _, samples := range []int64{0, 1} {
		r := recordedOnto(t, account)
		err := r.tell(&result{profile: profile.New(), summary: profile.Summary{Samples: samples}})
		var told *exit.Error
		if !errors.As(err, &told) || told.Code != exit.OutputFailed || !errors.Is(err, syscall.ENOSPC) {
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

// TestAccountIsRedacted: a recording without names prints no names on standard error either.
func TestAccountIsRedacted(t *testing.T) {
	var said bytes.Buffer
	o := &Options{Verbose: true, Files: product.Files{Output: filepath.Join(t.TempDir(), "x.jfr"), As: format.JFR,
		By: redact.New(redact.Default(), []byte("the key of this test"))}}
	out, err := o.Files.Reserve(7)
	if err != nil {
		t.Fatal(err)
	}
	defer out.LeaveOut(nil)
	r := &Recorder{part: part{o: o}, out: out, talk: &said}
	r.tellAccount(&profile.Summary{Samples: 3, Meta: profile.Meta{Duration: time.Second},
		Hottest: []profile.Part{{Name: "com.qxzz.Shop.qxzzPay", Share: 0.5}, {Name: "java.lang.Thread.run", Share: 0.5}},
		Events:  []profile.EventCount{{Name: "libqxzz.so:qxzz_hash", Hits: 7}},
		Notes:   []profile.Note{{Name: "note", Text: "/opt/qxzz/libqxzz.so is gone"}},
		Allocated: &profile.Allocated{Bytes: 9, Threads: []profile.ThreadBytes{
			{Thread: "[qxzz-worker-3 tid=7]", Bytes: 9}}}})
	text := said.String()
	if at := strings.Index(strings.ToLower(text), "qxzz"); at >= 0 {
		t.Errorf("it is told: %s", text[at:])
	}
	for _, has := range []string{"Thread.run", "-worker-3"} {
		if !strings.Contains(text, has) {
			t.Errorf("%q is not told:\n%s", has, text)
		}
	}
}
