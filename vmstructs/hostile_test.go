package vmstructs

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"goprof/arch"
	"goprof/process"
	"goprof/testdata/lies"
)

// Bounds for one tour through a hostile JVM.
const (
	maxTourReads = 1 << 17
	maxTourBytes = 512 << 20
)

// liar is a JVM, tiny or recorded, with false words at some addresses. If invents is set, all other addresses also have
// false words.
type liar struct {
	process.Target
	lies    map[uint64]uint64 // by address, a multiple of 8
	fickle  int               // not 0: only some reads are false, so that no two reads agree
	invents bool
	pool    []uint64

	asked   []uint64 // addresses that were read, if it records them
	listens bool
	reads   int
	bytes   int
	// mayRead bounds the number of reads. 0 stands for maxTourReads.
	mayRead int
}

// tooMuch is the panic of Read if a tour exceeds all bounds.
type tooMuch struct{ reads, bytes int }

func (l *liar) Read(addr uint64, p []byte) error {
	l.reads++
	return l.read(addr, p)
}

func (l *liar) read(addr uint64, p []byte) error {
	l.bytes += len(p)
	if most := cmp.Or(l.mayRead, maxTourReads); l.reads > most || l.bytes > most/maxTourReads*maxTourBytes {
		panic(tooMuch{l.reads, l.bytes})
	}
	if l.listens {
		for a := addr &^ 7; a < addr+uint64(min(len(p), 512)); a += 8 {
			l.asked = append(l.asked, a)
		}
	}
	if err := l.Target.Read(addr, p); err != nil {
		if !l.invents || addr < 4096 || addr+uint64(len(p)) < addr {
			return err
		}
		lies.Invent(l.pool, addr, p)
	}
	if l.fickle != 0 && l.reads%(1+l.fickle) == 0 {
		return nil
	}
	lies.Tell(l.lies, addr, p)
	return nil
}

func (l *liar) ReadMany(rs []process.Range) {
	l.reads++
	for i := range rs {
		rs[i].OK = l.read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// hostileWorld is the tiny JVM of one release, and the addresses that may have false words.
type hostileWorld struct {
	*world
	pcs    []uint64
	thread uint64
	pool   []uint64
	asked  []uint64
}

// newHostileWorld makes a JVM that has one of each structure.
func newHostileWorld(t testing.TB, j jdkTables) *hostileWorld {
	w := &hostileWorld{world: newWorld(t, j)}
	nm := sample(w.world)
	stub := w.blob(40, 2, "RuntimeStub - x_Java", 4, 100, 200)
	big := w.blob(100, 600, "StubRoutines (2)", 0, 128, 4096)
	w.thread = w.world.thread(7, StateInVM)
	w.list(w.thread, w.world.thread(8, StateInJava))
	w.pcs = []uint64{nm + nmCodeAt, nm + nmCodeAt + 32, nm + nmCodeAt + 64, nm + nmCodeEnd, stub + 110, big + 200,
		worldLow + 42<<worldLog2, worldHigh + 8}
	b, err := w.vm.Blob(w.pcs[0])
	if err != nil {
		t.Fatal(err)
	}
	d := &w.l.deopt
	array := w.alloc(d.elements + 3*int(d.elementSize))
	w.put64(w.thread+uint64(d.head), array)
	w.put32(array+uint64(d.frames), 2)
	for i := range uint64(2) {
		w.put64(array+uint64(d.elements)+i*d.elementSize+uint64(d.method), b.Method.Addr)
	}
	w.putStubs()
	h := &liar{Target: w.fakeTarget, listens: true}
	if err := w.tour(h, nil); err != nil {
		t.Fatal(err)
	}
	slices.Sort(h.asked)
	w.asked = slices.Compact(h.asked)
	w.pool = append([]uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 63, 0x0101010101010101, w.thread, array,
		b.Method.Addr, worldSegmap, worldHeap}, w.pcs...)
	var word8 [8]byte
	for _, at := range w.asked {
		if w.Read(at, word8[:]) == nil {
			if v := word(word8[:]); v > 1<<20 {
				w.pool = append(w.pool, v, at)
			}
		}
	}
	return w
}

// putStubs makes an interpreter of two codelets.
func (w *hostileWorld) putStubs() {
	l := &w.l.stubs
	queue, code := w.alloc(256), w.alloc(1024)
	if l.callReturn != 0 {
		w.put64(l.callReturn, w.pcs[5])
	}
	w.put64(l.code, queue)
	w.put64(queue+uint64(l.buffer), code)
	w.put32(queue+uint64(l.limit), 512)
	for i := range uint64(2) {
		w.put32(code+256*i+uint64(l.codeletSize), 256)
		w.put64(code+256*i+uint64(l.description), w.cstring("method entry point (kind = zerolocals)"))
	}
	w.pcs = append(w.pcs, code+100, code+300)
}

// tour calls all functions for a JVM. Errors are accepted, wrong results are not.
func (w *hostileWorld) tour(t process.Target, more []uint64) error {
	l := *w.l
	vm := newVM(t, &l)
	if vm.openCodeCache() != nil || vm.openStubs() != nil {
		return nil
	}
	vm.lib = process.Image{Name: libjvm, Start: worldData, End: worldData + 1<<20}
	p := vm.NewProof()
	var code []byte
	pcs := slices.Concat(w.pcs, more)
	for range 2 { // with empty caches, then with full ones
		p.Reset()
		for _, pc := range pcs {
			if b, err := vm.Blob(pc); err == nil {
				if err := tourBlob(vm, b, pc); err != nil {
					return err
				}
				p.Blob(b)
				if b.Method != nil {
					p.Method(b.Method)
				}
				code, _ = vm.Code(b, code)
				vm.ReturnBarrier(b, pc)
			}
			if m, err := vm.Method(pc); err == nil {
				if err := tourMethod(m); err != nil {
					return err
				}
			}
			if c, ok := vm.Codelet(pc); ok && (c.Begin > c.End || !utf8.ValidString(vm.Describe(c))) {
				return fmt.Errorf("%+v", c)
			} else if ok {
				vm.CodeletCode(c)
			}
			if name := vm.StubName(pc); !utf8.ValidString(name) {
				return fmt.Errorf("%q", name)
			}
		}
		p.Check()
		tourThreads(vm)
	}
	off, size := vm.Side()
	side := make([]byte, size)
	if t.Read(w.thread+off, side) == nil {
		vm.AnchorIn(side)
		vm.TrapPC(side)
		if u, err := vm.VFrames(&process.Snapshot{SideAddr: w.thread + off, Side: side}); err == nil {
			if err := tourScopes(u.Frames); err != nil {
				return err
			}
		}
	}
	vm.readVersion()
	vm.Collector()
	vm.JavaCommand()
	vm.JVMArgs()
	return nil
}

func tourBlob(vm *VM, b *Blob, pc uint64) error {
	if pc < b.Begin || pc > b.End || b.Begin < b.Addr || b.End-b.Addr > maxBlobSize || b.FrameSize > maxFrame ||
		!utf8.ValidString(b.Name) {
		return fmt.Errorf("%+v at %#x", b, pc)
	}
	if (b.Method == nil) == b.Kind.IsNmethod() {
		return fmt.Errorf("a %v with method %v", b.Kind, b.Method)
	}
	b.HasPcDesc(pc)
	if tree := vm.Inlinings(b, func(uint64, Site) {}); tree.n > maxSites+maxInline {
		return fmt.Errorf("%d sites", tree.n)
	}
	if b.Method != nil {
		if err := tourInvokes(vm, b.Method); err != nil {
			return err
		}
	}
	for _, exact := range []bool{true, false} {
		if scopes, err := vm.Scopes(b, pc, exact); err == nil {
			if len(scopes) == 0 || scopes[len(scopes)-1].Method != b.Method {
				return fmt.Errorf("scopes %+v of %+v", scopes, b)
			}
			if err := tourScopes(scopes); err != nil {
				return err
			}
		}
	}
	return nil
}

func tourScopes(scopes []Scope) error {
	if len(scopes) > maxInline {
		return fmt.Errorf("%d scopes", len(scopes))
	}
	for _, s := range scopes {
		if s.Method == nil || s.BCI < -1 || s.BCI >= maxBCI || s.Line < 0 {
			return fmt.Errorf("%+v", s)
		}
		if err := tourMethod(s.Method); err != nil {
			return err
		}
	}
	return nil
}

func tourMethod(m *Method) error {
	if m.Name == "" || m.Class == "" || !utf8.ValidString(m.Full()) || !utf8.ValidString(m.Signature) ||
		!utf8.ValidString(m.File) ||
		len(m.lines) > maxLineEntries {
		return fmt.Errorf("%+v", m)
	}
	return nil
}

// tourInvokes finds the method that each kind of invoke calls.
func tourInvokes(vm *VM, m *Method) error {
	vm.Listing(m)
	for op := range uint8(OpInvokeLast - OpInvoke + 1) {
		for _, index := range []uint16{0, 1, 0xffff} {
			vm.Received(m, &Bytecode{Op: OpInvoke + op, Index: index, BCI: int32(index)})
			if callee := vm.Invoked(m, &Bytecode{Op: OpInvoke + op, Index: index}).Method; callee != nil {
				if err := tourMethod(callee); err != nil {
					return err
				}
			}
			handle := &Bytecode{Op: OpInvoke, Handle: true, Index: index}
			vm.InvokeEffect(m, handle)
			for _, callee := range []*Method{vm.Invoked(m, handle).Method, accessedOf(vm, m, handle, index)} {
				if callee != nil && tourMethod(callee) != nil {
					return tourMethod(callee)
				}
			}
		}
	}
	return nil
}

// accessedOf finds the method with which a VarHandle accesses memory.
func accessedOf(vm *VM, m *Method, call *Bytecode, field uint16) *Method {
	found, _ := vm.Accessed(m, call, &Bytecode{Op: OpGetstatic, Index: field})
	return found
}

func tourThreads(vm *VM) {
	threads, _ := vm.Threads()
	waits := vm.NewWaits(true)
	from, _ := vm.Side()
	for _, th := range threads[:min(len(threads), 8)] {
		waits.Read(&process.Snapshot{SideAddr: th.Addr + from, Side: []byte{0}}, arch.CallFutex)
		vm.ThreadName(th)
		vm.ThreadStatus(th)
		vm.Compiling(th)
		vm.AnchorIn(sideOf(vm, th.Addr))
	}
	tourLocks(vm, threads[:min(len(threads), 8)])
	tourPools(vm, threads[:min(len(threads), 8)])
}

func tourPools(vm *VM, threads []Thread) {
	p, err := vm.NewPools()
	if err != nil {
		return
	}
	p.Read(threads)
	for _, th := range threads {
		object, err := vm.threadObject(th)
		if err != nil {
			continue
		}
		o, _ := p.read(object)
		for kind := ThreadPool; kind <= EventLoop; kind++ { // as an object of any kind
			p.readExecutor(&Executor{Kind: kind}, o)
		}
		p.connectionsOf(o)
		p.readConnections(o)
		p.elements(object, 0, maxPoolArray)
		p.text(object)
	}
}

// tourTasks follows an object as if it were a future.
func tourTasks(k *Locks, th Thread, object uint64) {
	s := &liveStack{thread: th.Addr, at: 4096, words: binary.LittleEndian.AppendUint64(nil, object)}
	k.noteTask(s, &LockFrame{Task: true, Saved: 4096, End: 4104})
	if o, ok := k.tasks.p.read(object); ok {
		k.tasks.computed = append(k.tasks.computed, computed{o, th.Addr})
	}
	k.tasks.follow()
	k.computedBy(&Wanted{Lock: Lock{Class: classSignaller, Object: object}})
}

func tourLocks(vm *VM, threads []Thread) {
	k, err := vm.NewLocks()
	if err != nil {
		return
	}
	frames := map[uint64][]LockFrame{}
	for _, th := range threads {
		low := th.StackBase - th.StackSize
		frames[th.Addr] = []LockFrame{
			{Count: 1, SP: low + 64, End: low + 512, Saved: low + 48, FP: low + 256, PC: vm.callRet, Task: true},
			{First: 1, Count: 2, SP: low + 512, End: low + 1024, Saved: low + 256, PC: vm.callRet, Task: true}}
	}
	for _, rests := range []bool{false, true} {
		k.CollectorRests(rests)
		k.Round(threads, frames)
		if c := vm.NewContinuations(); c != nil {
			k.FindVirtual(c)
			k.Round(threads, frames)
		}
		for _, th := range threads {
			if object, err := vm.threadObject(th); err == nil {
				k.wantsUnmounted(object, virtualParked)
				k.wantsUnmounted(object, virtualBlocked)
				tourTasks(k, th, object)
			}
		}
	}
}

// A plan is a list of false words, 8 bytes each: how, where, what.
const planStep = 8

// attack executes a plan and makes a tour.
func (w *hostileWorld) attack(plan []byte) (err error) {
	h := &liar{Target: w.fakeTarget, lies: map[uint64]uint64{}, pool: w.pool}
	defer func() {
		if r := recover(); r != nil {
			much, ok := r.(tooMuch)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%+v", much)
		}
	}()
	var pcs []uint64
	for ; len(plan) >= planStep; plan = plan[planStep:] {
		at := w.asked[uint64(binary.LittleEndian.Uint16(plan[2:]))%uint64(len(w.asked))]
		b := uint64(binary.LittleEndian.Uint32(plan[4:]))
		v := w.value(plan[1], b)
		switch plan[0] % 8 {
		case 0, 1, 2:
			for k := range uint64(1 + plan[0]>>5) {
				h.lies[at+8*k] = v
			}
		case 3, 4, 5: // some bytes of a word: a length, an index, a flag
			var old [8]byte
			w.fakeTarget.Read(at, old[:])
			for k := range b>>8%4 + 1 {
				old[(b+k)%8] = byte(v >> (8 * k))
			}
			h.lies[at] = word(old[:])
		case 6:
			pcs = append(pcs, v)
		case 7:
			h.invents, h.fickle = b&1 == 0, int(b>>1%8)
		}
	}
	return w.tour(h, pcs)
}

func (w *hostileWorld) value(how byte, b uint64) uint64 {
	switch how % 5 {
	case 0, 1:
		return w.pool[b%uint64(len(w.pool))]
	case 2:
		return w.pool[b>>8%uint64(len(w.pool))] + uint64(int64(int8(b)))
	case 3:
		return 1<<(b%64) - b>>8%3
	}
	return b | b<<29
}

func randomPlan(r *rand.Rand) []byte {
	plan := make([]byte, planStep*(1+r.IntN(12)))
	for i := range plan {
		plan[i] = byte(r.Uint32())
	}
	return plan
}

// FuzzHostileVM makes tours of hostile JVMs of every release.
func FuzzHostileVM(f *testing.F) {
	var worlds []*hostileWorld
	r := rand.New(rand.NewPCG(3, 4))
	for _, j := range loadTables(f) {
		worlds = append(worlds, newHostileWorld(f, j))
		f.Add(uint8(len(worlds)-1), randomPlan(r))
	}
	f.Fuzz(func(t *testing.T, jdk uint8, plan []byte) {
		if len(plan) > 64*planStep {
			return
		}
		if err := worlds[int(jdk)%len(worlds)].attack(plan); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHostileVMs is the short form of the fuzzer: the false words are the same each time.
func TestHostileVMs(t *testing.T) {
	attacks := 300
	if testing.Short() { // make test runs all of them
		attacks = 100
	}
	for k, j := range loadTables(t) {
		w := newHostileWorld(t, j)
		r := rand.New(rand.NewPCG(uint64(k), 9))
		for i := range attacks {
			plan := randomPlan(r)
			if err := w.attack(plan); err != nil {
				t.Fatalf("%s, attack %d, %x: %v", j.name, i, plan, err)
			}
		}
	}
}
