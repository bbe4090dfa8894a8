package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

const (
	maxThreads = 1 << 14 // with tracks of their own while the recording is read
	maxGroups  = 1 << 10
)

const (
	otherThreads   = "other threads"
	virtualThreads = "virtual threads"
)

// identity distinguishes threads. A thread that renames itself stays one thread if the JVM's number for it is known. A
// virtual thread is one thread on any carrier.
type identity struct {
	tid     int
	id      int64
	name    string
	virtual bool
}

func identityOf(t *profile.Thread) identity {
	id := identity{t.TID, t.JavaID, "", t.Virtual}
	if t.Virtual {
		id.tid = 0
	}
	if t.JavaID == 0 {
		id.name = cmp.Or(t.JavaName, t.Name)
	}
	return id
}

// track returns a thread's track. If a track for each thread would fill the memory, the threads of one pool share a
// track.
func (c *collector) track(t *profile.Thread) *Track {
	tr, known := c.recent.Get(t)
	if !known {
		id := identityOf(t)
		if tr = c.tracks[id]; tr == nil {
			if len(c.tracks) >= maxThreads {
				return c.group(t)
			}
			tr = &Track{ID: t.JavaID, TID: id.tid, Virtual: t.Virtual, Threads: 1, Earlier: c.t.earlier[*t]}
			c.tracks[id] = tr
			c.t.Tracks = append(c.t.Tracks, tr)
		}
		c.recent.Put(t, tr)
	}
	// The last name: users look for a renamed thread by that name.
	tr.Name = cmp.Or(t.JavaName, carrierless(t), tr.Name)
	return tr
}

// carrierless returns the kernel's name of a thread. It is "" for a virtual thread, because that kernel's name is the
// carrier's.
func carrierless(t *profile.Thread) string {
	if t.Virtual {
		return ""
	}
	return t.Name
}

func (c *collector) group(t *profile.Thread) *Track {
	name := poolOf(cmp.Or(t.JavaName, carrierless(t)), t.Virtual)
	if c.groups[name] == nil && len(c.groups) >= maxGroups {
		name = otherThreads
	}
	tr := c.groups[name]
	if tr == nil {
		tr = &Track{Name: name, Virtual: t.Virtual, Group: true}
		c.groups[name] = tr
		c.t.Tracks = append(c.t.Tracks, tr)
	}
	return tr
}

func poolOf(name string, virtual bool) string {
	switch {
	case name != "":
		return naming.Pool(name)
	case virtual:
		return virtualThreads
	}
	return otherThreads
}

// Title returns the track's name for people. It distinguishes threads with the same name.
func (tr *Track) Title() string {
	switch {
	case tr.Group && tr.Threads > 1:
		return fmt.Sprintf("%s (%d threads)", tr.Name, tr.Threads)
	case tr.Group:
		return tr.Name
	case tr.Virtual && tr.ID != 0:
		return with(tr.Name, fmt.Sprintf("virtual #%d", tr.ID))
	case tr.Virtual:
		return with(tr.Name, "virtual")
	case tr.TID != 0:
		return with(tr.Name, fmt.Sprintf("tid=%d", tr.TID)) + tr.before()
	case tr.ID != 0:
		return with(tr.Name, fmt.Sprintf("#%d", tr.ID))
	}
	return cmp.Or(tr.Name, "all threads")
}

// maxBefore bounds the earlier names in a title.
const maxBefore = 3

// before returns the most recent of a thread's earlier names.
func (tr *Track) before() string {
	if len(tr.Earlier) == 0 {
		return ""
	}
	names := tr.Earlier[max(len(tr.Earlier)-maxBefore, 0):]
	return " (before: " + strings.Join(names, ", ") + ")"
}

func with(name, what string) string {
	if name == "" {
		return what
	}
	return name + " " + what
}

func (t *Timeline) weigh(tr *Track) {
	tr.Weight = 0
	for i := range tr.Samples {
		tr.Weight = plus(tr.Weight, t.Of(&tr.Samples[i]))
	}
}

// group keeps the heaviest tracks; most bounds their number. If there are too many virtual threads, the lightest are
// grouped by pool. Then all tracks beyond the bound are merged into one.
func (t *Timeline) group(virtual, most int) {
	byWeight := func(a, b *Track) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(len(b.Samples), len(a.Samples)))
	}
	slices.SortStableFunc(t.Tracks, byWeight)
	singles, pools := 0, make(map[string]*Track)
	count := 0
	for _, tr := range t.Tracks {
		if tr.Virtual && !tr.Group {
			count++
		}
	}
	out := t.Tracks[:0]
	for _, tr := range t.Tracks {
		if !tr.Virtual || tr.Group || count <= virtual {
			out = append(out, tr)
			continue
		}
		if singles++; singles <= virtual/2 { // the heaviest ones stay: the user may look for one of them
			out = append(out, tr)
			continue
		}
		name := poolOf(tr.Name, true)
		if pools[name] == nil {
			pools[name] = &Track{Name: name, Virtual: true, Group: true}
			out = append(out, pools[name])
		}
		pools[name].join(tr)
	}
	t.Tracks = out
	slices.SortStableFunc(t.Tracks, byWeight)
	t.gatherOthers(most)
}

// gatherOthers makes one track of all tracks beyond the bound.
func (t *Timeline) gatherOthers(most int) {
	if len(t.Tracks) <= most {
		return
	}
	others := &Track{Name: otherThreads, Group: true}
	for _, tr := range t.Tracks[most-1:] {
		others.join(tr)
	}
	t.Tracks = append(t.Tracks[:most-1:most-1], others)
}

func (tr *Track) join(o *Track) {
	tr.Samples = append(tr.Samples, o.Samples...)
	tr.Threads += o.Threads
	tr.Weight = plus(tr.Weight, o.Weight)
	o.Samples = nil
}
