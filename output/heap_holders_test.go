package output

import (
	"strings"
	"testing"

	"goprof/profile"
)

// TestHeapHeldText: the first line names the leak. Missing facts have lines of their own. All small ways share one
// line.
func TestHeapHeldText(t *testing.T) {
	static := profile.HeapLink{Kind: profile.LinkStatic, Class: "com.shop.Cache", Field: "entries"}
	node := profile.HeapLink{Kind: profile.LinkField, Class: "java.util.HashMap$Node", Field: "next", Times: 3}
	path := []profile.HeapLink{node, static}
	h := &profile.HeapHeld{Growth: &profile.HeapGrowth{Part: "old", Classes: []*profile.HeapGrower{}},
		Leaks: []*profile.HeapLeak{{Path: path, Bytes: profile.HeapSlope{Rate: 1 << 20, Error: 1 << 10},
			Classes: []string{"byte[]", "com.shop.Order"},
			Allocs:  []profile.HeapAllocSite{{Class: "byte[]", Share: 0.5, Stack: []string{"a.B.c", "d.E.f"}}}}},
		Holders: []*profile.HeapHolders{{Class: "byte[]", Looked: 4096, Newer: true, Rest: 0.03, Rows: []*profile.HeapHolder{
			{Share: 0.72, Error: 0.02, Most: 0.95, Path: path, Roots: 2},
			{Share: 0.004, Path: []profile.HeapLink{{Kind: profile.LinkThread, Thread: "http-*"}}},
			{Share: 0.2, Missing: profile.NoHolder}, {Share: 0.07, Missing: profile.HolderUncertain},
			{Share: 0.006, Missing: profile.HolderFar, Path: path[:1]},
		}}}}
	var text strings.Builder
	if err := HeapHeldText(&text, h, 10); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(text.String(), "\n")
	want := "com.shop.Cache.entries (static) keeps what grows: 1 MiB +- 1 KiB a second of byte[], com.shop.Order"
	if first != want {
		t.Errorf("%q, want %q", first, want)
	}
	for _, want := range []string{"byte[] <- HashMap$Node.next (3 times) <- com.shop.Cache.entries (static)\n",
		"50.0 % of byte[] are allocated in a.B.c <- d.E.f\n", "that have come since the first reading",
		"(static) (2 of them)\n", "   share       +-   at most  held by\n", "  72.0 %    2.0 %    95.0 %  HashMap$Node.next",
		"0.4 %                     1 more ways",
		"3.0 %                     ways that are smaller still\n",
		"no holder seen in the part that was read: garbage or not read",
		"moved or changed meanwhile", "HashMap$Node.next (3 times) <- no root seen", "No class grew"} {
		if !strings.Contains(rest, want) {
			t.Errorf("%q is missing:\n%s", want, rest)
		}
	}
	h.Leaks[0].AtLeast = true
	if HeapHeldText(&text, h, 10) != nil || !strings.Contains(text.String(), ": at least 1 MiB") {
		t.Errorf("%s", text.String())
	}
	if h.Leaks = nil; HeapHeldText(&text, h, 10) != nil || !strings.Contains(text.String(), "No leak was found") {
		t.Errorf("%s", text.String())
	}
}
