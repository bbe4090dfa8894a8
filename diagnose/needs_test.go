//go:build linux

package diagnose

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/sampler/events"
	"goprof/sampler/offcpu"
	"goprof/sampler/ring"
	"goprof/session"
)

var update = flag.Bool("update", false, "write the table of needs in docs/evidence/support.md anew")

// TestNeedsInDocs holds the table in docs/evidence/support.md to the code.
func TestNeedsInDocs(t *testing.T) {
	const page, begin, end = "../docs/evidence/support.md", "<!-- needs: diagnose/needs.go -->\n", "<!-- /needs -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := needsTable()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("the table in %s is not the code's. go test ./diagnose -run TestNeedsInDocs -update writes it anew", page)
	}
}

// TestVersionsInDocs: a kernel that the manual speaks of stands in the table of needs.
func TestVersionsInDocs(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	kernel, found := regexp.MustCompile(`(?:before|Linux) ([4-6]\.[0-9]+)`), 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range kernel.FindAllStringSubmatch(string(b), -1) {
			if found++; !regexp.MustCompile(regexp.QuoteMeta(version[1]) + `\b`).MatchString(needsTable()) {
				t.Errorf("%s speaks of Linux %s, and no need does (diagnose/needs.go)", page, version[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d versions of kernels in the manual", found)
	}
}

// TestDoctorKnowsNeeds: each check of the machine is a need, and has its name, so that the table tells of each line.
func TestDoctorKnowsNeeds(t *testing.T) {
	known := map[string]bool{"JVMs": true}
	for _, n := range needs() {
		if known[n.name] || n.wants == "" && n.since == "" || n.tried == "" || n.lost == "" {
			t.Errorf("%+v", *n.need)
		}
		known[n.name] = true
	}
	r := Host{}.Examine(0)
	seen := map[string]bool{}
	for _, c := range r.Checks {
		if !known[c.Name] || seen[c.Name] {
			t.Errorf("%q is no need, or comes twice", c.Name)
		}
		seen[c.Name] = true
	}
	for _, n := range needs() {
		if n.check != nil && !seen[n.name] {
			t.Errorf("doctor does not tell of %q", n.name)
		}
	}
}

// TestOldKernelsAreNamed: where a kernel is too old for a need, the error says so with the table's words.
func TestOldKernelsAreNamed(t *testing.T) {
	f := newFakeProc(t)
	f.as(root())
	h := Host{Proc: f.dir}
	for _, c := range []struct {
		release string
		err     error
		why     string
	}{
		{"5.4.0-200-generic", &ring.Error{Call: "bpf", Err: unix.EINVAL}, "Linux 5.5 on, bpf_probe_read_user"},
		{"6.12.0", &ring.Error{Call: "bpf", Err: unix.EINVAL},
			"takes no BPF program that goprof needs (invalid argument)"},
		{"4.14.0", events.ErrNoUprobes, "no uprobes for perf_event_open (Linux 4.17 on, CONFIG_UPROBE_EVENTS"},
		{"6.12.0", &ring.Error{Call: "mmap", Err: ring.ErrFull}, "all that goprof allows them"},
		{"4.14.0", offcpu.ErrUnmarked, "no records of switches that distinguish waits from lost CPUs (Linux 4.17 on, perf"},
	} {
		f.write("sys/kernel/osrelease", c.release+"\n")
		if why := h.Explain(0, c.err).Why; !strings.Contains(why, c.why) {
			t.Errorf("%s, %v: %q, want %q", c.release, c.err, why, c.why)
		}
		e := session.EventError{Err: c.err}
		if h.ExplainEvent(0, &e); c.err != offcpu.ErrUnmarked && !strings.Contains(e.Why, c.why) {
			t.Errorf("%s, %v: the event's error says %q", c.release, c.err, e.Why)
		}
	}
}

// needsTable is the table of docs/evidence/support.md.
func needsTable() string {
	var b strings.Builder
	b.WriteString("| doctor's line | needs | Linux | found out by | without it |\n|---|---|---|---|---|\n")
	for _, n := range needs() {
		name := n.name
		if n.check == nil {
			name = "(" + name + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, n.wants, n.since, n.tried, n.lost)
	}
	return b.String()
}
