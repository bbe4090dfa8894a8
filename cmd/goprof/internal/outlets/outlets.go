//go:build linux

// Package outlets delivers an agent's batches to files and servers. An agent that takes over from another one opens its
// outlets late, and batches wait until then. Names that must be hidden are removed from each batch before it is
// delivered. A server that does not answer delays nothing, because package ship queues its batches.
package outlets

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/batchdir"
	"goprof/output/folderlock"
	"goprof/profile/batch"
	"goprof/profile/redact"
)

// Outlets are files and servers. Batches wait until the outlets are open.
type Outlets struct {
	version string
	say     func(string)
	names   *nameless

	mu      sync.Mutex
	open    bool
	files   *batchdir.Dir
	to      *sending
	waiting []*batch.Batch
	dropped int64
}

// mostHeld limits how many batches wait until the replaced agent has closed its outlets.
const mostHeld = 2048

// New makes closed outlets. by removes names; if it is nil, all names may be shown. say receives messages for the
// operator.
func New(version string, by *redact.Redactor, say func(string)) *Outlets {
	o := &Outlets{version: version, say: say}
	if by != nil {
		o.names = &nameless{by: by, known: by.Functions()}
	}
	return o
}

// Text removes names from the name of a process, or from a message about it.
func (o *Outlets) Text(of string) string { return o.names.text(of) }

// Connect opens the configured outlets. An error is for the user, unless InUse applies.
func (o *Outlets) Connect(c *config.Config) error {
	to, err := openSending(&c.To, o.version, o.say)
	if err != nil {
		return err
	}
	var files *batchdir.Dir
	if c.Files.Dir != "" {
		if files, err = batchdir.New(batchdir.Options{Dir: c.Files.Dir, JFR: c.Files.JFR, MaxBytes: c.Files.MaxBytes,
			MaxFiles: c.Files.MaxCount, Tell: o.say}); err != nil {
			to.close(o.say)
			return exit.CannotWrite(err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files, o.to, o.open = files, to, true
	for _, b := range o.waiting {
		o.give(b)
	}
	o.waiting = nil
	return nil
}

// Offer queues a batch. It does not block.
func (o *Outlets) Offer(b *batch.Batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.open:
		o.give(b)
	case len(o.waiting) < mostHeld:
		o.waiting = append(o.waiting, b)
	default:
		o.dropped++
	}
}

// give delivers a batch to files and servers. Servers get relabelled batches. The rules see the names, so names are
// removed again after relabelling.
func (o *Outlets) give(b *batch.Batch) {
	shown := o.names.batch(b)
	if o.files != nil {
		o.files.Offer(shown)
	}
	if o.to == nil {
		return
	}
	sent := *shown
	whose, keep := o.to.rules.Apply(b.Resource)
	if sent.Resource = o.names.whose(whose); keep {
		o.to.shipper.Offer(&sent)
	}
}

// Close closes files and servers. Undelivered batches stay in the spool.
func (o *Outlets) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.waiting); n > 0 {
		o.say(fmt.Sprintf("%d batches are lost: the folder did not become free", n))
	}
	if o.files != nil {
		o.files.Close()
	}
	o.to.close(o.say)
	for _, text := range o.lines() {
		o.say(text)
	}
}

// Metrics writes counters of batches in Prometheus' text format.
func (o *Outlets) Metrics(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	agent.WriteMetrics(w,
		agent.Gauge("held", "Batches that wait for the agent from which this one takes over.", len(o.waiting)),
		agent.Counter("held_dropped_total", "Batches for which there was no room then.", o.dropped))
	o.to.metrics(w)
	fileMetrics(w, o.files)
}

// InUse reports whether another agent uses the folder, and so must close its outlets first.
func InUse(err error) bool { return errors.As(err, new(*folderlock.InUse)) }

// lines returns the messages at the end.
func (o *Outlets) lines() (all []string) {
	if o.files != nil {
		st := o.files.Stats()
		all = append(all, fmt.Sprintf("files: %s written, %s not, %s old ones removed; %s are there",
			output.Grouped(st.Written), output.Grouped(st.Dropped), output.Grouped(st.Removed), output.Size(uint64(st.Bytes))))
	}
	if o.to != nil {
		stats := o.to.shipper.Stats()
		for i := range stats {
			st := &stats[i]
			all = append(all, fmt.Sprintf("%s: %s of %s batches sent, %s refused, %s dropped, %s wait", st.Name,
				output.Grouped(st.Sent.Batches), output.Grouped(st.Offered.Batches+st.Recovered.Batches),
				output.Grouped(st.Refused.Batches), output.Grouped(st.Dropped.Batches), output.Grouped(st.Queued.Batches)))
		}
	}
	return all
}

func fileMetrics(w io.Writer, files *batchdir.Dir) {
	if files == nil {
		return
	}
	st := files.Stats()
	agent.WriteMetrics(w,
		agent.Counter("files_offered_total", "Batches for files.", st.Offered),
		agent.Counter("files_written_total", "Files that were written.", st.Written),
		agent.Counter("files_dropped_total", "Batches that did not become a file.", st.Dropped),
		agent.Counter("files_failed_total", "Of these, those that could not be written.", st.Failed),
		agent.Counter("files_removed_total", "Old files that were removed for want of room.", st.Removed),
		agent.Gauge("files", "Files that are there.", st.Files),
		agent.Gauge("files_bytes", "What they take.", st.Bytes))
}
