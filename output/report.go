package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strings"

	"goprof/profile"
)

// ReportKeys are the keys of NewReport. NewHottest and NewWakers make reports by other keys: ByHottest, ByWaker,
// ByChain.
var ReportKeys = []string{"method", ByLine, ByClass, ByPackage, "kind", ByThread, ByState}

// Keys that need more than a frame's own name.
const (
	ByLine    = "line"
	ByClass   = "class"
	ByPackage = "package"
	ByThread  = "thread"
	ByState   = "state"
	ByWaker   = "waker"
	ByChain   = "chain"   // of wakers
	ByHottest = "hottest" // the names as in the account
)

// Report is a table of the methods, threads or other keys of a profile's samples.
type Report struct {
	Weight  profile.Weight `json:"weight"`            // the unit of the counts
	Samples int64          `json:"samples,omitempty"` // all samples; or CPU
	CPU     int64          `json:"cpu_ns,omitempty"`  // all CPU time; or Time
	Time    int64          `json:"time_ns,omitempty"` // all time; or Bytes
	Bytes   int64          `json:"bytes,omitempty"`   // all bytes
	Mode    string         `json:"mode,omitempty"`    // of the recording, if it is known and not cpu
	// Unnamed is how much counts for compiled methods because the inlined methods are guesses.
	Unnamed int64       `json:"guessed,omitempty"`
	By      string      `json:"by"`
	Rows    []ReportRow `json:"rows"` // by self, then total, then name
	Omitted int         `json:"omitted"`
	// States are the states of threads. It is empty if stacks have no states, and in a report by state.
	States []ReportRow `json:"states,omitempty"`

	noLines bool // it is by line, and there are no lines
}

// ReportRow is one method, class, package, kind, thread or state.
type ReportRow struct {
	Name string `json:"name"`
	// Self counts samples with this key as leaf. For a thread, it counts all samples of the thread.
	Self      int64   `json:"self"`
	SelfShare float64 `json:"self_share"` // of all samples, 0 to 1
	// Total counts samples with this key anywhere on the stack, each sample once.
	Total      int64   `json:"total"`
	TotalShare float64 `json:"total_share"`
}

// NewReport sums up a tree by one of ReportKeys.
func NewReport(t *Tree, by string) (*Report, error) {
	keyOf, err := ReportKey(by)
	if err != nil {
		return nil, err
	}
	s := sums{tree: t, rows: make(map[string]int32)}
	s.keys = make([]int32, len(t.Labels))
	for i, l := range t.Labels {
		s.keys[i] = s.row(keyOf(l))
	}
	s.sum(Owners(by, t.Labels, len(t.Nodes), func(n int32) (parent, label int32) {
		return t.Nodes[n].Parent, t.Nodes[n].Name
	}))

	return newReport(t, by, s.table, t.Total), nil
}

// NewHottest computes what the account calls the hottest: methods with the states of their threads, system calls,
// collector and compilers.
func NewHottest(t *Tree, of *profile.Meta) *Report {
	heat := newHeat(t, of)
	var table []ReportRow
	for p, n := range heat.sums {
		name := p.name
		if p.state != "" {
			name += " (" + p.state + ")"
		}
		table = append(table, ReportRow{Name: name, Self: n, Total: n})
	}
	return newReport(t, ByHottest, table, heat.total)
}

func newReport(t *Tree, by string, table []ReportRow, all int64) *Report {
	r := &Report{Weight: t.Weight, Unnamed: t.Unnamed, By: by}
	r.noLines = by == ByLine && !slices.ContainsFunc(t.Labels, func(n Name) bool { return hasLine.MatchString(n.Text) })
	switch t.Weight {
	case profile.CPUTime:
		r.CPU = all
	case profile.WallTime:
		r.Time = all
	case profile.Bytes:
		r.Bytes = all
	default:
		r.Samples = all
	}
	for i := range table {
		row := &table[i]
		row.SelfShare = float64(row.Self) / float64(all)
		row.TotalShare = float64(row.Total) / float64(all)
		if row.Total > 0 && (by != ByState || row.Self > 0) {
			r.Rows = append(r.Rows, *row)
		}
	}
	r.sort(func(row *ReportRow) (first, second int64) { return row.Self, row.Total })
	return r
}

func (r *Report) sort(by func(*ReportRow) (first, second int64)) {
	sort.Slice(r.Rows, func(i, j int) bool {
		a, b := &r.Rows[i], &r.Rows[j]
		a1, a2 := by(a)
		b1, b2 := by(b)
		return cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2), strings.Compare(a.Name, b.Name)) < 0
	})
}

// SortByTotal sorts the rows by their totals, which include callees.
func (r *Report) SortByTotal() {
	r.sort(func(row *ReportRow) (first, second int64) { return row.Total, row.Self })
}

// Keep keeps only the first top rows, or all if top is 0.
func (r *Report) Keep(top int) {
	if top > 0 && len(r.Rows) > top {
		r.Omitted = len(r.Rows) - top
		r.Rows = r.Rows[:top]
	}
}

// Lacks returns how to record with the key of the report, such as the thread. It is empty if the recording has the key.
func (r *Report) Lacks() string {
	switch {
	case r.noLines:
		return "goprof record --pid PID -d 30s -o FILE.jfr, which has lines where the class files have them"
	case len(r.Rows) != 1:
	case r.Rows[0].Name == noThread:
		return "goprof record --pid PID -d 30s --threads, or -o FILE.jfr, which has each sample's thread"
	case r.Rows[0].Name == noWaker:
		return "goprof record --pid PID -d 30s --event off-cpu --wakers"
	case r.Rows[0].Name == noState:
		return "goprof record --pid PID -d 30s --mode wall"
	}
	return ""
}

var hasLine = regexp.MustCompile(`:\d+$`)

// WithStates puts the states of threads at the beginning of a report, if the stacks of the tree have states.
func (r *Report) WithStates(t *Tree) error {
	if !slices.ContainsFunc(t.Labels, func(l Name) bool { return l.Kind == LabelState }) {
		return nil
	}
	states, err := NewReport(t, ByState)
	if err == nil {
		r.States = plainStates(states.Rows)
	}
	return err
}

// plainStates adds up the states that only differ in what they wait for.
func plainStates(rows []ReportRow) (states []ReportRow) {
	for _, row := range rows {
		if state, _, ok := strings.Cut(row.Name, ": "); ok {
			row.Name = state + "]"
		}
		i := slices.IndexFunc(states, func(s ReportRow) bool { return s.Name == row.Name })
		if i < 0 {
			states = append(states, row)
			continue
		}
		s := &states[i]
		s.Self, s.SelfShare, s.Total, s.TotalShare = s.Self+row.Self, s.SelfShare+row.SelfShare,
			s.Total+row.Total, s.TotalShare+row.TotalShare
	}
	sort.SliceStable(states, func(i, j int) bool { return states[i].Self > states[j].Self })
	return states
}

// reportKeys are, by key, the functions that return the name that a frame counts for.
var reportKeys = map[string]func(Name) string{
	"method": func(n Name) string { return n.Text },
	ByLine:   func(n Name) string { return n.Text },
	"kind":   func(n Name) string { return n.Kind.String() },
	ByClass: func(n Name) string {
		if class, _ := splitJava(n); class != "" {
			return class
		}
		return "[" + n.Kind.String() + "]"
	},
	ByPackage: func(n Name) string {
		class, pkg := splitJava(n)
		switch {
		case class == "":
			return "[" + n.Kind.String() + "]"
		case pkg == "":
			return "[no package]"
		}
		return pkg
	},
	ByThread: func(n Name) string {
		if n.Kind == LabelThread {
			return n.Text
		}
		return noThread
	},
	ByState: func(n Name) string {
		if n.Kind == LabelState {
			return n.Text
		}
		return noState
	},
}

const (
	noThread = "[all threads]"
	noState  = "[no state]"
)

// splitJava returns class and package of a Java method.
func splitJava(n Name) (class, pkg string) {
	if !n.Kind.Java() {
		return "", ""
	}
	name, _, _ := strings.Cut(n.Text, "(") // other tools write signatures
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 {
		return name, ""
	}
	class = name[:dot]
	if end := strings.LastIndexAny(class, "./"); end > 0 {
		pkg = class[:end]
	}
	return class, pkg
}

// ReportKey returns the function that names a frame in a report by this key. Some frames count for others: see Owners.
func ReportKey(by string) (name func(Name) string, err error) {
	name, ok := reportKeys[by]
	if !ok {
		return nil, fmt.Errorf("a report is by %s, not by %q", strings.Join(ReportKeys, ", "), by)
	}
	return name, nil
}

// sums adds up a tree by the keys of its labels.
type sums struct {
	tree  *Tree
	keys  []int32 // of labels
	rows  map[string]int32
	table []ReportRow
}

func (s *sums) row(name string) int32 {
	i, ok := s.rows[name]
	if !ok {
		i = int32(len(s.table))
		s.rows[name] = i
		s.table = append(s.table, ReportRow{Name: name})
	}
	return i
}

// sum walks the tree. For each key it counts how often the key is on the path: recursion adds to a total once. Each
// node counts as its owner.
func (s *sums) sum(owners []int32) {
	nodes, totals := s.tree.Nodes, s.tree.Totals()
	first, next := make([]int32, len(nodes)), make([]int32, len(nodes))
	for n := len(nodes) - 1; n > 0; n-- {
		parent := nodes[n].Parent
		next[n], first[parent] = first[parent], int32(n)
	}
	keys, onPath := make([]int32, len(nodes)), make([]int32, len(s.table))
	enter := func(n int32) {
		key := s.keys[nodes[owners[n]].Name]
		keys[n] = key
		s.table[key].Self += nodes[n].Self
		if onPath[key]++; onPath[key] == 1 {
			s.table[key].Total += totals[n]
		}
	}
	// To the first child, or to the next sibling of the nearest node with one.
	for n := first[0]; n != 0; {
		enter(n)
		if first[n] != 0 {
			n = first[n]
			continue
		}
		for n != 0 && next[n] == 0 {
			onPath[keys[n]]--
			if n = nodes[n].Parent; n == 0 {
				return
			}
		}
		onPath[keys[n]]--
		n = next[n]
	}
}

// JSON writes the report with the field names of Report.
func (r *Report) JSON(to io.Writer) error {
	if r.Rows == nil {
		r.Rows = []ReportRow{}
	}
	return WriteJSON(to, r)
}

// Text writes the report as a table.
func (r *Report) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	all := r.Samples + r.CPU + r.Time + r.Bytes // only one of these is not 0
	title := Amount(r.Weight, all)
	if r.Mode != "" {
		title += ", " + r.Mode
	}
	fmt.Fprintf(w, "%s\n", title)
	if r.Unnamed > 0 {
		fmt.Fprintf(w, "In %s of it, which inlined method was running is a guess. These count for the compiled method.\n",
			Percent(r.Unnamed, all))
	}
	w.WriteByte('\n')
	if len(r.States) > 0 {
		fmt.Fprintf(w, "%10s %7s  %s\n", "", "", "state")
		for _, row := range r.States {
			fmt.Fprintf(w, "%10s %7s  %s\n", Figure(r.Weight, row.Self), Percent(row.Self, all), CleanName(row.Name))
		}
		w.WriteByte('\n')
	}
	fmt.Fprintf(w, "%10s %7s %10s %7s  %s\n", "self", "", "total", "", r.By)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%10s %7s %10s %7s  %s\n", Figure(r.Weight, row.Self), Percent(row.Self, all),
			Figure(r.Weight, row.Total), Percent(row.Total, all), CleanName(row.Name))
	}
	if r.Omitted > 0 {
		fmt.Fprintf(w, "%s  and %d more: --top 0 shows all\n", strings.Repeat(" ", 37), r.Omitted)
	}
	return w.Flush()
}
