//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
)

// TestHeapGrowthWritten: text, page and JSON tell what grew with the same reservations, also if the part that was asked
// for is empty at the last reading.
func TestHeapGrowthWritten(t *testing.T) {
	amount := profile.HeapAmount{Objects: 10, Bytes: 4 << 20}
	last := func() *profile.Heap {
		return &profile.Heap{Collector: "G1", Capacity: 1 << 30, Parts: []profile.HeapPart{{Name: "old", Used: 4 << 20,
			Seen: 4 << 20}}, Classes: []*profile.HeapClass{{Name: "shop.Leak", HeapAmount: amount,
			Parts: map[string]profile.HeapAmount{"old": amount}}}}
	}
	growth := &profile.HeapGrowth{Over: 50 * time.Second, Readings: 6, Part: "old", Used: profile.HeapSlope{Rate: 1 << 20},
		Classes: []*profile.HeapGrower{{Name: "shop.Leak", Bytes: profile.HeapSlope{Rate: 1 << 20}}}}
	write := func(file, area string, growth *profile.HeapGrowth) (string, error) {
		f := &heapFlags{output: filepath.Join(t.TempDir(), file), json: strings.HasSuffix(file, ".json"),
			readings: readings{count: 6}}
		f.shape = output.HeapShape{Area: area, Top: 10}
		out, err := outfile.Reserve(f.output)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.write(&cobra.Command{}, out, last(), growth); err != nil {
			return "", err
		}
		b, err := os.ReadFile(f.output)
		return string(b), err
	}
	for file, wants := range map[string][]string{
		"heap.txt":  {"Growth over 50s, 6 readings", "grows by 1 MiB", "what grew may be garbage", "shop.Leak", "no part"},
		"heap.html": {"Growth over 50s, 6 readings", "grows by 1 MiB", "what grew may be garbage", "shop.Leak", "no part"},
		"heap.json": {"\"collected\": false", "shop.Leak", "\"parts\": []", "\"classes\": []", "no part"},
	} {
		got, err := write(file, "humongous", growth)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
	if _, err := write("heap.txt", "humongous", nil); err == nil {
		t.Error("a heap without that part is no error")
	}
}

// TestTooFew: what grows is not known, rather than nothing.
func TestTooFew(t *testing.T) {
	for readings, want := range map[int]string{2: "fewer than three readings: what grows is not known",
		5: "fewer than three readings: what grows is not known (why)"} {
		var log strings.Builder
		if got := tooFew(&log, readings, "why"); got != want || log.String() != "goprof: "+want+"\n" {
			t.Errorf("%q, %q", got, log.String())
		}
	}
	for readings, remedy := range map[int]string{2: "let it end by itself", 6: "goprof heap 7 --leak --all"} {
		if e := (*exit.Error)(nil); !errors.As(noGrowth(7, readings), &e) || e.Remedy != remedy {
			t.Errorf("%d readings: %+v", readings, e)
		}
	}
}

// TestHeapAlive: what is alive is shown with its age where the collector has left nothing dead. Elsewhere it is
// refused.
func TestHeapAlive(t *testing.T) {
	amount, ago := profile.HeapAmount{Objects: 10, Bytes: 4 << 20}, 12*time.Second
	for _, row := range []struct {
		collector string
		swept     *time.Duration
		wants     []string
		why       string
	}{
		{"G1", &ago, []string{"without what was dead 12s ago", "may still be removing", "20        8 MiB  100.0 %"}, ""},
		{"Serial", &ago, []string{"without what was dead 12s ago"}, ""},
		{"G1", nil, nil, "not collected yet"},
		{"ZGC", nil, nil, "leaves dead objects"},
	} {
		f := &heapFlags{output: filepath.Join(t.TempDir(), "heap.txt"), alive: true, readings: readings{count: 1}}
		f.shape = output.HeapShape{Area: profile.HeapLive, Top: 10}
		out, err := outfile.Reserve(f.output)
		if err != nil {
			t.Fatal(err)
		}
		err = f.write(&cobra.Command{}, out, &profile.Heap{Collector: row.collector, Swept: row.swept,
			Parts: []profile.HeapPart{{Name: "young", Used: 4 << 20, Seen: 4 << 20}, {Name: "old", Used: 4 << 20, Seen: 4 << 20},
				{Name: "humongous", Used: 4 << 20, Seen: 4 << 20}},
			Classes: []*profile.HeapClass{{Name: "shop.Order",
				Parts: map[string]profile.HeapAmount{"young": amount, "old": amount,
					"humongous": amount}}, {Name: "shop.Gone", Parts: map[string]profile.HeapAmount{"young": amount}}}}, nil)
		var failed *exit.Error
		if errors.As(err, &failed) != (row.why != "") || failed != nil && !strings.Contains(failed.Why, row.why) {
			t.Errorf("%s: %v", row.collector, err)
			continue
		}
		text, _ := os.ReadFile(f.output)
		for _, want := range row.wants {
			if !strings.Contains(string(text), want) || strings.Contains(string(text), "shop.Gone") {
				t.Errorf("%s: no %q in %s", row.collector, want, text)
			}
		}
	}
}
