//go:build linux

package examine

import (
	"errors"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/triage"
)

// dumpPools adds the state of pools to the last dump.
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

// dumpVirtual adds the virtual threads without a carrier. There may be very many, so only the first dump and the last
// have them. That is enough to see which of them stand still.
func (x *examination) dumpVirtual(d *triage.Dump) error {
	if !x.session.HasVirtual() || len(x.evidence.Dumps) == 2 {
		return nil
	}
	var err error
	d.Virtual, d.VirtualErr, err = x.virtual()
	return err
}

func (x *examination) virtual() (threads []profile.ThreadDump, unread string, err error) {
	threads, _, err = x.session.DumpVirtual(session.DumpOptions{})
	switch {
	case errors.Is(err, process.ErrSilent), errors.Is(err, process.ErrGone):
		return nil, "", err
	case err != nil && !errors.Is(err, session.ErrNoVirtual):
		unread = err.Error()
	}
	return threads, unread, nil
}

// earlier is the time between the extra reading of virtual threads and the end.
const earlier = readEvery

// sumEarlier reads the frames of virtual threads shortly before the last dump, if there are threads to compare.
func (x *examination) sumEarlier(passed time.Duration) error {
	e := x.evidence
	if e.Earlier.Was != nil || passed < x.opt.Duration-earlier || len(e.Dumps) == 0 || len(e.Dumps[0].Virtual) == 0 {
		return nil
	}
	threads, _, err := x.virtual()
	e.Earlier = triage.FrameSums{At: time.Now(), Was: map[uint64]uint64{}}
	for i := range threads {
		e.Earlier.Was[threads[i].Virtual.ID] = threads[i].FrameSum
	}
	return err
}
