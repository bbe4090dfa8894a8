package process

import (
	"sync"
	"time"
)

// Tables of symbols and unwind rules stay in memory. A file may claim any size for its tables, and a process may map
// tens of thousands of files. So each process has a budget for its tables, and all processes together have one. A
// hostile process cannot use up the memory that others need.

const (
	maxTables        = 256 << 20 // of all processes: ten times what the largest JVM with symbols took (operations.md)
	maxProcessTables = 160 << 20 // of one process
	maxSums          = 2 << 30   // bytes of one process's files that are read for checksums: they take time, but no memory
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

// shortFor is how long TablesShort remembers that there was no room.
const shortFor = 10 * time.Second

// TablesShort reports whether tables were left out lately because the budget of all processes was used up.
func TablesShort() bool { return runTables.wasShort(time.Now()) }

func (b *readBudget) wasShort(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.short.IsZero() && now.Sub(b.short) < shortFor
}

// TableBytes returns how many bytes the tables of all processes take, and how many they may take.
func TableBytes() (spent, most uint64) {
	runTables.mu.Lock()
	defer runTables.mu.Unlock()
	return runTables.spent, maxTables
}

// spend takes n bytes. It returns false if the budget has fewer. A nil budget has no limit.
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

// giveAllBack gives back all bytes that were spent, when their tables are dropped.
func (b *readBudget) giveAllBack() { b.giveBack(^uint64(0)) }
