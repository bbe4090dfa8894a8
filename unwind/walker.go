// Package unwind turns one process.Snapshot (registers and a copy of the stack) into a profile.Stack.
//
// The walk goes from frame to frame. The code at each pc decides how: interpreted code (interpreted.go), compiled Java
// (compiled.go), another piece of generated code (stub.go), the call stub between C++ and Java (entry.go), native code
// (native.go).
//
// The contract: Words of the stack are used only if they are in the copy that was made while the thread stood still.
// Everything else (code, debug information, metadata) is read later, when it may have changed. After the walk, a
// vmstructs.Proof shows that the data which the walk used was true. If the proof fails, the walk is repeated. A stack
// ends at the thread's root, or with a named profile.Reason. A caller is never guessed. A Walker belongs to one
// goroutine, and allocates only in its first walks.
package unwind

import (
	"cmp"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/unwind/leaf"
	"goprof/vmstructs"
)

// DefaultDepth is the largest number of frames of a stack.
const DefaultDepth = 2048

// Walker walks the stacks of one process.
type Walker struct {
	MaxDepth int
	// RawNames leaves the names of Java methods in the JVM's form. Otherwise the names are those of package naming. Set
	// RawNames before the first walk.
	RawNames bool
	// KeepInterpreted makes InterpretedFrames describe the last walk.
	KeepInterpreted bool

	t      process.Target
	vm     *vmstructs.VM
	cpu    *arch.CPU
	java   arch.JavaRegs
	proof  *vmstructs.Proof
	leaf   *leaf.Finder
	tracer arch.Tracer
	code   []byte // scratch for some instructions

	natives    map[uint64]*nativeSite
	nativeGen  uint64
	sites      map[uint64]*compiledSite
	siteFrames int // the frames of all sites
	exits      map[uint64]exitResult
	returns    map[uint64]exitResult // of native code; see returnAhead
	stubs      map[uint64]stubSite
	calls      map[uint64]callSite
	links      map[leafCall]uint64 // see linkOfLeaf
	methods    map[*vmstructs.Method]*profile.Func
	heldFrom   uint64 // what the VM had read when the caches were empty
	mayHold    uint64 // maxHeldByWalk

	// untouched has the unwind rules of a function's first instruction.
	untouched *process.Row
	// pacMask is the mask of pointer signatures. All threads of a process share it. Until a snapshot has the kernel's
	// mask, it is every bit that could belong to a signature. In addresses of programs these bits are 0.
	pacMask uint64

	// The present walk.
	snap   *process.Snapshot
	own    process.Snapshot // used as snap once the walk has left a signal's stack
	out    *profile.Stack
	cur    cursor
	anchor vmstructs.Anchor // where Java continues after a gap
	// framePointer is that of the last interpreted frame, which is at frameAt in out.Frames.
	framePointer uint64
	frameAt      int
	metEntry     bool // of a continuation; see meetEntry
	isThawing    bool // see thawing
	wantedMore   bool // see orCut
	interpreted  []InterpretedFrame
	// evaluated counts the bytes of DWARF expressions.
	evaluated int
}

// cursor is the present frame of the walk.
type cursor struct {
	regs  arch.Regs
	known uint64 // the registers with known values in this frame
	pc    uint64
	sp    uint64
	// exact: pc is the next instruction of an interrupted frame. Otherwise pc is a return address, and the frame is in the
	// call before it.
	exact bool
	// byRules: DWARF unwind rules led here, out of a native frame.
	byRules bool
	// callee is the compiled method from which the walk came to this frame. interpreted: the walk came from an interpreted
	// method. The words that a call puts on the stack depend on these.
	callee      *vmstructs.Method
	interpreted bool
	// calledSP is the stack pointer that this frame had when it called, if the callee's frame does not end there
	// (arch.InterpLayout.OperandSP); otherwise 0.
	calledSP uint64
	// frameless: the walk came from code without a frame that has called another function and keeps its return address in
	// a register.
	frameless bool
}

// arrive moves the cursor to another frame. It clears everything about the previous frame. It marks the new frame as
// being in a call; a step that knows more changes that afterwards. The step sets the registers.
func (c *cursor) arrive(pc, sp uint64) {
	c.pc, c.sp = pc, sp
	c.exact, c.byRules = false, false
	c.callee, c.interpreted, c.calledSP, c.frameless = nil, false, 0, false
}

// New makes a Walker. If vm is nil, the Walker only knows native frames.
func New(t process.Target, vm *vmstructs.VM) *Walker {
	w := &Walker{MaxDepth: DefaultDepth, mayHold: maxHeldByWalk, t: t, vm: vm, cpu: t.CPU(), code: make([]byte, 4096)}
	w.java = w.cpu.Java
	if vm != nil {
		w.proof, w.java = vm.NewProof(), vm.Java()
	}
	w.tracer = w.cpu.NewTracer(w.java)
	w.leaf = leaf.New(t, vm)
	w.MemoryEnds(1 << 48)
	w.untouched = atEntry(w.cpu)
	w.Forget()
	return w
}

// atEntry returns the unwind rules of a function's first instruction.
func atEntry(cpu *arch.CPU) *process.Row {
	row := &process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: uint8(cpu.SP)}, RA: uint8(cpu.RA)}
	if !cpu.ReturnsInRegister { // the call has pushed the return address
		row.CFA.Off = 8
		row.Saved = []process.SavedReg{{Reg: row.RA, Rule: process.Rule{Kind: process.RuleOffset, Off: -8}}}
	}
	return row
}

// MemoryEnds sets the end of the target's memory. It shows the bits of a signature for snapshots without a mask.
func (w *Walker) MemoryEnds(at uint64) {
	w.pacMask = w.cpu.Signed(at)
}

// The caches are emptied when they reach these sizes. Real programs use fewer.
const (
	maxSites = 1 << 16
	// maxSiteFrames bounds the frames of all compiled sites together. A frame has 40 bytes.
	maxSiteFrames = 1 << 19
	maxMethods    = 1 << 17
	// maxHeld bounds all other data in the caches, in bytes that the VM has read. maxHeldByWalk bounds what one walk adds.
	// The first walk of javac adds 4 MB.
	maxHeld       = 64 << 20
	maxHeldByWalk = 64 << 20
)

// Forget empties all caches. Entries about compiled code belong to its Blob. If code has been replaced, the VM returns
// another Blob, and the old entry is not used.
func (w *Walker) Forget() {
	w.natives = make(map[uint64]*nativeSite)
	w.stubs = make(map[uint64]stubSite)
	w.methods = make(map[*vmstructs.Method]*profile.Func)
	w.sites, w.siteFrames = make(map[uint64]*compiledSite), 0
	w.exits = make(map[uint64]exitResult)
	w.returns = make(map[uint64]exitResult)
	w.calls = make(map[uint64]callSite)
	w.links = make(map[leafCall]uint64)
	w.leaf.Forget()
	w.heldFrom = w.loaded()
}

// loaded is the number of bytes that the VM has read into its caches so far.
func (w *Walker) loaded() uint64 {
	if w.vm == nil {
		return 0
	}
	return w.vm.Loaded()
}

// maxAttempts bounds the attempts of a walk, which is repeated if code has changed.
const maxAttempts = 3

// Warm reads the names of the VM's stubs and the symbols of its library, about 70,000, so that the first walk need not.
func (w *Walker) Warm() {
	if w.vm == nil {
		return
	}
	if image, ok := w.t.Image(w.vm.Library()); ok {
		w.t.Code(image.Start, true)
	}
	w.vm.StubName(w.vm.CallStubReturn())
	w.vm.ListCodelets()
}

// Walk walks snap's stack into out, whose Frames are reused.
func (w *Walker) Walk(snap *process.Snapshot, out *profile.Stack) { w.run(snap, out, w.walk) }

// WalkUnstopped walks the stack of a thread that was looked at without a stop. Only pc and sp of its registers are
// known.
func (w *Walker) WalkUnstopped(snap *process.Snapshot, out *profile.Stack) {
	w.run(snap, out, w.walkUnstopped)
}

// Together is one walk of WalkAll.
type Together struct {
	Snap      *process.Snapshot
	Unstopped bool           // see WalkUnstopped
	Out       *profile.Stack // its Frames are reused
	Since     int64          // the result of Since for this walk
}

// WalkAll makes some walks, and proves the data of all of them with one read, which costs little more than the read for
// one walk. If some data has changed, it makes each walk separately.
func (w *Walker) WalkAll(walks []Together) {
	if w.vm != nil && w.proveAll(walks) {
		return
	}
	for i := range walks {
		t := &walks[i]
		w.run(t.Snap, t.Out, w.way(t.Unstopped))
		t.Since = w.Since()
	}
}

// proveAll makes all walks, and then proves their data with one read. It returns false if any of the data has changed.
func (w *Walker) proveAll(walks []Together) bool {
	w.proof.Reset()
	for i := range walks {
		t := &walks[i]
		w.prepare(t.Snap, t.Out)
		w.begin()
		t.Out.Truncated = w.cut(w.way(t.Unstopped)())
		w.proof.End()
	}
	if ok, err := w.proof.Check(); !ok || err != nil {
		return false
	}
	for i := range walks {
		walks[i].Since = w.proof.SinceOf(i)
	}
	return true
}

func (w *Walker) way(unstopped bool) func() profile.Reason {
	if unstopped {
		return w.walkUnstopped
	}
	return w.walk
}

// prepare sets the snapshot and the result of the next walks.
func (w *Walker) prepare(snap *process.Snapshot, out *profile.Stack) {
	w.snap, w.out = snap, out
	w.pacMask = cmp.Or(snap.PACMask, w.pacMask)
	w.trimCaches()
}

// run repeats a walk until the data that the walk has used proves true, up to maxAttempts times.
func (w *Walker) run(snap *process.Snapshot, out *profile.Stack, walk func() profile.Reason) {
	w.prepare(snap, out)
	for range maxAttempts {
		w.snap = snap // an earlier attempt may have replaced the snapshot
		if w.vm != nil {
			w.proof.Reset()
		}
		w.begin()
		out.Truncated = w.cut(walk())
		if w.vm == nil {
			return
		}
		ok, err := w.proof.Check()
		if err != nil {
			out.Truncated = profile.UnreadableMemory
			return
		}
		if ok {
			return
		}
	}
	out.Frames = out.Frames[:0]
	out.Truncated = profile.CodeChanged
}

// Since returns the time since which all data of the last walk is known to be unchanged. In an older snapshot, other
// code may have been at the same address.
func (w *Walker) Since() int64 {
	if w.vm == nil {
		return 0
	}
	return w.proof.Since()
}

// cut shortens the stack to MaxDepth frames, because the last step may have found many inlined methods.
func (w *Walker) cut(why profile.Reason) profile.Reason {
	if len(w.out.Frames) <= w.MaxDepth {
		return why
	}
	w.out.Frames = w.out.Frames[:w.MaxDepth]
	if w.out.Carrier > w.MaxDepth {
		w.out.Carrier = 0
	}
	return profile.TooDeep
}

func (w *Walker) trimCaches() {
	gen := w.t.Generation()
	if gen != w.nativeGen || len(w.natives) > maxSites || len(w.stubs) > maxSites || w.siteFrames > maxSiteFrames ||
		len(w.sites) > maxSites ||
		len(w.exits) > maxSites || len(w.calls) > maxSites || len(w.methods) > maxMethods ||
		w.loaded()-w.heldFrom > maxHeld {
		w.nativeGen = gen
		w.Forget()
	}
}

// begin sets the cursor to the snapshot's topmost frame.
func (w *Walker) begin() {
	w.out.Frames, w.interpreted = w.out.Frames[:0], w.interpreted[:0]
	w.out.Truncated = profile.Whole
	w.beginContinuation()
	c := &w.cur
	c.regs = w.snap.Regs
	c.known = ^w.snap.Unknown
	c.arrive(c.regs[w.cpu.PC], c.regs[w.cpu.SP])
	c.exact = true
	w.anchor = vmstructs.Anchor{}
	w.evaluated = 0
	if w.vm != nil {
		w.anchor, _ = w.vm.AnchorIn(w.snap.Side)
	}
}

// walk goes from frame to frame. It returns Whole at the thread's root.
func (w *Walker) walk() profile.Reason {
	loaded := w.loaded()
	for len(w.out.Frames) < w.MaxDepth {
		sp, exact := w.cur.sp, w.cur.exact
		w.wantedMore = false
		why, root := w.step()
		if why != profile.Whole || root {
			return w.orCut(why)
		}
		if w.toOwnStack() {
			continue
		}
		// Each physical frame is at a higher address than the previous one. Only code that has its return address in a
		// register can have the same sp as its caller. This is interrupted code, or the interpreter's entry of a method of
		// java.lang.Math while it calls C (templateInterpreterGenerator_aarch64.cpp, generate_math_entry).
		if w.cur.sp < sp || w.cur.sp == sp && !exact && !w.cur.frameless {
			return profile.StackRange
		}
		if w.cur.sp > w.snap.SP+uint64(len(w.snap.Stack)) {
			return w.beyond()
		}
		if w.loaded()-loaded > w.mayHold {
			return profile.UnreadableMemory // no real stack needs that much
		}
	}
	return profile.TooDeep
}

// walkUnstopped walks the native frames whose unwind rules need only pc and sp. Then it continues at the frame anchor.
func (w *Walker) walkUnstopped() profile.Reason {
	w.cur.known = 1<<w.cpu.SP | 1<<w.cpu.PC
	if link, ok := w.linkOfLeaf(); ok {
		w.cur.regs[w.cpu.LR] = link
		w.cur.known |= 1 << w.cpu.LR
	}
	why := w.walk()
	if n := len(w.out.Frames); why == profile.NoUnwindInfo && n > 0 && w.out.Frames[n-1].Kind != profile.Gap {
		w.emit(profile.Frame{Func: unstoppedGap, Kind: profile.Gap, BCI: -1})
		if why = w.toAnchor(profile.NotStopped); why == profile.Whole {
			why = w.walk()
		}
	}
	return why
}

// unstoppedGap stands for native frames whose unwind rules need more registers.
var unstoppedGap = &profile.Func{Name: "[native frames that only a stop can tell]"}

// UnstoppedGap returns the index in a stack of WalkUnstopped at which native frames are missing. It returns -1 if none
// are missing.
func UnstoppedGap(s *profile.Stack) int {
	for i := range s.Frames {
		if s.Frames[i].Func == unstoppedGap {
			return i
		}
	}
	return -1
}

// step emits the frames at the cursor and moves it to the caller.
func (w *Walker) step() (why profile.Reason, root bool) {
	if w.vm == nil || !w.vm.InCode(w.cur.pc) {
		return w.stepNative()
	}
	return w.stepGenerated(), false
}

func (w *Walker) emit(f profile.Frame) {
	f.PC, f.SP = w.cur.pc, w.cur.sp
	if fp, known := w.fp(); known {
		f.FP = fp
	}
	w.out.Frames = append(w.out.Frames, f)
}

// toCaller moves the cursor to a caller. Only the caller's pc, sp and frame pointer are known, because generated code
// preserves no other register.
func (w *Walker) toCaller(pc, sp uint64, fp uint64, fpKnown bool) profile.Reason {
	c := &w.cur
	c.arrive(w.strip(pc), sp)
	c.known = 1<<w.cpu.SP | 1<<w.cpu.PC
	if fpKnown {
		c.regs[w.cpu.FP] = fp
		c.known |= 1 << w.cpu.FP
	}
	c.regs[w.cpu.SP], c.regs[w.cpu.PC] = sp, c.pc
	return profile.Whole
}

// strip removes pointer authentication from a code address.
func (w *Walker) strip(pc uint64) uint64 { return pc &^ w.pacMask }

func (w *Walker) isKnown(reg int) bool { return w.cur.known&(1<<reg) != 0 }

// fp returns the frame pointer register, if its value is known in this frame.
func (w *Walker) fp() (uint64, bool) {
	return w.cur.regs[w.cpu.FP], w.isKnown(w.cpu.FP)
}
