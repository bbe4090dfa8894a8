//go:build linux

package outlets

import (
	"testing"

	"goprof/agent/config"
	"goprof/profile/batch"
)

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
		first, next := New("", nil, say), New("", nil, say)
		if err := first.Connect(&c); err != nil {
			t.Fatal(err)
		}
		if err := next.Connect(&c); !InUse(err) {
			t.Errorf("%s: %v", name, err)
		}
		next.Offer(&batch.Batch{})
		first.Close()
		if err := next.Connect(&c); err != nil || len(next.waiting) > 0 {
			t.Errorf("%s: %v, %d batches wait", name, err, len(next.waiting))
		}
		next.Close()
	}
}

// TestLabels: Go's quotes escape characters that Prometheus' text format does not. Such an escape would make the
// whole page unreadable.
func TestLabels(t *testing.T) {
	name := "otlp http://a\u202e\\\"\n"
	if got, want := labelText.Replace(name), "otlp http://a\u202e"+`\\\"\n`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
