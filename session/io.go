//go:build linux

package session

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/look"
)

// Files and peers: the kernel counts calls by descriptor (sampler/events/io.go). This file finds the name of each
// descriptor, and adds up the counts by name.

const (
	// defaultIOEvery is the mean time between two samples, in nanoseconds.
	defaultIOEvery = 5_000_000
	// mostTargets bounds the names with sums of their own. mostNamed bounds the descriptors whose names are kept.
	mostTargets, mostNamed = 1 << 14, 1 << 16
	// socketsEvery bounds how often an unknown socket may cause the list of all sockets to be read. The pause between two
	// readings is at least socketsShare times the time of one reading.
	socketsEvery, socketsShare = 20 * time.Millisecond, 20
	// mostSums bounds the sums in the account.
	mostSums = 2000
)

// ioBook is what is known of the descriptors of a process.
type ioBook struct {
	pid     int
	ledger  *events.Ledger
	notes   []string
	named   map[uint64]namedFile // by the number of a File
	ended   map[uint64]namedFile // Files that have ended: some of their samples may come later
	targets map[profile.IOTarget]*ioTarget
	sockets map[uint64]procfs.Socket // by inode
	listens map[uint16]bool          // ports
	readAt  time.Time
	readFor time.Duration
	done    bool
	sum     profile.IO
}

type namedFile struct {
	*ioTarget
	sort events.FileSort
	link string
}

// noSocket is the name of a socket that is in no list, or whose peer no list shows.
const noSocket = "[socket]"

type ioTarget struct {
	profile.IOTarget
	ops [profile.NumIOOp]profile.IOSum
}

// tryIO makes the plan of the event. Without getaddrinfo, name look-ups are not seen.
func (s *Session) tryIO(plan *EventPlan, every uint64) error {
	o := &events.IO{Ledger: events.NewLedger()}
	e := events.Event{Name: plan.Name, Interval: every, IO: o}
	if why := s.findLookup(&e); why != "" {
		plan.Note = "look-ups of names are not seen: " + why
		o.Lookup, o.Looked = nil, nil
	}
	plan.list, plan.parts = []events.Event{e}, []eventPart{{of: plan.kind(), kind: profile.StateFrame, leaf: leafOfCall}}
	return events.TryIO()
}

// findLookup adds probes to the event at the beginning and at each return of getaddrinfo. It returns why name look-ups
// are not seen, or "" if the probes were added.
func (s *Session) findLookup(e *events.Event) string {
	for _, in := range []string{libc, "ld-musl"} {
		found, err := s.Process.Functions(in, "getaddrinfo")
		if err != nil || len(found) == 0 {
			continue
		}
		returns, leaves, err := s.Process.Ends(found[0])
		if err == nil && len(leaves) > 0 {
			err = process.ErrNoEnds
		}
		if err == nil {
			err = s.addProbes(e, &e.IO.Lookup, []process.Function{s.Process.Enter(found[0])})
		}
		if err == nil {
			err = s.addProbes(e, &e.IO.Looked, returns)
		}
		if err != nil {
			return strings.TrimPrefix(err.Error(), "process: ")
		}
		return ""
	}
	return "the process has no getaddrinfo"
}

func newIOBook(plan *EventPlan, pid int) *ioBook {
	for i := range plan.list {
		if o := plan.list[i].IO; o != nil {
			b := &ioBook{pid: pid, ledger: o.Ledger, named: map[uint64]namedFile{},
				ended: map[uint64]namedFile{}, targets: map[profile.IOTarget]*ioTarget{}}
			if len(o.Lookup) == 0 {
				b.notes = append(b.notes, plan.Note)
			}
			b.readSockets()
			return b
		}
	}
	return nil
}

// SetMin leaves out samples of calls that are shorter than least.
func (p *EventPlan) SetMin(least time.Duration) {
	for i := range p.list {
		if o := p.list[i].IO; o != nil && least > 0 {
			o.Min = least
			p.list[i].Interval = 1
		}
	}
}

// takeNotes reads the engine's notes since the last call.
func (b *ioBook) takeNotes() {
	notes := b.ledger.Take()
	for i := range notes {
		n := &notes[i]
		t := b.target(&n.File, n.Link)
		if n.Ended {
			t.add(&n.File)
			b.end(n.File.ID)
		}
	}
}

// end moves a File that has ended to ended. Files in ended are dropped first.
func (b *ioBook) end(id uint64) {
	if len(b.ended) >= mostNamed {
		clear(b.ended)
	}
	b.ended[id] = b.named[id]
	delete(b.named, id)
}

// targetOf returns the target of a File by the File's number. It is nil if it is not known.
func (b *ioBook) targetOf(id uint64) *ioTarget {
	if known, ok := b.named[id]; ok {
		return known.ioTarget
	}
	return b.ended[id].ioTarget
}

// target returns the target of a File. link is the link of the File's descriptor, empty if it is not known. The results
// of open, connect and accept are preferred to a link. A socket without a name is looked up again.
func (b *ioBook) target(f *events.File, link string) *ioTarget {
	known := b.named[f.ID]
	link = cmp.Or(link, known.link)
	if known.ioTarget != nil && known.sort >= f.Sort && known.link == link && known.Name != noSocket {
		return known.ioTarget
	}
	if len(b.named) >= mostNamed {
		clear(b.named)
	}
	known = namedFile{b.of(b.name(f, link)), f.Sort, link}
	b.named[f.ID] = known
	return known.ioTarget
}

func (b *ioBook) of(name profile.IOTarget) *ioTarget {
	if t := b.targets[name]; t != nil {
		return t
	}
	if len(b.targets) >= mostTargets {
		name = profile.IOTarget{Kind: profile.IOOther, Name: "[others]"}
		if t := b.targets[name]; t != nil {
			return t
		}
	}
	t := &ioTarget{IOTarget: name}
	b.targets[name] = t
	return t
}

// name returns what a descriptor leads to: a file, a looked-up name, or the peer of a connection. If f does not have
// it, the descriptor's link in /proc does.
func (b *ioBook) name(f *events.File, link string) profile.IOTarget {
	switch name, whole := f.Name(); f.Sort {
	case events.FileOpened:
		switch {
		case !whole:
			name += "..."
		case strings.HasPrefix(name, "/"):
			name = path.Clean(name)
		case f.Folder == unix.AT_FDCWD:
			folder, err := os.Readlink("/proc/" + strconv.Itoa(b.pid) + "/cwd")
			if err != nil {
				break
			}
			name = path.Join(folder, name)
		}
		return profile.IOTarget{Kind: profile.IOFile, Name: name}
	case events.FileLookup:
		return profile.IOTarget{Kind: profile.IOName, Name: cmp.Or(name, "[any address]")}
	case events.FileConnected, events.FileAccepted:
		peer, local := f.Peer()
		if !peer.IsValid() {
			return profile.IOTarget{Kind: profile.IOPeer, Name: strings.TrimSpace("unix " + local)}
		}
		if f.Sort == events.FileAccepted {
			return profile.IOTarget{Kind: profile.IOClient, Name: peer.Addr().String()}
		}
		return profile.IOTarget{Kind: profile.IOPeer, Name: peer.String(), Addr: peer}
	}
	return b.nameOfLink(link)
}

// nameOfLink returns what a link in /proc/PID/fd means.
func (b *ioBook) nameOfLink(link string) profile.IOTarget {
	inode, isSocket := procfs.SocketInode([]byte(link))
	switch {
	case link == "":
		return profile.IOTarget{Kind: profile.IOOther, Name: profile.IOUnknown}
	case isSocket:
		return b.socket(inode)
	case strings.HasPrefix(link, "/"):
		return profile.IOTarget{Kind: profile.IOFile, Name: link}
	}
	kind, rest, _ := strings.Cut(link, ":")
	if kind == "anon_inode" {
		kind = strings.Trim(rest, "[]")
	}
	return profile.IOTarget{Kind: profile.IOOther, Name: "[" + kind + "]"}
}

// socket finds a socket in the lists of the process's network namespace.
func (b *ioBook) socket(inode uint64) profile.IOTarget {
	s, ok := b.sockets[inode]
	if !ok && time.Since(b.readAt) >= max(socketsEvery, socketsShare*b.readFor) {
		b.readSockets()
		s, ok = b.sockets[inode]
	}
	switch {
	case !ok:
		return profile.IOTarget{Kind: profile.IOOther, Name: noSocket}
	case s.Remote.Port() == 0:
		return profile.IOTarget{Kind: profile.IOListen, Name: s.Local.String()}
	case b.listens[s.Local.Port()]:
		return profile.IOTarget{Kind: profile.IOClient, Name: s.Remote.Addr().String()}
	}
	return profile.IOTarget{Kind: profile.IOPeer, Name: s.Remote.String(), Addr: s.Remote}
}

const maxSockets = 1 << 17

func (b *ioBook) readSockets() {
	began := time.Now()
	b.sockets, b.listens = map[uint64]procfs.Socket{}, map[uint16]bool{}
	procfs.EachInternet(b.pid, func(s procfs.Socket) {
		if len(b.sockets) >= maxSockets || s.Inode == 0 {
			return
		}
		b.sockets[s.Inode] = s
		if s.State == procfs.Listening {
			b.listens[s.Local.Port()] = true
		}
	})
	b.readAt = time.Now()
	b.readFor = b.readAt.Sub(began)
}

func (t *ioTarget) add(f *events.File) {
	for kind := range f.Sums {
		s := &f.Sums[kind]
		op := &t.ops[opOf(events.IOKind(kind), f.Sort == events.FileLookup)]
		op.Calls, op.Bytes = op.Calls+int64(s.Calls), op.Bytes+int64(s.Bytes)
		op.Took, op.Failed = op.Took+time.Duration(s.Nanos), op.Failed+int64(s.Failed)
	}
}

func opOf(kind events.IOKind, lookup bool) profile.IOOp {
	if lookup && kind == events.IOOpen {
		return profile.IOLookup
	}
	return profile.IOOp(kind) // both enumerations begin alike
}

// callOf describes the call of a sample, from the data that the BPF program has sent with it. ok is false if the data
// cannot be read.
func (b *ioBook) callOf(data []byte) (c profile.IOCall, ok bool) {
	d, ok := events.ReadCall(data)
	if !ok {
		return c, false
	}
	b.takeNotes()
	t := b.targetOf(d.ID)
	if t == nil || t.Name == profile.IOUnknown {
		if f, still := b.ledger.Find(d.FD, d.ID); still {
			t = b.target(&f, "")
		}
	}
	if t == nil {
		t = b.of(profile.IOTarget{Kind: profile.IOOther, Name: profile.IOUnknown})
	}
	c = profile.IOCall{Op: opOf(d.Kind, t.Kind == profile.IOName), Target: t.IOTarget, Took: time.Duration(d.Took),
		Failed: d.Result < 0}
	if d.Kind == events.IORead || d.Kind == events.IOWrite {
		c.Bytes = max(d.Result, 0)
		c.End = d.Kind == events.IORead && d.Result == 0
	}
	return c, true
}

func leafOfCall(r *eventReader, hit *look.Look) string {
	if r.io == nil {
		return ""
	}
	c, ok := r.io.callOf(hit.Event.Data)
	if !ok {
		return ""
	}
	r.call = c
	return profile.IOLabel(c.Op, c.Target.Name)
}

// endIO adds up the counts of descriptors that are still open.
func (r *recording) endIO() {
	b := r.io()
	if b == nil {
		return
	}
	b.takeNotes()
	if b.ledger.Over.Load() == 0 {
		return // either the sampler hangs and uses the maps, or it has not begun and has closed them
	}
	defer b.ledger.Close()
	b.done = true
	b.ledger.Rest(func(f *events.File) { b.target(f, "").add(f) })
	b.ledger.Pending(func(p events.Pending) {
		t := b.targetOf(p.ID)
		if t == nil {
			t = b.of(profile.IOTarget{Kind: profile.IOOther, Name: profile.IOUnknown})
		}
		op := &t.ops[opOf(p.Kind, false)]
		if t.Kind == profile.IOListen {
			op = &t.ops[profile.IOAccept] // a wait for a listening socket is a wait in accept
		}
		op.Pending, op.Pended = op.Pending+1, op.Pended+time.Duration(p.Nanos)
	})
	b.account()
}

// account makes the account of all calls: their sums by target and operation, the longest time first. It also notes
// which calls are in no sum, and why.
func (b *ioBook) account() {
	var all []profile.IOSum
	for _, t := range b.targets {
		for op := range t.ops {
			if s := t.ops[op]; s.Calls+s.Pending > 0 {
				s.Kind, s.Target, s.Op = t.Kind, t.Name, profile.IOOp(op).String()
				all = append(all, s)
			}
		}
	}
	sort.Slice(all, func(i, j int) bool {
		x, y := &all[i], &all[j]
		if x.Took+x.Pended != y.Took+y.Pended {
			return x.Took+x.Pended > y.Took+y.Pended
		}
		return x.Target+x.Op < y.Target+y.Op
	})
	l := &b.ledger.IOLost
	b.sum = profile.IO{Sums: all[:min(len(all), mostSums)], Tries: int64(l.Tries), Unopened: int64(l.Unopened),
		Notes: b.notes}
	var rest events.IOCalls
	for i := len(b.sum.Sums); i < len(all); i++ {
		rest.Calls, rest.Nanos = rest.Calls+uint64(all[i].Calls), rest.Nanos+uint64(all[i].Took)
	}
	for _, k := range []struct {
		why string
		of  events.IOCalls
	}{{"of files and peers that are not listed", rest}, {"no room to count by descriptor", l.Full},
		{"the descriptor was closed meanwhile", l.Closed},
		{"goprof was late to read the sums of closed descriptors", l.QueueFull},
		{"waits for several descriptors at once", l.Polls}} {
		if k.of.Calls > 0 {
			b.sum.Lost = append(b.sum.Lost, profile.IOLost{Why: k.why, Calls: int64(k.of.Calls),
				Took: time.Duration(k.of.Nanos)})
		}
	}
	if l.Pushed > 0 {
		b.sum.Notes = append(b.sum.Notes, fmt.Sprintf("%d sums of closed descriptors are missing: goprof was too slow",
			l.Pushed))
	}
	if l.Ranges > 0 {
		b.sum.Notes = append(b.sum.Notes,
			"the program has called close_range: what is opened after it may have another name here")
	}
}
