//go:build linux

package visit

import (
	"math/rand/v2"
	"slices"
)

// The moments of visits.
//
// A visit changes what the program does next: when the sampling thread leaves the CPU, another thread may get the CPU
// than the one that had it before. The next visit must meet such threads as often as any others. So a visit may come
// right after the one before. In an earlier plan two visits were seldom close together. Then a pool whose threads ran
// right after visits, beside busy loops, had 15 to 20 % fewer samples than were due (docs/decisions/0004).
//
// So the moments of a round are drawn from all of the round's time, independently of each other. Their number is fixed,
// so that a thread that runs all the time has as many samples as are due.

// momentsInRound is how many moments are drawn together. Moments of different rounds still avoid each other.
const momentsInRound = 32

// moments are the moments of a round, and which of them is the next.
type moments struct {
	rng    *rand.Rand
	exact  bool // multiples of the mean gap: for tests
	step   int64
	start  int64
	width  int64                 // the length of this round
	offset [momentsInRound]int64 // the moments in order, counted from start
	next   int
}

// begin starts with new moments. step is the mean time between two of them.
func (m *moments) begin(now, step int64) {
	m.step = step
	m.draw(now)
}

func (m *moments) draw(start int64) {
	m.start, m.width, m.next = start, momentsInRound*m.step, 0
	for i := range m.offset {
		if m.exact {
			m.offset[i] = int64(i) * m.width / momentsInRound
		} else {
			m.offset[i] = m.rng.Int64N(m.width)
		}
	}
	slices.Sort(m.offset[:])
}

func (m *moments) at() int64 { return m.start + m.offset[m.next] }

// catchUp skips the moments that passed long ago, and returns their number.
func (m *moments) catchUp(now int64) (missed int64) {
	for missed = m.skipRounds(now); m.at() < now-m.patience(); missed++ {
		m.skip()
	}
	return missed
}

// skipRounds skips whole rounds that have passed. After hours in which goprof was suspended, there would be too many
// moments to draw.
func (m *moments) skipRounds(now int64) (missed int64) {
	rounds := (now - m.patience() - m.start - m.width) / m.width
	if rounds < 1 {
		return 0
	}
	missed = int64(momentsInRound-m.next) + rounds*momentsInRound
	m.draw(m.start + m.width + rounds*m.width)
	return missed
}

// patience returns how late a visit may be.
func (m *moments) patience() int64 { return m.step * momentsInRound / 4 }

func (m *moments) skip() {
	if m.next++; m.next == momentsInRound {
		m.draw(m.start + m.width)
	}
}
