package requests

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// Hold: at some time, a thread waited for a lock that another thread had, or for a peer.
type Hold struct {
	At    time.Time
	Of    profile.ThreadRef // the waiting thread
	Lock  string            // the lock's class
	Owner profile.ThreadRef
	Trace string // that the owner worked for; "": its own samples show it
	Peer  string // the other end of the connection that the thread waited for; then there is no lock
}

// wake notes the owner of the lock that a sample's thread waited for: the thread that released it last. Only recordings
// with wakers have it.
func (g *Gatherer) wake(s *profile.Sample) {
	at := s.Stack.StateAt()
	if at < 0 || s.State != profile.Blocked && s.State != profile.Parked {
		return
	}
	_, lock, _ := strings.Cut(stateOf(&s.Stack.Frames[at]), ": ")
	if s.State == profile.Parked && !strings.Contains(lock, "ReentrantLock$") {
		return // a queue, a future, a pool without work, a lock that several threads may have
	}
	g.locked = true
	above := s.Stack.Frames[:at]
	g.wakers = g.wakers || slices.ContainsFunc(above, func(f profile.Frame) bool { return profile.IsWaker(f.Func.Name) })
	for i := len(above) - 2; i >= 0; i-- {
		if profile.IsWaker(above[i].Func.Name) { // from here on: the waker of the waker
			above = above[i+1:]
			break
		}
	}
	if len(above) == 0 || s.State == profile.Parked && !slices.ContainsFunc(above, releases) {
		return
	}
	owner, ok := naming.ThreadOf(above[0].Func.Name)
	if !ok {
		return
	}
	h := Hold{At: time.Unix(0, s.At.Wall+int64(s.Span)-1), Lock: cmp.Or(lock, "a monitor"),
		Trace: s.WakerLink.TraceID(), Owner: profile.ThreadRef{TID: owner.TID, Name: strings.TrimPrefix(owner.JavaName, "?")}}
	if h.Of.TID = s.Thread.TID; s.Thread.Virtual {
		h.Of.Virtual = uint64(s.Thread.JavaID)
	}
	if owner.Virtual {
		h.Owner.Virtual = uint64(owner.JavaID)
	}
	g.woken = append(g.woken, h)
}

// releases reports whether a frame releases a lock. A thread that wakes a parked thread in another way may have
// interrupted it.
func releases(f profile.Frame) bool {
	return f.Func.Name == "java.util.concurrent.locks.AbstractQueuedSynchronizer.release"
}

// stateOf returns the text of a state's frame without brackets.
func stateOf(f *profile.Frame) string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Func.Name, "["), "]")
}

// LacksHolders reports whether threads waited for locks in a recording without wakers.
func (g *Gatherer) LacksHolders() bool { return g.locked && !g.wakers }

// who identifies a thread by its number in the kernel, or a virtual thread by its own number.
type who struct {
	tid     int
	virtual uint64
}

func whoIs(t *profile.Thread) who {
	if t.Virtual {
		return who{virtual: uint64(t.JavaID)}
	}
	return who{tid: t.TID}
}

func whoHas(t *profile.ThreadRef) who {
	if t.Virtual != 0 {
		return who{virtual: t.Virtual}
	}
	return who{tid: t.TID}
}

// Holder is a thread that had the lock that a request waited for, or the peer that it waited for.
type Holder struct {
	Lock  string
	Owner profile.ThreadRef
	Trace string // that the owner worked for at that time; "" if that is not known
	Peer  string // then there is no lock
	Times int    // number of looks that found it
}

// Holds takes the recording's facts about locks besides samples, ordered by time.
func (g *Gatherer) Holds(list []Hold) {
	g.holds = map[who][]Hold{}
	for _, h := range list {
		if h.Owner.Virtual != 0 {
			h.Owner.TID = 0
		}
		g.holds[whoHas(&h.Of)] = append(g.holds[whoHas(&h.Of)], h)
	}
}

// heldWhile counts the owners of the lock that a look's thread waited for, and the peers that it waited for.
func (b *building) heldWhile(g *Gatherer, l *look, list []Hold) {
	if !l.waits && !l.socket {
		return
	}
	for i := firstFrom(list, l.at); i < len(list) && list[i].At.UnixNano() < l.at+l.span; i++ {
		h := &list[i]
		switch {
		case (h.Peer != "") != l.socket: // the thread waits for something else by now
		case l.socket:
			b.holders[holderOf{l.part, Holder{Peer: h.Peer}}]++
		default:
			trace := cmp.Or(h.Trace, g.traceOf(whoHas(&h.Owner), h.At.UnixNano()))
			b.holders[holderOf{l.part, Holder{Lock: h.Lock, Owner: h.Owner, Trace: trace}}]++
		}
	}
}

// holderOf is a Holder during one part of a request.
type holderOf struct {
	part int32
	Holder
}

func firstFrom(list []Hold, at int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].At.UnixNano() >= at })
}

// traceOf returns the trace that a thread worked for at a given time.
func (g *Gatherer) traceOf(owner who, at int64) string {
	looks := g.byWho[owner]
	i := sort.Search(len(looks), func(i int) bool { return looks[i].at > at }) - 1
	if i < 0 || looks[i].link < 0 || at >= looks[i].at+looks[i].span {
		return ""
	}
	return g.links.all[looks[i].link].TraceID()
}

// holdersIn returns the holders for one part, the most frequent first.
func (b *building) holdersIn(part int32) (list []Holder) {
	for of, times := range b.holders {
		if of.part == part {
			of.Times = times
			list = append(list, of.Holder)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(y.Times, x.Times), cmp.Compare(x.Owner.String(), y.Owner.String()),
			cmp.Compare(x.Lock+x.Trace+x.Peer, y.Lock+y.Trace+y.Peer)) < 0
	})
	return list
}

// heldBy returns the lock's owner as text: ", java.lang.Object held by "server-2" tid=12 in trace 4bf9". Without a lock
// it returns the peer: ", connected to 10.0.0.7:5432".
func (p *Part) heldBy() string {
	if len(p.Holders) == 0 {
		return ""
	}
	h := &p.Holders[0]
	text := fmt.Sprintf(", %s held by %s", output.CleanName(h.Lock), output.Printable(h.Owner.String()))
	if h.Trace != "" {
		text += " in trace " + h.Trace
	}
	by := "by"
	if h.Peer != "" {
		text, by = ", connected to "+h.Peer, "to"
	}
	if more := len(p.Holders) - 1; more > 0 {
		text += fmt.Sprintf(", at other times %s %d more", by, more)
	}
	return text
}
