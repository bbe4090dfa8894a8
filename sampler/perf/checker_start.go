//go:build linux

package perf

import (
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/sampler"
	"goprof/sampler/osthread"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// checkerThread is a checker's Thread, for the goroutine that reads the rings.
type checkerThread struct {
	th     *osthread.Thread
	s      *checker
	wakeFD int // the sampling thread waits for this descriptor

	// The checker waits for these descriptors.
	end, epoll int
}

// startChecker starts a checker of rings (checker.go), or returns nil if the checker cannot run here. The events must
// be set to wake the checker at each sample. chain says whether samples have the kernel's frames.
//
// The checker leaves at most mostLying samples in the rings, or fewer if the queue of a process has less room (watch).
func startChecker(rings []*ring.Ring, cpu *arch.CPU, chain bool) *checkerThread {
	if len(rings) > mostChecked {
		return nil
	}
	th, err := osthread.NewThread(int(unsafe.Sizeof(checker{})))
	if err != nil {
		return nil
	}
	d := &checkerThread{th: th, s: (*checker)(th.Room()), wakeFD: -1, end: -1, epoll: -1}
	if d.openFiles() != nil {
		d.stopChecker()
		return nil
	}
	d.setUp(rings, cpu, chain)
	if d.waitFor(rings) != nil || th.Start(runChecker) != nil {
		d.stopChecker()
		return nil
	}
	return d
}

func (d *checkerThread) openFiles() (err error) {
	if d.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if d.end, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	d.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return err
}

// waitFor adds the descriptors that end the checker's sleep. epoll is edge-triggered: a descriptor ends one sleep each
// time that something comes, read or not.
func (d *checkerThread) waitFor(rings []*ring.Ring) error {
	fds := []int{d.end}
	for _, ring := range rings {
		if ring.FD >= 0 {
			fds = append(fds, ring.FD)
		}
	}
	for _, fd := range fds {
		on := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}
		if err := unix.EpollCtl(d.epoll, unix.EPOLL_CTL_ADD, fd, &on); err != nil {
			return err
		}
	}
	return nil
}

// setUp sets the checker's descriptors and rings, and where samples have the registers that the checker needs.
func (d *checkerThread) setUp(rings []*ring.Ring, cpu *arch.CPU, chain bool) {
	s := d.s
	s.most.Store(mostLying)
	s.wakeFD, s.epoll = uintptr(d.wakeFD), uintptr(d.epoll)
	s.n, s.chain, s.regs = len(rings), chain, uint64(cpu.Perf.Len())
	for i, ring := range rings {
		s.rings[i] = checkedRing{ring.Head, ring.Tail, unsafe.Pointer(unsafe.SliceData(ring.Data)),
			uint64(len(ring.Data)), *ring.Tail}
	}
	s.sp = uint64(slices.Index(cpu.Perf.Order, int8(cpu.SP)))
	s.ask = [2]int8{int8(slices.Index(cpu.Perf.Order, int8(cpu.PC))), -1}
	if cpu.ReturnsInRegister {
		s.ask[1] = int8(slices.Index(cpu.Perf.Order, int8(cpu.LR)))
	}
}

func (d *checkerThread) stopChecker() {
	if d == nil {
		return
	}
	d.s.over.Store(1)
	if d.end >= 0 {
		d.endSleep()
	}
	d.th.End()
	for _, fd := range []int{d.wakeFD, d.end, d.epoll} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (d *checkerThread) endSleep() {
	one := uint64(1)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(d.end), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// mostLying bounds the samples in the rings. goprof reads them together, and each then takes a place of a queue. The
// last of them must still be read in time.
const mostLying = 64

// mostTogether returns how many samples may be read together: half of the queue is for them.
func mostTogether(q *sampler.Queue) int { return min(mostLying, max(q.Size()/2, 1)) }

// watch makes a process known to the checker. It calls keepIn with the place for the process's known code. At a sample
// of another process the checker calls the sampling thread at once.
func (d *checkerThread) watch(pid int, q *sampler.Queue, keepIn func(*process.KnownCode)) {
	if d == nil || keepIn == nil {
		return
	}
	d.s.most.Store(min(d.s.most.Load(), int32(mostTogether(q))))
	for i := range d.s.pids {
		if d.s.pids[i].Load() == 0 {
			keepIn(&d.s.codes[i])
			d.s.pids[i].Store(int32(pid))
			return
		}
	}
}

// leave undoes watch. For a moment the checker may still use the process's place, and call without need.
func (d *checkerThread) leave(pid int, keepIn func(*process.KnownCode)) {
	if d == nil || keepIn == nil {
		return
	}
	for i := range d.s.pids {
		if d.s.pids[i].CompareAndSwap(int32(pid), 0) {
			keepIn(nil)
		}
	}
}

// know makes a thread known to the checker: where its stack begins, or that no sample of it is wanted.
func (d *checkerThread) know(tid int, hint *ptrace.Hint) {
	if d != nil {
		d.s.threads[uint32(tid)%knownTIDs].know(tid, hint)
	}
}

func (th *checkedThread) know(tid int, hint *ptrace.Hint) {
	top := hint.StackTop
	if hint.Skip {
		top = unwanted
	}
	th.top.Store(top)
	th.tid.Store(uint32(tid))
}

func (d *checkerThread) hasCalled() bool { return d.s.calls.Load() != 0 }

// answer resets the call. Call answer before the rings are read.
func (d *checkerThread) answer() {
	if d == nil {
		return
	}
	d.s.calls.Store(0)
	var n uint64 // read in any case: the checker may be about to write
	syscall.RawSyscall(unix.SYS_READ, uintptr(d.wakeFD), uintptr(unsafe.Pointer(&n)), unsafe.Sizeof(n))
}

func (d *checkerThread) cpu() time.Duration {
	if d == nil {
		return 0
	}
	return d.th.CPU()
}
