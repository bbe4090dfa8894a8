package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// ByPath compares paths alone.
const ByPath = "path"

// Keys are the keys by which recordings can be compared.
var Keys = append(slices.DeleteFunc(slices.Clone(output.ReportKeys), func(k string) bool { return k == output.ByLine }),
	ByPath)

type Options struct {
	By        string  // one of Keys
	Top       int     // number of changes of each sort that are kept, 0 for all
	MinChange float64 // smaller changes of shares are left out, and not significant
	// Steps are keys whose share is known to have changed between the two sides. For these, consecutive looks that find
	// the same stack do not add noise. A path has the key of its last frame.
	Steps map[string]bool
}

type Result struct {
	Before      Recording      `json:"before"`
	After       Recording      `json:"after"`
	Weight      profile.Weight `json:"weight"` // what is counted
	By          string         `json:"by"`
	Risk        float64        `json:"risk"`       // of calling any change significant although nothing has changed
	Compared    int            `json:"hypotheses"` // number of hypotheses in Holm's correction
	Inflation   float64        `json:"inflation"`  // variance divided by that of independent looks: the median of items
	Assumed     bool           `json:"assumed"`    // neither recording has times: the inflation is not measured
	Starts      Starts         `json:"starts"`     // what is known about noise between starts of a JVM
	Significant int            `json:"significant"`
	Likely      int            `json:"likely"`    // one start or two per side: larger than the usual difference
	Unsettled   int            `json:"unsettled"` // larger than noise within the recordings; starts may differ as much
	Changes     []Change       `json:"changes"`
	Omitted     int            `json:"omitted"`

	// The tree, for pictures: see Picture.
	c        *Comparison
	evidence []evidence
	items    *items
	limit    float64
	// limitWithin is limit for noise within the recordings alone.
	limitWithin float64
}

// Recording is one side: one recording or several together.
type Recording struct {
	Name   string        `json:"name"`
	Files  []string      `json:"files"` // in the given order
	Total  int64         `json:"total"`
	Looks  int64         `json:"samples"`
	Span   time.Duration `json:"span_ns,omitempty"` // from the first sample to the last; 0 without times
	Blocks int           `json:"blocks"`            // of time; 0 without times
	// Guessed is how much of Total counts for a compiled method because the inlined method is a guess.
	Guessed int64 `json:"guessed,omitempty"`
}

// The sorts of changes.
const (
	OfSelf  = "self"
	OfTotal = "total"
	OfPath  = "path"
)

// Change is the change of one key, mostly a method, or of one path. Shares are from 0 to 1.
type Change struct {
	Name        string   `json:"name"` // for a path: its last frame
	Of          string   `json:"of"`   // OfSelf, OfTotal, OfPath
	Path        []string `json:"path,omitempty"`
	Before      float64  `json:"before"`
	After       float64  `json:"after"`
	Change      float64  `json:"change"`  // after - before
	Noise       float64  `json:"noise"`   // noise and guessed leaves alone give smaller changes than this
	P           float64  `json:"p"`       // corrected: significant if it is at most Risk
	Alone       float64  `json:"p_alone"` // without correction for other comparisons
	Inflation   float64  `json:"inflation"`
	Significant bool     `json:"significant"`
	Differs     bool     `json:"differs"` // by more than noise within the recordings
	// Usual is the usual difference between two starts of one program, if there are too few recordings to measure it. A
	// change is likely if it is larger than Usual, and Differs. Within is the largest change by noise within the
	// recordings alone.
	Usual  float64 `json:"usual,omitempty"`
	Within float64 `json:"within,omitempty"`
	Likely bool    `json:"likely,omitempty"`
	New    bool    `json:"new,omitempty"`  // in no sample before
	Gone   bool    `json:"gone,omitempty"` // in no sample after
	Own    string  `json:"-"`              // for a path: the innermost method of the program\'s own

	node int32
}

func (c *Comparison) Compare(o Options) (*Result, error) {
	by := o.By
	if by == ByPath {
		by = "method"
	}
	key, err := output.ReportKey(by)
	if err != nil {
		return nil, fmt.Errorf("a comparison is by %s, not by %q", strings.Join(Keys, ", "), o.By)
	}
	if c.sides[Before].total == 0 || c.sides[After].total == 0 {
		return nil, ErrNoSamples
	}
	r := &Result{By: o.By, Risk: Risk, Weight: c.sides[After].weight, c: c}
	c.finish()
	r.Before, r.After = c.sides[Before].recording(), c.sides[After].recording()
	r.Assumed = r.Before.Blocks == 0 && r.After.Blocks == 0
	r.Starts = c.starts()
	r.items = newItems(&c.tree, by, key)
	noise := newNoise(c, r.items)
	r.evidence = make([]evidence, len(r.items.list))
	for i := range r.items.list {
		r.evidence[i] = c.judge(&r.items.list[i], &noise, o.Steps[r.items.name(r.items.list[i].number)])
		r.evidence[i].between = c.between(&r.evidence[i], &noise.spreads)
	}
	r.Compared, r.limit, r.limitWithin = c.decide(r.evidence, r.items.nested())
	r.Inflation = medianInflation(r.evidence)
	r.collect(o)
	return r, nil
}

func (s *side) recording() Recording {
	r := Recording{Total: s.total, Looks: s.looks, Span: s.span, Guessed: s.guessed, Files: []string{}}
	for i := range s.runs {
		r.Files = append(r.Files, s.runs[i].name)
	}
	if r.Name = r.Files[0]; len(r.Files) > 1 {
		r.Name += fmt.Sprintf(" and %d more", len(r.Files)-1)
	}
	if s.timed {
		r.Blocks = blocks
	}
	return r
}

// medianInflation returns the median of the items that have enough samples to measure it.
func medianInflation(list []evidence) float64 {
	var all []float64
	for i := range list {
		if e := &list[i]; e.fewest < 1e-6 {
			all = append(all, e.inflation)
		}
	}
	if len(all) == 0 {
		return 1
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// collect makes the list of changes: for each sort the significant ones first, then by size.
func (r *Result) collect(o Options) {
	bySort := map[string][]*evidence{}
	for i := range r.evidence {
		e := &r.evidence[i]
		sort := r.sortOf(e.item.number)
		if o.By == ByPath && sort != OfPath || math.Abs(e.change()) < o.MinChange || e.change() == 0 {
			continue
		}
		bySort[sort] = append(bySort[sort], e)
	}
	bySort[OfPath] = r.dropRepeated(bySort[OfPath])
	r.Changes = []Change{}
	for _, sort := range []string{OfSelf, OfTotal, OfPath} {
		list := bySort[sort]
		slices.SortFunc(list, func(a, b *evidence) int {
			return cmp.Or(cmp.Compare(boolOrder(a.held <= Risk), boolOrder(b.held <= Risk)), r.byRank(a, b),
				cmp.Compare(math.Abs(b.change()), math.Abs(a.change())), cmp.Compare(a.item.number, b.item.number))
		})
		for _, e := range list {
			switch {
			case e.held <= Risk:
				r.Significant++
			case r.isLikely(e):
				r.Likely++
			case e.differs:
				r.Unsettled++
			}
		}
		if o.Top > 0 && len(list) > o.Top {
			r.Omitted += len(list) - o.Top
			list = list[:o.Top]
		}
		for _, e := range list {
			r.Changes = append(r.Changes, r.change(e, sort))
		}
	}
}

func boolOrder(first bool) int {
	if first {
		return 0
	}
	return 1
}

func (r *Result) sortOf(number int32) string {
	switch keys := int32(len(r.items.names)); {
	case number < keys:
		return OfSelf
	case number < 2*keys:
		return OfTotal
	}
	return OfPath
}

// mostOf: if one callee has at least this part of a path's change, the path has no line of its own.
const mostOf = 0.8

// dropRepeated leaves out a path if one of its callees in the list has the same change.
func (r *Result) dropRepeated(list []*evidence) []*evidence {
	at := make(map[int32]*evidence)
	for _, e := range list {
		at[r.node(e)] = e
	}
	passed := make(map[int32]bool)
	for _, e := range list {
		caller := at[r.c.tree.nodes[r.node(e)].parent]
		if caller != nil && e.change()/caller.change() >= mostOf && (e.held <= Risk) == (caller.held <= Risk) {
			passed[r.node(caller)] = true
		}
	}
	return slices.DeleteFunc(list, func(e *evidence) bool { return passed[r.node(e)] })
}

// isLikely reports whether a change is likely. If starts are measured, significance decides.
func (r *Result) isLikely(e *evidence) bool { return r.c.tooFew() && e.likely() }

// byRank sorts changes by how far they exceed the usual difference between starts, the largest first. Changes that
// noise within the recordings explains come last, whatever their size.
func (r *Result) byRank(a, b *evidence) int {
	if !r.c.tooFew() {
		return 0
	}
	if a.differs && b.differs {
		return cmp.Compare(b.rank(), a.rank())
	}
	return cmp.Compare(boolOrder(a.differs), boolOrder(b.differs))
}

func (r *Result) node(e *evidence) int32 { return e.item.number - 2*int32(len(r.items.names)) }

func (r *Result) change(e *evidence, sort string) Change {
	ch := Change{Of: sort, Before: e.share(Before), After: e.share(After), Change: e.change(),
		Noise: e.noise(r.limit*e.weight) + e.byGuesses(), P: e.held, Alone: e.p, Inflation: e.inflation,
		Significant: e.held <= Risk, Differs: e.differs, New: e.item.sum[Before] == 0, Gone: e.item.sum[After] == 0}
	if r.c.tooFew() {
		ch.Usual, ch.Within, ch.Likely = e.usual(), e.smallest(r.limitWithin*e.weight, e.chanceWithin), r.isLikely(e)
	}
	if ch.Name = r.items.name(e.item.number); sort == OfPath {
		ch.node = r.node(e)
		ch.Path = r.c.tree.path(ch.node)
		ch.Name = ch.Path[len(ch.Path)-1]
		ch.Own = r.c.tree.own(ch.node)
	}
	return ch
}

// own returns the innermost method of the program's own in a node's stack. It is empty if there is none.
func (t *tree) own(n int32) string {
	for ; n != 0; n = t.nodes[n].parent {
		if l := &t.labels[t.nodes[n].label]; l.Kind.Java() && !naming.OfLibrary(l.Text) {
			return l.Text
		}
	}
	return ""
}

// path returns the names of a node's stack, root first.
func (t *tree) path(n int32) (names []string) {
	for ; n != 0; n = t.nodes[n].parent {
		names = append(names, t.labels[t.nodes[n].label].Text)
	}
	slices.Reverse(names)
	return names
}
