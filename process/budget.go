package process

import "sync"

// Tables of symbols and unwind rules stay in memory, and how large they are is what files say, of which there may be
// tens of thousands. So they are paid for: each image out of what its process has, each process out of what this run
// of goprof has. A process of lies cannot use up what others need, and many side by side cannot use more than one.

const (
	// maxTables is for all processes of this run: ten times what the largest JVM with full symbols took
	// (docs/operations.md).
	maxTables = 256 << 20
	// maxProcessTables is for one of them.
	maxProcessTables = 160 << 20
	// maxSums bounds what is read of files to compute their checksums, by process. That takes time, and no memory.
	maxSums = 2 << 30
)

// runTables is what all processes have together.
var runTables = &readBudget{left: maxTables}

// readBudget is an amount of bytes. What it spends, it takes from another one, if it has any.
type readBudget struct {
	from *readBudget

	mu    sync.Mutex
	left  uint64
	spent uint64
}

// spend reports whether n more bytes may be had. No budget at all has any amount.
func (b *readBudget) spend(n uint64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left || !b.from.spend(n) {
		return false
	}
	b.left -= n
	b.spent += n
	return true
}

// giveBack returns n of the bytes that were spent.
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

// giveAllBack is for when what was paid for is dropped.
func (b *readBudget) giveAllBack() {
	if b == nil {
		return
	}
	b.giveBack(^uint64(0))
}
