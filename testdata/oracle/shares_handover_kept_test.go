//go:build linux

package oracle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// handed is what one run of TestHandOver has counted, or several.
type handed struct {
	Case  string
	Truth float64 // the share of CPU time
	Hand  int     // samples of handing over
	Of    int     // all samples

	sleeps int // of Of, in a short sleep
}

func (h *handed) seen() float64 { return float64(h.Hand) / float64(max(h.Of, 1)) }

// sigma is the standard error of what is seen.
func (h *handed) sigma() float64 { return math.Sqrt(h.Truth * (1 - h.Truth) / float64(max(h.Of, 1))) }

func (h *handed) String() string {
	return fmt.Sprintf("handing over takes %.4f of the CPU time and has %.4f of %d samples (%+.1f sigma)", h.Truth,
		h.seen(), h.Of, (h.seen()-h.Truth)/h.sigma())
}

// add puts two together: what is true of each run counts by its samples.
func (h handed) add(more handed) handed {
	if of := h.Of + more.Of; of > 0 {
		h.Truth = (h.Truth*float64(h.Of) + more.Truth*float64(more.Of)) / float64(of)
	}
	h.Hand, h.Of, h.sleeps = h.Hand+more.Hand, h.Of+more.Of, h.sleeps+more.sleeps
	return h
}

// handOverSum adds a run to those that are kept, and tells their sum.
func handOverSum(t testing.TB, name string, run handed) {
	file := os.Getenv("GOPROF_HANDOVER_KEEP")
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run.Case = name
	line, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	var sum handed
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var one handed
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if one.Case == name {
			sum = sum.add(one)
		}
	}
	t.Logf("%s, all runs: %v", name, &sum)
}
