package heat

import (
	"math"
	"time"

	"goprof/profile"
)

const (
	// maxColumns bounds the columns of a page to what fits into a wide window.
	maxColumns = 1000
	// rowsOfColumn is the number of cells in a column: for a second, 20 ms each.
	rowsOfColumn = 50
)

// columnLengths are lengths that are easy to read.
var columnLengths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// grid divides time into cells. A column consists of rows cells, one above the other.
type grid struct {
	start   int64  // ns since 1970
	length  uint64 // ns, of the whole recording
	cell    uint64 // ns
	rows    int
	columns int
}

func newGrid(x extent) grid {
	g := grid{start: x.from, rows: rowsOfColumn}
	g.length = uint64(x.to) - uint64(x.from) // right even if the difference overflows an int64
	column := uint64(columnLengths[0])
	for i := 1; g.length/column >= maxColumns; i++ {
		if i < len(columnLengths) {
			column = uint64(columnLengths[i])
		} else {
			column *= 2
		}
	}
	g.cell = column / rowsOfColumn
	g.columns = 1
	if g.length > 0 {
		g.columns = int((g.length-1)/column + 1)
	}
	// A recording of 10 s takes some milliseconds more. These get no column if they have no samples.
	whole := g.length / column
	if whole > 0 && g.length%column < column/2 && uint64(x.last)-uint64(x.from) < whole*column {
		g.columns, g.length = int(whole), whole*column
	}
	return g
}

func (g *grid) column() uint64 { return g.cell * uint64(g.rows) }
func (g *grid) cells() int     { return g.rows * g.columns }

// at returns the cell of a time. A time outside of the recording belongs to the first or the last cell.
func (g *grid) at(wall int64) uint32 { return min(g.before(wall), uint32(g.cells()-1)) }

// before returns how many whole cells are before a time.
func (g *grid) before(wall int64) uint32 {
	if wall < g.start {
		return 0
	}
	return uint32(min((uint64(wall)-uint64(g.start))/g.cell, uint64(g.cells())))
}

// span returns the cells of a span of time: those of which it fills more than half, but at least one. Consecutive spans
// neither overlap nor leave a gap.
func (g *grid) span(wall int64, length time.Duration) (first, n uint32) {
	if length <= 0 {
		return g.at(wall), 1
	}
	half := int64(g.cell / 2)
	first, end := g.before(addTime(wall, half)), g.before(addTime(addTime(wall, int64(length)), half))
	if end <= first {
		return g.at(wall), 1
	}
	return first, end - first
}

// addTime adds without overflow.
func addTime(wall, more int64) int64 {
	if more > 0 && wall > math.MaxInt64-more {
		return math.MaxInt64
	}
	return wall + more
}

// coarser returns the factor by which cells grow next. A column always has a whole number of cells.
func (g *grid) coarser() uint32 {
	if g.rows == 1 || g.rows%2 == 0 {
		return 2
	}
	return 5
}

// coarsen makes cells longer. If a column has only one cell, the columns grow, too.
func (g *grid) coarsen(by uint32) {
	g.cell *= uint64(by)
	if g.rows == 1 {
		g.columns = (g.columns + int(by) - 1) / int(by)
		return
	}
	g.rows /= int(by)
}

// extent is the time that a recording covers: the time in its Meta, and all its samples.
type extent struct {
	from, to int64
	last     int64 // end of the last sample
	any      bool
}

func (x *extent) sample(s *profile.Sample) {
	from, to := s.At.Wall, addTime(s.At.Wall, int64(max(s.Span, 0)))
	if !x.any {
		x.from, x.to, x.any = from, to, true
	}
	x.from, x.to = min(x.from, from), max(x.to, to)
	x.last = x.to
}

// recorded adds the time before the first sample and after the last one, in which nothing was seen. It ignores
// implausible recordings: all samples must be within the time that the recording claims.
func (x *extent) recorded(m *profile.Meta) {
	if m.Start.IsZero() || m.Duration <= 0 {
		return
	}
	start := m.Start.UnixNano()
	end := addTime(start, int64(m.Duration))
	slack := int64(time.Second)
	if start <= x.from && x.to <= addTime(end, slack) {
		x.from, x.to = start, max(x.to, end)
	}
}
