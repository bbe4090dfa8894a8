package triage

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// TestWhyCollected: gc-busy says why the JVM collected, and what mends that.
func TestWhyCollected(t *testing.T) {
	gc := []string{"java.lang.Runtime.gc", "java.lang.System.gc"}
	for name, c := range map[string]struct {
		cause    string
		stack    []string // leaf first
		evidence string
		cure     string
	}{
		"asked": {"System.gc()", append(gc, "shop.Cart.tidyUp"), "it is asked for in shop.Cart.tidyUp",
			"DisableExplicitGC"},
		"direct memory": {"System.gc()", append(gc, "java.nio.Bits.reserveMemory", "java.nio.DirectByteBuffer.<init>",
			"shop.File.read"), "direct memory", "MaxDirectMemorySize"},
		"metaspace":  {"Metadata GC Threshold", nil, "the metadata of classes grew", "MetaspaceSize"},
		"humongous":  {"G1 Humongous Allocation", nil, "half a region", "G1HeapRegionSize"},
		"full":       {"Allocation Failure", nil, "by the JVM's own word: Allocation Failure", ""},
		"under way":  {"", nil, "the program asks for it", "DisableExplicitGC"},
		"not known ": {"No GC", nil, "", ""},
	} {
		p := healthy()
		diseases[profile.GCBusy](p)
		for i, r := range p.Readings {
			r.JVM.GC.Collections, r.JVM.GC.LastCause = known(uint64(i)), known(c.cause)
			if r.JVM.GC.Cause = known("No GC"); c.cause == "" {
				r.JVM.GC.Cause, r.JVM.GC.LastCause = known("System.gc()"), known("No GC")
			}
		}
		if c.stack != nil {
			p.rest(1, 50, "in VM", c.stack...)
		}
		f := Judge(p.Evidence).Findings[0]
		if !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) || !strings.Contains(f.Next, c.cure) ||
			c.cure == "" && strings.Contains(f.Next, "cure") {
			t.Errorf("%s: %q, %s", name, f.Evidence, f.Next)
		}
	}
}

// TestAskedForCollections: a program that asks for a collection each second is told so, however short they are. One
// that asks for it now and then is not, and neither is one whose heap fills up as often.
func TestAskedForCollections(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		every int // readings
		found bool
	}{
		"each second":    {"System.gc()", 1, true},
		"a tool":         {"Heap Inspection Initiated GC", 1, true},
		"now and then":   {"System.gc()", 5, false},
		"the heap fills": {"Allocation Failure", 1, false},
		"large objects":  {"G1 Humongous Allocation", 1, false},
	} {
		p := healthy()
		for i, r := range p.Readings {
			r.JVM.GC.Collections, r.JVM.GC.LastCause = known(uint64(i/c.every)), known(c.cause)
			r.JVM.GC.Cause = known("No GC")
		}
		got := Judge(p.Evidence)
		if found := slices.Equal(ids(got), []profile.FindingID{profile.GCBusy}); found != c.found {
			t.Errorf("%s: %+v", name, got)
		} else if c.found && !strings.HasPrefix(got.Findings[0].Claim, "Collections of the heap are asked for all the time") {
			t.Errorf("%s: %s", name, got.Findings[0].Claim)
		}
	}
}
