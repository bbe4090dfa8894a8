//go:build linux

package session

import (
	"errors"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/span"
	"goprof/vmstructs"
)

// A tracing agent in the program may publish which span a thread works for (look.Context). If no agent does, samples
// cost nothing more.

// contexts knows where a process publishes spans, and counts samples by the state of their context.
type contexts struct {
	ptrace.Contexts
	generation uint64 // of the mappings that were searched
	searched   bool
	pending    bool // a library's variable has no address yet
	unknown    bool // it is not known how the C library finds a variable
	links      profile.Links
	// fromPthread is process.Locals.FromPthread.
	fromPthread int64
}

// findContexts looks for the variables of agents in new images. It reads the target.
func (r *recording) findContexts() {
	c := &r.contexts
	generation := r.Process.Generation()
	if c.searched && c.generation == generation && !c.pending {
		return
	}
	found := r.Process.Locals(look.ContextVariable)
	c.generation, c.searched, c.pending, c.unknown = generation, true, found.Pending, found.Unknown
	c.fromPthread = found.FromPthread
	c.Set(found.List)
}

// pointer returns the thread pointer of a Java thread. It is 0 if it is not known or not needed.
func (c *contexts) pointer(java *vmstructs.Thread) uint64 {
	if !c.Published() || java.Pthread == 0 || c.fromPthread < 0 {
		return 0
	}
	return java.Pthread + uint64(c.fromPthread)
}

// link counts n samples with this context, and returns their span.
func (c *contexts) link(of *look.Context, n int64) profile.Link {
	c.count(of.State, n)
	return linkOf(of)
}

func linkOf(of *look.Context) profile.Link {
	if of.State != look.ContextRead {
		return profile.Link{}
	}
	return profile.Link{Trace: of.Trace, Span: of.Span}
}

// count counts n samples by the state of their context. n is negative if samples are taken back.
func (c *contexts) count(state look.ContextState, n int64) {
	switch state {
	case look.ContextRead:
		c.links.Read += n
	case look.ContextNone:
		c.links.None += n
	case look.ContextInvalid:
		c.links.Invalid += n
	case look.ContextHalf:
		c.links.Half += n
	case look.ContextUnreadable:
		c.links.Unreadable += n
	case look.ContextUnasked:
		if c.Published() {
			c.links.NotStopped += n
		}
	}
}

// account is nil if the process publishes no spans.
func (c *contexts) account() *profile.Links {
	if c.links == (profile.Links{}) {
		return nil
	}
	return new(c.links)
}

// contextNotes explain why samples have no span although the process publishes spans. refused is the reason why the
// kernel does not read them.
func (r *recording) contextNotes(refused error) (notes []profile.Note) {
	c := &r.contexts
	if c.unknown {
		notes = append(notes, profile.Note{Name: "trace-context-unknown",
			Text: "the program publishes trace ids, but its C library's way to thread-local variables is not known: no ids"})
	}
	l := &c.links
	if r.opt.Engine != PerfEngine || l.NotStopped <= l.Read+l.None {
		return notes
	}
	n := profile.Note{Name: "trace-context-not-stopped",
		Text: "the program publishes trace ids, and the kernel did not read them for most samples: these have none"}
	switch {
	case errors.Is(refused, span.ErrFiles):
		n.Text, n.Remedy = n.Text+". goprof may not open enough files", "ulimit -n 65536"
	case r.opt.Event == nil && !r.opt.Wakers: // events and wakers are not taken by stops, so stops are no remedy
		n.Remedy = "--engine ptrace"
	}
	return append(notes, n)
}
