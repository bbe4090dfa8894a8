package unwind

import (
	"encoding/binary"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// heapFrame is a frame in a stack chunk. sp is the end of its callee's frame. unextended is the stack pointer that the
// frame itself had when it made the call. They differ if the callee is interpreted, because the locals of such a callee
// are in its caller's frame (runtime/stackChunkFrameStream.inline.hpp: sp and unextended_sp).
type heapFrame struct {
	pc, sp, unextended uint64
}

// chunkFrames walks all frames of a chunk. It returns false if the walk does not end exactly at the chunk's end.
func (w *Walker) chunkFrames(c *process.Chunk) bool {
	pc, ok := chunkWord(c, c.SP-8)
	f := heapFrame{pc: w.strip(pc), sp: c.SP, unextended: c.SP}
	for end := c.End(); ok && f.sp < end; {
		if len(w.out.Frames) >= w.MaxDepth {
			return true
		}
		sp := f.sp
		w.cur.pc, w.cur.sp, w.cur.exact = f.pc, f.sp, false
		if w.vm.InInterpreter(f.pc) {
			f, ok = w.interpretedInChunk(c, f)
		} else {
			f, ok = w.compiledInChunk(c, f)
		}
		ok = ok && f.sp > sp && f.unextended >= f.sp-8*maxExtended && f.unextended <= end
	}
	return ok
}

// maxExtended bounds the words of an interpreted frame's locals that are in its caller's frame (at most 65,535).
const maxExtended = 1 << 16

// maxArguments bounds the words of a method's arguments (JVM specification, 4.3.3), with room for alignment.
const maxArguments = 256 + 2

func chunkWord(c *process.Chunk, addr uint64) (uint64, bool) {
	off := addr - (c.SP - process.ChunkHead)
	if off > uint64(len(c.Stack)) || uint64(len(c.Stack))-off < 8 || addr&7 != 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(c.Stack[off:]), true
}

// compiledInChunk emits the methods of a compiled frame, and returns the frame of its caller. For the oldest frame of
// the chunk, the caller's sp is the chunk's end. It returns false if the frame is inconsistent.
func (w *Walker) compiledInChunk(c *process.Chunk, f heapFrame) (heapFrame, bool) {
	b, err := w.vm.Blob(f.pc)
	if err != nil || b.FrameSize < 1 {
		return f, false
	}
	w.proof.Blob(b)
	pc := f.pc
	switch b.Kind {
	case vmstructs.Nmethod:
		if isDeoptHandler(b, pc) { // see stepCompiled
			orig, ok := chunkWord(c, f.unextended+uint64(int64(b.OrigPC)))
			if !ok || orig < b.Begin || orig >= b.End {
				return f, false
			}
			pc = orig
		}
		if !b.HasPcDesc(pc) || w.emitCompiled(b, pc, false) != profile.Whole {
			return f, false
		}
	case vmstructs.NativeWrapper:
		if w.emitCompiled(b, pc, false) != profile.Whole {
			return f, false
		}
	case vmstructs.RuntimeStub, vmstructs.Safepoint:
		// A virtual thread gives up its carrier inside the VM (runtime/objectMonitor.cpp).
		w.emit(profile.Frame{Func: w.stubFunc(b, pc), Kind: profile.Stub, BCI: -1})
	default:
		return f, false
	}
	next := f.unextended + uint64(b.FrameSize)*8
	if next >= c.End()-16 {
		return heapFrame{sp: c.End(), unextended: c.End()}, next <= c.End()
	}
	caller, ok := chunkWord(c, next-8)
	return heapFrame{pc: w.strip(caller), sp: next, unextended: next}, ok
}

// interpretedInChunk emits the method of an interpreted frame and returns its caller. In the heap the links of such
// frames are distances in words, because the chunk may be moved (cpu/*/stackChunkFrameStream_*.inline.hpp). The method
// and the bytecode pointer are stored as on a stack.
func (w *Walker) interpretedInChunk(c *process.Chunk, f heapFrame) (heapFrame, bool) {
	link, ok := chunkWord(c, f.sp-16)
	fp := f.sp - 16 + link*8
	if !ok || fp < f.sp || fp > c.End() {
		return f, false
	}
	l := w.vm.Interp()
	slot := func(n int) uint64 {
		v, in := chunkWord(c, fp+uint64(int64(n)*8))
		ok = ok && in
		return v
	}
	method, bcp, locals, sender, ret := slot(l.Method), slot(l.BCP), slot(l.Locals), slot(l.SenderSP), slot(1)
	if !ok || !w.emitHeapMethod(method, bcp) {
		return f, false
	}
	if above := fp + locals*8 + 8; above >= c.End() && above-c.End() <= 8*maxArguments {
		// The chunk's oldest frame: its arguments are above the chunk's bottom.
		return heapFrame{sp: c.End(), unextended: c.End()}, true
	}
	return heapFrame{pc: w.strip(ret), sp: fp + 16, unextended: fp + sender*8}, true
}

// emitHeapMethod emits the method of an interpreted frame. It returns false if bcp is not in the method at addr.
func (w *Walker) emitHeapMethod(addr, bcp uint64) bool {
	m, err := w.vm.Method(addr)
	if err != nil {
		return false
	}
	if m.Native {
		w.emitInterpreted(m, -1)
		return true
	}
	bci, ok := m.BCI(bcp)
	if !ok { // another method may now be at that address
		if m, err = w.vm.MethodNow(addr); err != nil {
			return false
		}
		if bci, ok = m.BCI(bcp); !ok {
			return false
		}
	}
	w.emitInterpreted(m, bci)
	return true
}
