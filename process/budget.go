package process

import (
	"sync"
	"time"
)

// Tables of symbols and unwind rules stay in memory. A file may claim any size for its tables, and a process may map
// tens of thousands of files. So there is a budget for the tables of each process, and one for all processes together.
// A hostile process cannot use up the memory that others need.

const (
	maxTables        = 256 << 20 // of all processes: ten times the tables of the largest JVM with symbols (operations.md)
	maxProcessTables = 160 << 20 // of one process
	maxSums          = 2 << 30   // bytes of one process's files that are read for checksums; this takes no memory
)

// runTables is the budget of all processes together.
var runTables = &readBudget{left: maxTables}

// readBudget is an amount of bytes. If from is not nil, each amount is also taken from there.
type readBudget struct {
	from *readBudget

	mu    sync.Mutex
	left  uint64
	spent uint64
	short time.Time // the last time that a table did not fit
}

// shortFor is how long TablesShort remembers that a table did not fit.
const shortFor = 10 * time.Second

// TablesShort reports whether tables were recently left out because the budget of all processes was used up.
func TablesShort() bool { return runTables.wasShort(time.Now()) }

func (b *readBudget) wasShort(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.short.IsZero() && now.Sub(b.short) < shortFor
}

// TableBytes returns the size of the tables of all processes, and its limit.
func TableBytes() (spent, most uint64) {
	runTables.mu.Lock()
	defer runTables.mu.Unlock()
	return runTables.spent, maxTables
}

// spend takes n bytes. It returns false if fewer are left. A nil budget has no limit.
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

// giveAllBack returns all bytes that were spent to the budgets. It is called when the tables are dropped.
func (b *readBudget) giveAllBack() { b.giveBack(^uint64(0)) }
