//go:build linux

package oracle

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/ptrace"
)

// stopped stops one thread, takes a snapshot as the sampler does, calls during while the
// thread still stands, and lets it go. It is for tests that must see more than the
// sampler takes.
func stopped(p *process.Process, tid int, h ptrace.Hint, during func(*process.Snapshot)) error {
	// Only the OS thread that has stopped it can let it go.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return err
	}
	var sig uintptr
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return err
		}
		if !status.Stopped() {
			return errors.New("the thread has ended")
		}
		if status>>16 == 0 { // a signal on its way: pass it on, our stop comes next
			unix.PtraceCont(tid, int(status.StopSignal()))
			continue
		}
		break
	}
	defer unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, sig, 0, 0)
	cpu := p.CPU()
	regs := make([]byte, 512)
	iov := unix.Iovec{Base: &regs[0], Len: uint64(len(regs))}
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), unix.NT_PRSTATUS,
		uintptr(unsafe.Pointer(&iov)), 0, 0); e != 0 {
		return e
	}
	snap := &process.Snapshot{TID: tid, PACMask: pacMask(tid)}
	snap.Syscall, _ = cpu.DecodeRegs(regs, &snap.Regs)
	snap.SP = snap.Regs[cpu.SP]
	if err := copyStack(p, h, snap); err != nil {
		return err
	}
	if h.Side != 0 {
		snap.Side, snap.SideAddr = make([]byte, h.SideLen), h.Side
		if err := p.Read(h.Side, snap.Side); err != nil {
			return err
		}
		copyFollowed(p, h, snap)
	}
	copyTrail(p, snap)
	during(snap)
	return nil
}

// copyFollowed copies what a pointer in the side piece points at, as the sampler does.
func copyFollowed(p *process.Process, h ptrace.Hint, snap *process.Snapshot) {
	snap.RunsOn = true
	if h.FollowLen == 0 {
		return
	}
	if at := binary.LittleEndian.Uint64(snap.Side[h.FollowAt:]); at != 0 {
		b := make([]byte, h.FollowLen)
		local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
		if n, err := unix.ProcessVMReadv(p.PID(), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}},
			0); err == nil {
			snap.Followed = b[:n]
		}
	}
}

// trailOfTest is followed by stopped. Only TestShadowVirtual sets it, which must not be parallel.
var trailOfTest process.Trail

// copyTrail copies what a trail leads to, as the sampler does.
func copyTrail(p *process.Process, snap *process.Snapshot) {
	w := &trailOfTest
	if !w.Known || len(snap.Side) < w.Frame+8 {
		return
	}
	take := func(addr uint64, size int) []byte {
		b := make([]byte, size)
		if p.Read(addr, b) != nil {
			return nil
		}
		snap.Trail.List = append(snap.Trail.List, process.Piece{Addr: addr, Size: size})
		snap.Trail.Bytes = append(snap.Trail.Bytes, b...)
		return b
	}
	reference := func(b []byte, off int) uint64 {
		if off+4 > len(b) || off+8 > len(b) && !w.Narrow {
			return 0
		}
		if n := binary.LittleEndian.Uint32(b[off:]); w.Narrow && n != 0 {
			return w.Base + uint64(n)<<w.Left
		} else if w.Narrow {
			return 0
		}
		return binary.LittleEndian.Uint64(b[off:]) >> w.Right
	}
	frame := binary.LittleEndian.Uint64(snap.Side[w.Frame:])
	off := frame + uint64(w.Owner) - snap.SP
	if frame == 0 || off > uint64(len(snap.Stack)-8) {
		return
	}
	owner := take(binary.LittleEndian.Uint64(snap.Stack[off:]), w.OwnerSize)
	if owner == nil {
		return
	}
	block := reference(owner, w.First)
	for i := 0; i < process.MaxTrailBlocks && block != 0; i++ {
		head := take(block, w.HeadSize)
		if len(head) < max(w.Begin, w.End, w.Less)+4 { // as long as no block has been seen, its size is not known
			return
		}
		begin, end := int(int32(binary.LittleEndian.Uint32(head[w.Begin:]))),
			int(int32(binary.LittleEndian.Uint32(head[w.End:])))
		if w.Less != 0 {
			end -= int(int32(binary.LittleEndian.Uint32(head[w.Less:])))
		}
		if 0 <= begin && begin < end && end < process.MaxTrailBytes/8 {
			take(block+uint64(w.HeadSize+begin*8-w.Below), (end-begin)*8+w.Below)
		}
		block = reference(head, w.Next)
	}
}

// pacMask is what the sampler reads, too, of a stopped thread (sampler/ptrace/pause.go, getPAC).
func pacMask(tid int) uint64 {
	const ntARMPACMask = 0x406
	var masks [2]uint64 // of data addresses, of code addresses
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&masks)), Len: uint64(unsafe.Sizeof(masks))}
	unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), ntARMPACMask, uintptr(unsafe.Pointer(&iov)), 0, 0)
	return masks[1] // 0 if the CPU has none
}

// copyStack copies what the sampler does: of another stack than the thread's own (a signal's) as
// much as there is.
func copyStack(p *process.Process, h ptrace.Hint, snap *process.Snapshot) error {
	const unknown = 64 << 10
	known := h.StackTop > snap.SP && snap.SP >= h.StackLow
	want := unknown
	if known {
		want = int(min(h.StackTop-snap.SP, ptrace.DefaultStackLimit))
	}
	snap.Stack = make([]byte, want)
	local := []unix.Iovec{{Base: &snap.Stack[0], Len: uint64(want)}}
	n, err := unix.ProcessVMReadv(p.PID(), local, []unix.RemoteIovec{{Base: uintptr(snap.SP), Len: want}}, 0)
	if err != nil {
		return err
	}
	snap.Stack = snap.Stack[:n]
	if snap.SP < h.StackLow || snap.SP >= h.StackTop {
		copyUnder(p, h, snap)
	}
	snap.Cut = n == want && (!known || snap.SP+uint64(n) < h.StackTop)
	return nil
}

// copyUnder copies the thread's own stack from the lowest word that another one holds of it.
func copyUnder(p *process.Process, h ptrace.Hint, snap *process.Snapshot) {
	snap.UnderSP = h.StackTop
	for at := 0; at+8 <= len(snap.Stack); at += 8 {
		if word := binary.LittleEndian.Uint64(snap.Stack[at:]); word >= h.StackLow && word < snap.UnderSP {
			snap.UnderSP = word &^ 7
		}
	}
	snap.Under = make([]byte, h.StackTop-snap.UnderSP)
	if p.Read(snap.UnderSP, snap.Under) != nil {
		snap.Under = nil
	}
}

// monotonic is the clock by which snapshots are dated.
func monotonic() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// lockThread keeps the test on one OS thread, which ptrace wants.
func lockThread(t testing.TB) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
}

// pause lets the target run on for a moment that is never the same.
func pause(i int) { time.Sleep(time.Duration(i*7919%400) * time.Microsecond) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
