//go:build linux

package main

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/redact"
)

// someCalls are a call of each type of event, and what the leaf of its stack is.
var someCalls = map[string]profile.IOCall{
	"[read: /shop/carts]": {Op: profile.IORead, Bytes: 10, Took: 3 * time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOFile, Name: "/shop/carts"}},
	"[write: /shop/carts]": {Op: profile.IOWrite, Bytes: 20, Took: time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOFile, Name: "/shop/carts"}},
	"[force: /shop/carts]": {Op: profile.IOForce, Took: 5 * time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOFile, Name: "/shop/carts"}},
	"[read: 10.9.8.7:5432]": {Op: profile.IORead, Bytes: 7, Took: 20 * time.Millisecond, Target: shopDatabase},
	"[write: [fd00::77]:80]": {Op: profile.IOWrite, Bytes: 7, Took: time.Millisecond, Target: profile.IOTarget{
		Kind: profile.IOPeer, Name: "[fd00::77]:80", Addr: netip.MustParseAddrPort("[fd00::77]:80")}},
	"[read: 10.9.8.6]": {Op: profile.IORead, Bytes: 1, Took: time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOClient, Name: "10.9.8.6"}},
	"[connect: 10.9.8.7:5432]": {Op: profile.IOConnect, Took: time.Second, Failed: true, Target: shopDatabase},
	"[lookup: db.shop.example]": {Op: profile.IOLookup, Took: time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOName, Name: "db.shop.example"}},
	"[write: [pipe]]": {Op: profile.IOWrite, Took: time.Millisecond,
		Target: profile.IOTarget{Kind: profile.IOOther, Name: "[pipe]"}},
}

var shopDatabase = profile.IOTarget{Kind: profile.IOPeer, Name: "10.9.8.7:5432",
	Addr: netip.MustParseAddrPort("10.9.8.7:5432")}

// callsFile is a JFR file with someCalls. Each stands for four times its time, and two calls.
func callsFile(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w := jfr.NewWriter(&file, jfr.Options{})
	at := profile.Instant{Wall: 1e18, Ticks: 2e9}
	w.SetMeta(profile.Meta{Mode: profile.EventIO})
	sum := profile.Summary{IO: &profile.IO{}}
	for leaf, call := range someCalls {
		stack := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: leaf}, Kind: profile.StateFrame},
			{Func: &profile.Func{Name: "java.io.RandomAccessFile.read"}, Kind: profile.C2}}}
		s := profile.Sample{At: at, Thread: profile.Thread{TID: 7, Name: "main"}, Stack: stack, Count: 2, Wall: true,
			Span: 4 * call.Took, NoState: true, About: true, IO: &call,
			Event: &profile.EventKind{Name: profile.EventIO, Unit: profile.WallTime}}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
		sum.IO.Sums = append(sum.IO.Sums, profile.IOSum{Kind: call.Target.Kind, Target: call.Target.Name,
			Op: call.Op.String(), Calls: 3, Bytes: call.Bytes, Took: 5 * call.Took})
	}
	if err := cmp.Or(w.Account(at, &sum), w.Close(at)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestCallsInJFR: calls come out of a file as they went in, with what they stand for, and so do the sums.
func TestCallsInJFR(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls.jfr")
	if err := os.WriteFile(name, callsFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, want := map[string]time.Duration{}, map[string]time.Duration{}
	for leaf, call := range someCalls {
		want[leaf] = 4 * call.Took
	}
	if err := file.Each(func(s *profile.Sample) error {
		got[s.Stack.Frames[0].Func.Name] += s.Span
		if s.Count != 2 || len(s.Stack.Frames) != 2 {
			t.Errorf("%d calls, %d frames", s.Count, len(s.Stack.Frames))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if sums := sumsOfIO(file.Info()); sums == nil || len(sums.Sums) != len(someCalls) || sums.Sums[0].Calls != 3 {
		t.Errorf("sums are %+v", sums)
	}
}

// TestCallsAreRedacted: no file, host or peer is left in a redacted file.
func TestCallsAreRedacted(t *testing.T) {
	var out bytes.Buffer
	in := callsFile(t)
	by := redact.New(redact.Default(), []byte("the key of this test"))
	if _, err := jfr.Redact(&out, bytes.NewReader(in), int64(len(in)), by, func() (jfr.Spill, error) {
		return nil, errors.New("no spill")
	}); err != nil {
		t.Fatal(err)
	}
	call := someCalls["[connect: 10.9.8.7:5432]"]
	told := by.Sample(&profile.Sample{IO: &call}, by.Functions()).IO.Target
	sum := by.Summary(&profile.Summary{IO: &profile.IO{Sums: []profile.IOSum{{Target: "/shop/carts"}}}}).IO.Sums[0].Target
	text := out.String() + told.Name + told.Addr.String() + sum + by.Label("[read: 10.9.8.7:5432]")
	for _, secret := range []string{"carts", "10.9.8", "fd00", "db.shop", "example"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is still there", secret)
		}
	}
}
