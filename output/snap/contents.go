package snap

import (
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/output"
)

// Contents is the table of contents.
type Contents struct {
	Goprof    string    `json:"goprof"` // its version
	PID       int       `json:"pid"`
	MainClass string    `json:"main_class"`
	Host      string    `json:"host"`
	Start     time.Time `json:"start"`
	Took      int64     `json:"took_ns"`
	Redacted  bool      `json:"redacted"`
	Parts     []Part    `json:"parts"`
}

// State is whether a part was written, and if not, why.
type State string

const (
	Kept    State = "kept"    // its files are there
	Partial State = "partial" // they are there, but not complete
	None    State = "none"    // it does not exist, such as a crash file
	Missing State = "missing" // it could not be read
)

// Part is one part of a snap: the result of one look at the JVM or at its files.
type Part struct {
	Name  string   `json:"name"`
	What  string   `json:"text"`
	State State    `json:"state"`
	Why   string   `json:"why"` // for states other than Kept; for Kept, the main finding, such as a deadlock
	Code  int      `json:"exit_code"`
	Files []string `json:"files"`
	Notes []string `json:"notes"` // goprof's messages while it made the part
}

// Lacking returns the parts that are missing or incomplete.
func (c *Contents) Lacking() (parts []Part) {
	for _, p := range c.Parts {
		if p.State == Missing || p.State == Partial {
			parts = append(parts, p)
		}
	}
	return parts
}

// Names of files in the zip: its tables, and the recording.
const (
	Recording    = "recording.jfr"
	ContentsFile = "contents.json"
	ReadmeFile   = "README.txt"
)

func (c *Contents) writeReadme(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A snap of process %d (%s)", c.PID, output.CleanName(c.MainClass))
	if c.Host != "" {
		fmt.Fprintf(&b, " on %s", output.Printable(c.Host))
	}
	fmt.Fprintf(&b, ", taken at %s within %v, by goprof %s.\n", c.Start.UTC().Format(time.RFC3339),
		time.Duration(c.Took).Round(100*time.Millisecond), output.Printable(c.Goprof))
	if c.Redacted {
		b.WriteString("Names were replaced by pseudonyms.\n")
	}
	b.WriteString("\ngoprof triage, dump, locks, heap, memory, flame and report take this file in place of a PID or a " +
		"recording.\n\n")
	for i := range c.Parts {
		p := &c.Parts[i]
		fmt.Fprintf(&b, "%-8s %-10s %s\n", p.State, p.Name, p.What)
		for _, name := range p.Files {
			fmt.Fprintf(&b, "%-8s %-10s   %s\n", "", "", name)
		}
		for _, line := range append([]string{p.Why}, p.Notes...) {
			if line != "" {
				fmt.Fprintf(&b, "%-8s %-10s   %s\n", "", "", output.Printable(line))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
