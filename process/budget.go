package process

import (
	"sync"
	"time"
)

// Tables of symbols and unwind rules stay in memory. A file may claim any size for its tables, and a process may map
// tens of thousands of files. So tables have budgets: one for each process, for the tables of its images, and one for
// all processes of this run of goprof. A hostile process cannot use up the memory that others need, and many of them
// together cannot use more than the whole budget.

const (
	// maxTables bounds the tables of all processes of this run: ten times what the largest JVM with full symbols took
	// (docs/operations.md).
	maxTables = 256 << 20
	// maxProcessTables bounds the tables of one process.
	maxProcessTables = 160 << 20
	// maxSums bounds the bytes of files of one process that are read for checksums. Reading takes time, and no memory.
	maxSums = 2 << 30
)

// runTables is the budget of all processes together.
var runTables = &readBudget{left: maxTables}

// readBudget is an amount of bytes. If from is not nil, each amount is also taken from that budget.
type readBudget struct {
	from *readBudget

	mu    sync.Mutex
	left  uint64
	spent uint64
	short time.Time // when it had no room last
}

// shortFor is how long it is remembered that there was no room: the process in question has given back what it had
// since.
const shortFor = 10 * time.Second

// TablesShort reports whether tables were left out lately because those of all processes together take all there is
// for them.
func TablesShort() bool { return runTables.wasShort(time.Now()) }

func (b *readBudget) wasShort(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.short.IsZero() && now.Sub(b.short) < shortFor
}

// TableBytes is what tables of all processes take by this account, and the most they may take.
func TableBytes() (spent, most uint64) {
	runTables.mu.Lock()
	defer runTables.mu.Unlock()
	return runTables.spent, maxTables
}

// spend takes n bytes, and reports whether they were there. A nil budget has no limit.
func (b *readBudget) spend(n uint64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left || !b.from.spend(n) {
		b.short = time.Now()
		return false
	}
	b.left -= n
	b.spent += n
	return true
}

func (b *readBudget) giveBack(n uint64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.spent)
	b.left += n
	b.spent -= n
	b.from.giveBack(n)
}

// giveAllBack returns all bytes that were spent: the tables that they paid for are dropped.
func (b *readBudget) giveAllBack() {
	if b == nil {
		return
	}
	b.giveBack(^uint64(0))
}
