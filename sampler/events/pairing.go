//go:build linux

package events

import (
	"cmp"
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/bpf"
	"goprof/sampler/ring"
)

// Finding memory that is never given back.
//
// A call of malloc hits two probes. At its first instruction a program notes the size for the thread. At the
// instruction with which the function ends, the result is in its register. There the hit is counted, and may become a
// sample like that of any event. The address of a sample's memory goes into a map in the kernel. free has a probe,
// which takes the address out of the map. Memory that is in the map at the end was not given back.
//
// goprof follows a piece of memory from malloc to free, or not at all. So the interval may change in between.
//
// The end of a call belongs to the beginning with the same stack pointer, because an inner call has another stack
// pointer. realloc(NULL, n) jumps to malloc, and ends where malloc does. If functions call each other (musl's calloc
// calls malloc), the inner call replaces the outer one, and the end of the outer call finds no beginning.

// Pairing names the probes of calls that allocate memory and of calls that give it back. The event's Probes are the
// instructions that end the functions of Begins. There the result is in its register.
type Pairing struct {
	Begins []Begin
	// Clearing are jumps to memset with which functions end: memset returns its first argument. A jump counts if the
	// second argument is 0.
	Clearing []Probe
	// Frees are the functions that give back the piece of their first argument. Length is the number + 1 of the
	// argument that says how many bytes are given back, 0: all of the piece.
	Frees  []Probe
	Length int
	Kept   *Kept

	pending int  // the map of calls that have begun, by thread
	clears  bool // the program is for Clearing
}

// Begin is the first instruction of a function that allocates. Its fields are numbers of arguments + 1; 0: none.
type Begin struct {
	Probe
	Size, Times int // the size of the piece, or its two factors
	Out         int // where the function writes the address; the function then returns 0
	Old         int // a piece that the call gives back
	Access      int // if this argument is 0, the memory of the first one becomes inaccessible: the call gives it back
}

// Kept is what goprof knows of the pieces that were sampled. It outlives the run.
type Kept struct {
	// Times of the run. They are set when the run is over.
	Began, Over int64 // CLOCK_MONOTONIC
	Stopped     int64 // when the probes at allocations were removed, because they cost too much; 0: they stayed
	Closed      int64 // when the probes at free were removed, for the same reason: Over is then the same time
	PairCounts
	fd int // the map, by address
}

// PairCounts are counts of the programs.
type PairCounts struct {
	Full    uint64 // pieces that would have been samples, but the map had no room
	Freed   uint64 // samples that were given back
	Frees   uint64 // calls that give back
	Unended uint64 // calls of which no end was seen: at least this many
	Parts   uint64 // calls that gave back a part of a sample's piece: the piece is kept
}

// Piece is a piece of memory that was not given back.
type Piece struct {
	When  int64  // CLOCK_MONOTONIC
	Stood uint64 // bytes that its sample stands for
	Own   uint64 // its size
}

// MostKept is how many pieces can be kept.
const MostKept = 1 << 16

// NewKept makes a Kept. A run makes its map.
func NewKept() *Kept { return &Kept{fd: -1} }

// pairCounts are PairCounts as the programs count them. Their offsets follow those of eventCounts.
type pairCounts PairCounts

const (
	countFull = countPaused + 8 + 8*iota
	countFreed
	countFrees
	countUnended
	countParts
)

// The fields of a call, and of a piece of memory.
const (
	pendingSP   = 0 // 0: there is no call
	pendingSize = 8
	pendingOut  = 16
	pendingAll  = 24

	pieceWhen  = 0
	pieceStood = 8
	pieceOwn   = 16
	pieceAll   = 24

	pairKey = 8

	bpfJumpNe = 0x5d
)

// The fields of a record about a piece of memory, in Look.Event.Data.
const (
	pairedAddr = 0
	pairedWhen = 8
	PairedSize = 16
)

// Paired returns the address and the time of a hit's piece of memory.
func Paired(data []byte) (addr uint64, when int64, ok bool) {
	if len(data) < PairedSize {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(data[pairedAddr:]), int64(binary.LittleEndian.Uint64(data[pairedWhen:])), true
}

func (p *Pairing) open() (err error) {
	if p == nil {
		return nil
	}
	if p.Kept.fd, err = bpf.NewMap(bpf.MapHash, pairKey, pieceAll, MostKept); err != nil {
		p.Kept.fd = -1
		return &ring.Error{Call: "bpf", Err: err}
	}
	if p.pending, err = bpf.NewMap(bpfMapLRUHash, bufferKey, pendingAll, mostBuffered); err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	return nil
}

// closeCalls closes the map of calls. The loaded programs still hold it.
func (p *Pairing) closeCalls() {
	if p != nil {
		unix.Close(p.pending)
	}
}

// programs loads the other programs of the Pairing, each with its probes.
func (p *Pairing) programs(e *Event, number int, cpu *arch.CPU, counts, output int,
	load func(c *probeCode, at []Probe, frees bool) error) error {
	if p == nil {
		return nil
	}
	for i := range p.Begins {
		b := &p.Begins[i]
		if err := load(p.beginProgram(b, cpu, counts), []Probe{b.Probe}, false); err != nil {
			return err
		}
		// A function that gives memory back has a second program, which stays when the probes at allocations are
		// removed.
		if b.Old > 0 {
			if err := load(p.oldProgram(b, cpu, counts), []Probe{b.Probe}, true); err != nil {
				return err
			}
		}
		if b.Access > 0 {
			if err := load(p.noAccessProgram(b, cpu, counts), []Probe{b.Probe}, true); err != nil {
				return err
			}
		}
	}
	if err := load(p.freeProgram(cpu, counts), p.Frees, true); err != nil || len(p.Clearing) == 0 {
		return err
	}
	clears, pairing := *e, *p
	pairing.clears, clears.Pairing = true, &pairing
	return load(probeProgram(&clears, number, cpu, counts, -1, output), p.Clearing, false)
}

const (
	// pairCost is what a call costs that has probes at both ends, in ns, where a trap costs much: in virtual machines
	// (docs/evidence/events.md). freeCost is what a call costs that gives memory back.
	pairCost, freeCost = 12_000, 1_000
	// pairShare is the share of a CPU that calls may cost if Config.MaxOverhead is 0. pairGrace is what they may cost
	// beyond that, in ns.
	pairShare, pairGrace = 0.2, 5e8
)

// boundPairs removes the probes at allocations once they have cost the program more than is permitted. The probes at
// free and realloc stay, to follow the samples so far. boundPairs removes these too, once they alone have cost that
// much.
func (r *eventRun) boundPairs(now int64) {
	may := cmp.Or(r.cfg.MaxOverhead, pairShare)*float64(now-r.began) + pairGrace
	for i := range r.probes {
		p := &r.probes[i]
		if p.counts == nil || r.list[p.number].Pairing == nil {
			continue
		}
		kept := r.list[p.number].Pairing.Kept
		calls := pairCost * float64(atomic.LoadUint64(&p.counts.Hits))
		frees := freeCost * float64(atomic.LoadUint64(&p.counts.Frees))
		switch {
		case kept.Stopped == 0 && calls+frees > may:
			kept.Stopped = now
		case kept.Stopped > 0 && kept.Closed == 0 && frees > may:
			atomic.StoreUint64(&p.counts.Paused, 1) // all probes stop counting at once
			kept.Closed = now
		default:
			continue
		}
		r.closeBreakpoints(r.isStopped)
	}
}

// isStopped reports whether boundPairs has removed a probe.
func (r *eventRun) isStopped(p *eventProbe) bool {
	pairing := r.list[p.number].Pairing
	return pairing != nil && (pairing.Kept.Stopped > 0 && !p.frees || pairing.Kept.Closed > 0)
}

func (p *Pairing) end(began, over int64, c *pairCounts) {
	if p == nil {
		return
	}
	k := p.Kept
	k.Began, k.Over = began, cmp.Or(k.Closed, over)
	k.PairCounts = PairCounts{atomic.LoadUint64(&c.Full), atomic.LoadUint64(&c.Freed), atomic.LoadUint64(&c.Frees),
		atomic.LoadUint64(&c.Unended), atomic.LoadUint64(&c.Parts)}
}

// newPairCode returns the beginning of a program. r6 are the registers of the thread, r7 the counts. The program ends
// while hits do not count.
func newPairCode(counts int) *probeCode {
	c := &probeCode{bpf.New()}
	c.Mov(bpf.R6, bpf.R1)
	c.Value(bpf.R7, counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R7, countPaused)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	return c
}

func (c *probeCode) end() *probeCode {
	c.Label("end")
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

func (c *probeCode) count(at int) {
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, at, 0)
}

// argument loads an argument, or 0 if there is none.
func (c *probeCode) argument(dst bpf.Reg, number int, cpu *arch.CPU) {
	if number == 0 {
		c.Imm(bpf.MovImm, dst, 0)
		return
	}
	c.Load(bpf.Load64, dst, bpf.R6, cpu.Probe.Arg(number))
}

// beginProgram makes the program that notes a call for its thread.
func (p *Pairing) beginProgram(b *Begin, cpu *arch.CPU, counts int) *probeCode {
	const key, value = -pairKey, -pairKey - pendingAll
	c := newPairCode(counts)
	if b.Access > 0 {
		c.argument(bpf.R1, b.Access, cpu)
		c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	}
	c.argument(bpf.R8, b.Size, cpu)
	if b.Times > 0 {
		c.argument(bpf.R1, b.Times, cpu)
		c.Op(bpf.Mul, bpf.R8, bpf.R1, 0, 0)
	}
	c.Load(bpf.Load64, bpf.R9, bpf.R6, int(cpu.Probe.Offsets[cpu.SP]))
	c.Call(bpf.GetCurrentPIDTGID)
	c.Store(bpf.R10, key, bpf.R0)
	c.lookUp(p.pending, key)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "new")
	c.Load(bpf.Load64, bpf.R1, bpf.R0, pendingSP)
	c.note(b, cpu, bpf.R0, 0)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	c.Jump(bpf.JumpGe, bpf.R1, bpf.R9, 0, "end") // an outer call goes on: this one is within it
	c.count(countUnended)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("new")
	c.note(b, cpu, bpf.R10, value)
	c.update(p.pending, key, value)
	return c.end()
}

// note writes what is kept of a call: its stack pointer (r9), its size (r8), and where the result goes.
func (c *probeCode) note(b *Begin, cpu *arch.CPU, to bpf.Reg, at int) {
	c.Store(to, at+pendingSP, bpf.R9)
	c.Store(to, at+pendingSize, bpf.R8)
	c.argument(bpf.R2, b.Out, cpu)
	c.Store(to, at+pendingOut, bpf.R2)
}

func (c *probeCode) update(fd, key, value int) {
	c.MapFD(bpf.R1, fd)
	c.stackAt(bpf.R2, key)
	c.stackAt(bpf.R3, value)
	c.Imm(bpf.MovImm, bpf.R4, bpfUpdateAlways)
	c.Call(bpf.MapUpdate)
}

// giveBack removes the piece at the address in r8 from the map, if it is there.
func (c *probeCode) giveBack(kept, key int) {
	c.Store(bpf.R10, key, bpf.R8)
	c.lookUp(kept, key) // a look-up needs no lock, deleting does
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "not kept")
	c.MapFD(bpf.R1, kept)
	c.stackAt(bpf.R2, key)
	c.Call(bpf.MapDelete)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "not kept")
	c.count(countFreed)
	c.Label("not kept")
}

func (p *Pairing) freeProgram(cpu *arch.CPU, counts int) *probeCode {
	c := newPairCode(counts)
	c.argument(bpf.R8, 1, cpu)
	c.count(countFrees)
	if p.Length > 0 {
		c.onlyWhole(p, p.Length, cpu)
	}
	c.giveBack(p.Kept.fd, -pairKey)
	return c.end()
}

// noAccessProgram removes the piece that a call makes inaccessible.
func (p *Pairing) noAccessProgram(b *Begin, cpu *arch.CPU, counts int) *probeCode {
	c := newPairCode(counts)
	c.argument(bpf.R1, b.Access, cpu)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	c.argument(bpf.R8, 1, cpu)
	c.count(countFrees)
	c.onlyWhole(p, b.Size, cpu)
	c.giveBack(p.Kept.fd, -pairKey)
	return c.end()
}

// onlyWhole ends the program unless the call gives back the whole piece at the address in r8. The argument with that
// number says how much it gives back.
func (c *probeCode) onlyWhole(p *Pairing, length int, cpu *arch.CPU) {
	c.Store(bpf.R10, -pairKey, bpf.R8)
	c.lookUp(p.Kept.fd, -pairKey)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R2, bpf.R0, pieceOwn)
	c.argument(bpf.R1, length, cpu)
	c.Jump(bpf.JumpGe, bpf.R1, bpf.R2, 0, "all")
	c.count(countParts)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("all")
}

// oldProgram makes the program that removes the piece that a call replaces by a new one.
func (p *Pairing) oldProgram(b *Begin, cpu *arch.CPU, counts int) *probeCode {
	c := newPairCode(counts)
	c.argument(bpf.R8, b.Old, cpu)
	c.count(countFrees)
	c.giveBack(p.Kept.fd, -pairKey)
	return c.end()
}

// endOfCall puts the size of the memory that a call has returned into r8, and its address into the record. It ends the
// program if no call ends here, or if the call returned no memory.
func (c *probeCode) endOfCall(p *Pairing, cpu *arch.CPU, data int) {
	addr, key := data+dataCopies+pairedAddr, data-pairKey
	c.Call(bpf.GetCurrentPIDTGID)
	c.Store(bpf.R10, key, bpf.R0)
	c.lookUp(p.pending, key)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R1, bpf.R0, pendingSP)
	c.Load(bpf.Load64, bpf.R2, bpf.R6, int(cpu.Probe.Offsets[cpu.SP]))
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "end")
	result := int(cpu.Probe.Offsets[cpu.SyscallResult]) // a C function returns in the same register
	if p.clears {
		c.argument(bpf.R1, 2, cpu)
		c.Imm(bpf.LeftImm, bpf.R1, 32) // an int
		c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
		result = cpu.Probe.Arg(1)
	}
	c.Zero(bpf.R0, pendingSP)
	c.Load(bpf.Load64, bpf.R8, bpf.R0, pendingSize)
	c.Load(bpf.Load64, bpf.R3, bpf.R0, pendingOut)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, result)
	c.Store(bpf.R10, addr, bpf.R1)
	c.Jump(bpf.JumpEqImm, bpf.R3, 0, 0, "told")
	c.Imm(bpf.LeftImm, bpf.R1, 32) // an int
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	c.readUser(addr, 8)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "end")
	c.Label("told")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, addr)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, -1, "end") // MAP_FAILED
}

// keep puts the piece into the map, with what the sample stands for (r8). It ends the program if the map is full.
func (c *probeCode) keep(p *Pairing, data int) {
	addr, when, value := data+dataCopies+pairedAddr, data+dataCopies+pairedWhen, data-pieceAll
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, when, bpf.R0)
	c.Store(bpf.R10, value+pieceWhen, bpf.R0)
	c.Store(bpf.R10, value+pieceStood, bpf.R8)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, data+dataOwn)
	c.Store(bpf.R10, value+pieceOwn, bpf.R1)
	c.update(p.Kept.fd, addr, value)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "kept")
	c.count(countFull)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("kept")
}

// Commands of bpf(2) that read maps.
const (
	bpfLookupElem = 1
	bpfNextKey    = 4
)

// At returns the piece at an address, if it is kept.
func (k *Kept) At(addr uint64) (piece Piece, ok bool) {
	if k.fd < 0 {
		return piece, false
	}
	key, to := new(uint64), new(Piece)
	*key = addr
	ok = mapElement(k.fd, bpfLookupElem, key, unsafe.Pointer(to))
	return *to, ok
}

// Each calls do for all pieces. It is for after the run, when nothing changes the map.
func (k *Kept) Each(do func(addr uint64, piece Piece)) {
	if k.fd < 0 {
		return
	}
	eachKey(k.fd, MostKept, func(addr uint64) {
		if piece, ok := k.At(addr); ok {
			do(addr, piece)
		}
	})
}

// Close closes the map.
func (k *Kept) Close() {
	if k.fd >= 0 {
		unix.Close(k.fd)
		k.fd = -1
	}
}
