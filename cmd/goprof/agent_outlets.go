//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
	"goprof/output/batchdir"
	"goprof/output/folderlock"
	"goprof/profile/batch"
)

// outlets are where an agent's batches go: files, and servers. Batches wait until the outlets are open.
type outlets struct {
	say   func(string)
	names *nameless

	mu      sync.Mutex
	open    bool
	files   *batchdir.Dir
	to      *sending
	waiting []*batch.Batch
	dropped int64
}

// mostHeld bounds how many batches wait until the agent that is replaced has closed its outlets.
const mostHeld = 2048

// connect opens what the configuration names. An error is for the user. errors.As finds folderlock.InUse in it.
func (o *outlets) connect(c *config.Config) error {
	to, err := openSending(&c.To, o.say)
	if err != nil {
		return err
	}
	var files *batchdir.Dir
	if c.Files.Dir != "" {
		if files, err = batchdir.New(batchdir.Options{Dir: c.Files.Dir, JFR: c.Files.JFR, MaxBytes: c.Files.MaxBytes,
			MaxFiles: c.Files.MaxCount, Tell: o.say}); err != nil {
			to.close(o.say)
			return outputFailed(err)
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

// offer takes a batch, and does not wait.
func (o *outlets) offer(b *batch.Batch) {
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

// give gives a batch to files and to servers. Relabelling is for servers. Its rules see the names, so names are taken
// out after it once more.
func (o *outlets) give(b *batch.Batch) {
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

func (o *outlets) close() {
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

func (o *outlets) metrics(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	oneMetric(w, "held", "gauge", "Batches that wait for the agent from which this one takes over.", len(o.waiting))
	oneMetric(w, "held_dropped_total", "counter", "Batches for which there was no room then.", o.dropped)
	o.to.metrics(w)
	fileMetrics(w, o.files)
}

func inUse(err error) bool { return errors.As(err, new(*folderlock.InUse)) }

// listen opens the port for metrics. An agent that takes over listens there beside the other one (SO_REUSEPORT, which
// the kernel permits to the same user). Two agents that know nothing of each other must not share a port. So an agent
// that does not take over tries first whether the port is free.
func listen(at string, takesOver bool) (net.Listener, error) {
	if !takesOver {
		alone, err := net.Listen("tcp", at)
		if err != nil {
			return nil, cannotListen(at, err)
		}
		at = alone.Addr().String()
		alone.Close()
	}
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var refused error
		err := c.Control(func(fd uintptr) {
			refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, refused)
	}}
	l, err := shared.Listen(context.Background(), "tcp", at)
	if err != nil {
		return nil, cannotListen(at, err)
	}
	return l, nil
}

func cannotListen(at string, err error) error {
	return &exit.Error{Code: exit.General, What: "cannot listen at " + at, Why: err.Error(),
		Remedy: "another port, or no --listen"}
}
