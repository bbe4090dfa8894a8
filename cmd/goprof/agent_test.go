//go:build linux

package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/profile/batch"
)

// TestReloadSaysWhatItDoesNotTake: if a server was changed in the file, a reload says that it does not take the
// change.
func TestReloadSaysWhatItDoesNotTake(t *testing.T) {
	old := config.Default()
	old.To.OTLP = "http://a"
	for want, change := range map[string]func(*config.Config){
		"": func(c *config.Config) { c.Rate = 7 },
		"the new configuration has other destinations: the old ones hold until the agent is started again": func(
			c *config.Config) {
			c.To.OTLP = "http://b"
		},
		"the new configuration has other listen, other files: the old ones hold until the agent is started again": func(
			c *config.Config) {
			c.Listen, c.Files.Dir = "127.0.0.1:1", "d"
		},
		"the new configuration has other destinations: the old ones hold until the agent is started again, and " +
			`the agent would not start: --otlp: "ftp://b": no way to send begins with "ftp": http://HOST:PORT, https://, ` +
			"grpc:// or grpcs://": func(c *config.Config) { c.To.OTLP = "ftp://b" },
	} {
		c := old
		change(&c)
		if got := staysAsItWas(&c, &old); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// TestOutletsHaveOneUser: an agent notices that another agent uses its files or its spool, so that it can take over.
// Batches wait until the outlets are free.
func TestOutletsHaveOneUser(t *testing.T) {
	for name, of := range map[string]func(*config.Config, string){
		"files": func(c *config.Config, dir string) { c.Files.Dir = dir },
		"spool": func(c *config.Config, dir string) { c.To.OTLP, c.To.Spool = "http://127.0.0.1:1", dir },
	} {
		c := config.Default()
		of(&c, t.TempDir())
		say := func(string) {}
		first, next := &outlets{say: say}, &outlets{say: say}
		if err := first.connect(&c); err != nil {
			t.Fatal(err)
		}
		if err := next.connect(&c); !inUse(err) {
			t.Errorf("%s: %v", name, err)
		}
		next.offer(&batch.Batch{})
		first.close()
		if err := next.connect(&c); err != nil || len(next.waiting) > 0 {
			t.Errorf("%s: %v, %d batches wait", name, err, len(next.waiting))
		}
		next.close()
	}
}

// TestListen: two agents listen at one port if the second one takes over. Otherwise they do not.
func TestListen(t *testing.T) {
	first, err := listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	at := first.Addr().String()
	if l, err := listen(at, false); err == nil {
		l.Close()
		t.Error("two that know nothing of each other listen at one port")
	}
	next, err := listen(at, true)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

// TestLabels: Go's quotes escape characters that Prometheus' text format does not. Such an escape would make the
// whole page unreadable.
func TestLabels(t *testing.T) {
	name := "otlp http://a\u202e\\\"\n"
	if got, want := labelText.Replace(name), "otlp http://a\u202e"+`\\\"\n`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTakeOverInterrupted: Ctrl-C while the other agent is asked is no failure. It withdraws the question.
func TestTakeOverInterrupted(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, ok, err := askToEnd(ctx, dirs, func(text string) { t.Errorf("it says %q", text) })
	if ok || err != nil {
		t.Errorf("ok %v, %v", ok, err)
	}
	for _, dir := range dirs {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the folder: %v, %v", left, err)
		}
	}
}

// TestExamplesFitTheUnit: what the examples write lies where the unit for systemd permits an agent to write.
func TestExamplesFitTheUnit(t *testing.T) {
	unit, err := os.ReadFile("../../scripts/agent/goprof-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	may := regexp.MustCompile(`(?m)^ReadWritePaths=(\S+)$`).FindSubmatch(unit)
	page, err := os.ReadFile("../../docs/agent.md")
	if err != nil || may == nil {
		t.Fatalf("%v, %s", err, may)
	}
	said := regexp.MustCompile(`--(?:files|snap-dir|spool) (/\S+)`).FindAllStringSubmatch(agentExample+string(page), -1)
	if len(said) < 6 {
		t.Errorf("only %q", said)
	}
	for _, one := range said {
		if !strings.HasPrefix(one[1]+"/", string(may[1])+"/") {
			t.Errorf("%s is not below %s", one[0], may[1])
		}
	}
}

// TestDeeds: an agent that took next to no samples, because it may begin no stop, says so.
func TestDeeds(t *testing.T) {
	const why = "500 looks were put off or left out"
	for samples, wanted := range map[int64]bool{0: true, 1000: false} {
		text := agentEnded(&agent.Counts{Found: 1, Samples: samples, LeftOut: 500}, time.Second)
		if strings.Contains(text, why) != wanted {
			t.Errorf("%d samples: %s", samples, text)
		}
	}
}
