//go:build linux

package examine

import (
	"errors"
	"time"

	"goprof/process"
	"goprof/session"
	"goprof/triage"
)

// dumpPools adds to the last dump what is known of pools.
func (x *examination) dumpPools() error {
	d := &x.evidence.Dumps[len(x.evidence.Dumps)-1]
	d.Took = time.Since(d.At)
	d.Opened, d.Accepted = x.opened.opened, x.opened.accepted
	x.readChildren(d.Threads)
	var err error
	if d.Pools, err = x.session.Pools(); err != nil {
		return err
	}
	return x.dumpVirtual(d)
}

// dumpVirtual adds the virtual threads that no carrier runs. There may be very many of them. So the first dump and the
// last have them, which is enough to see which of them stand still.
func (x *examination) dumpVirtual(d *triage.Dump) error {
	if !x.session.HasVirtual() || len(x.evidence.Dumps) == 2 {
		return nil
	}
	threads, _, err := x.session.DumpVirtual(session.DumpOptions{})
	switch {
	case errors.Is(err, process.ErrSilent), errors.Is(err, process.ErrGone):
		return err
	case err != nil && !errors.Is(err, session.ErrNoVirtual):
		d.VirtualErr = err.Error()
	}
	d.Virtual = threads
	return nil
}
