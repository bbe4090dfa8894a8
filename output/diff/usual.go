package diff

import (
	"fmt"
	"math"
	"strings"

	"goprof/output"
)

// Most users have one recording for each side. One recording cannot prove that a version changed something, because two
// starts of one program differ, too: see runs.go. But the usual difference between starts was measured with other
// programs. A change that is larger than this difference is likely to be real, so changes are ranked by their ratio to
// it.
//
// The usual difference was measured over usualPrograms programs, in several starts each (docs/evidence/diff.md has the
// table, TestDiffStarts in testdata/oracle makes it again). The largest change between two starts, divided by the root
// of p(1-p), is about the same for methods with a share p of 1 % and of 50 %. So usualStarts is one number for all
// shares: in nine of ten pairs of starts, no method and no path changed by more.
const (
	usualPrograms = 11
	usualStarts   = 0.22
)

// usual returns the usual difference of an item's share between two starts of one program, including the noise within
// recordings.
func (e *evidence) usual() float64 {
	p := e.pooled()
	within := e.variance[Before]/(e.total[Before]*e.total[Before]) + e.variance[After]/(e.total[After]*e.total[After])
	return math.Sqrt(usualStarts*usualStarts*p*(1-p) + within)
}

// likely reports whether a change is larger than noise within the recordings, and larger than starts usually differ by.
func (e *evidence) likely() bool {
	return e.differs && e.held > Risk && math.Abs(e.change()) > e.usual()
}

// rank returns a change divided by the usual difference between starts.
func (e *evidence) rank() float64 { return math.Abs(e.change()) / e.usual() }

// maxLikely bounds the likely changes that the verdict names.
const maxLikely = 3

// likelyVerdict names the changes that are likely, the surest first.
func (r *Result) likelyVerdict() string {
	var told []string
	named := make(map[string]bool)
	for i := range r.Changes {
		ch := &r.Changes[i]
		if len(told) == maxLikely || !ch.Likely || named[ch.Name] || ch.Of == OfPath && r.By != ByPath {
			continue
		}
		named[ch.Name] = true
		text := fmt.Sprintf("%s %s points (%.1f)", output.CleanName(ch.Name), points(ch.Change), 100*ch.Usual)
		if len(told) == 0 {
			text = fmt.Sprintf("%s %s points (two starts of one program usually differ by up to %.1f points there, measured "+
				"over %d programs)", output.CleanName(ch.Name), points(ch.Change), 100*ch.Usual, usualPrograms)
		}
		told = append(told, text)
	}
	if len(told) == 0 {
		return plural(r.Likely, "change is likely.", "changes are likely.")
	}
	return "Likely: " + strings.Join(told, ", ") + ". Three recordings a side would prove it."
}
