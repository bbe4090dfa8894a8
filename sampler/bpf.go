//go:build linux

package sampler

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An assembler for the few BPF instructions that goprof's programs use, and the system call that loads them
// (Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h).

// bpfReg is one of BPF's registers. r0 is a call's result. r1 to r5 are a call's arguments, and the call destroys them.
// A call keeps r6 to r9. r10 points behind the stack of 512 bytes.
type bpfReg uint8

const (
	r0 bpfReg = iota
	r1
	r2
	r3
	r4
	r5
	r6
	r7
	r8
	r9
	r10
)

// Operation codes. The lowest three bits are the class: LD, LDX, ST, STX, JMP, ALU64.
const (
	bpfLoadWide  = 0x18 // a constant of 64 bits, in two instructions
	bpfLoad32    = 0x61
	bpfLoad64    = 0x79
	bpfStore64   = 0x7b
	bpfStoreZero = 0x7a
	bpfMov       = 0xbf
	bpfMovImm    = 0xb7
	bpfAdd       = 0x0f
	bpfAddImm    = 0x07
	bpfSub       = 0x1f
	bpfAndImm    = 0x57
	bpfMulImm    = 0x27
	bpfLeftImm   = 0x67
	bpfRight     = 0x7f
	bpfRightImm  = 0x77
	bpfCall      = 0x85
	bpfExit      = 0x95
	bpfJumpEqImm = 0x15
	bpfJumpNeImm = 0x55
	bpfJumpGtImm = 0x25 // unsigned
	bpfJumpGe    = 0x3d // unsigned

	bpfMapValue = 2 // of bpfLoadWide: the address of a map's only value

	bpfKtimeGetNS        = 5   // bpf_ktime_get_ns: CLOCK_MONOTONIC
	bpfGetCurrentPIDTGID = 14  // bpf_get_current_pid_tgid: the process << 32 | the thread
	bpfProbeReadUser     = 112 // bpf_probe_read_user(to, size, from): 0, or an error where memory is not present
)

// bpfInsn is struct bpf_insn.
type bpfInsn struct {
	op   uint8
	regs uint8 // destination, and source << 4
	off  int16
	imm  int32
}

// bpfCode is a program being written. Jumps go forward, to labels that are placed later.
type bpfCode struct {
	insns []bpfInsn
	jumps map[string][]int
}

func (c *bpfCode) op(op uint8, dst, src bpfReg, off int, imm int64) {
	c.insns = append(c.insns, bpfInsn{op, uint8(dst) | uint8(src)<<4, int16(off), int32(imm)})
}

// loadWide loads a constant of 64 bits.
func (c *bpfCode) loadWide(dst bpfReg, v uint64) {
	c.op(bpfLoadWide, dst, 0, 0, int64(int32(v)))
	c.op(0, 0, 0, 0, int64(int32(v>>32)))
}

// value loads the address of the value of the map behind a descriptor.
func (c *bpfCode) value(dst bpfReg, fd int) {
	c.op(bpfLoadWide, dst, bpfMapValue, 0, int64(fd))
	c.op(0, 0, 0, 0, 0)
}

func (c *bpfCode) load(op uint8, dst, from bpfReg, off int) { c.op(op, dst, from, off, 0) }
func (c *bpfCode) store(to bpfReg, off int, src bpfReg)     { c.op(bpfStore64, to, src, off, 0) }
func (c *bpfCode) zero(to bpfReg, off int)                  { c.op(bpfStoreZero, to, 0, off, 0) }
func (c *bpfCode) mov(dst, src bpfReg)                      { c.op(bpfMov, dst, src, 0, 0) }
func (c *bpfCode) imm(op uint8, dst bpfReg, v int)          { c.op(op, dst, 0, 0, int64(v)) }
func (c *bpfCode) call(helper int)                          { c.op(bpfCall, 0, 0, 0, int64(helper)) }

// jump goes to a label if the comparison op holds between dst and src, or between dst and v.
func (c *bpfCode) jump(op uint8, dst, src bpfReg, v int, label string) {
	c.jumps[label] = append(c.jumps[label], len(c.insns))
	c.op(op, dst, src, 0, int64(v))
}

// label is where jumps to it go.
func (c *bpfCode) label(name string) {
	for _, at := range c.jumps[name] {
		c.insns[at].off = int16(len(c.insns) - at - 1)
	}
	delete(c.jumps, name)
}

// The commands of bpf(2).
const (
	bpfMapCreate = 0
	bpfProgLoad  = 5

	bpfMapArray      = 2
	bpfProgPerfEvent = 7
	bpfMmapable      = 1 << 10
)

// bpfNewMap makes a map.
func bpfNewMap(kind, key, value, entries int) (fd int, err error) {
	return bpfMapWith(kind, key, value, entries, 0)
}

func bpfMapWith(kind, key, value, entries, flags int) (fd int, err error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{uint32(kind), uint32(key), uint32(value), uint32(entries),
		uint32(flags)}
	return bpf(bpfMapCreate, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// bpfMap makes an array of one value that can be mapped, and maps the array.
func bpfMap(size int) (fd int, mem []byte, err error) {
	if fd, err = bpfMapWith(bpfMapArray, 4, size, 1, bpfMmapable); err != nil {
		return -1, nil, err
	}
	if mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, mem, nil
}

// bpfLicense is told to the kernel. The kernel gives bpf_probe_read_user to programs under the GPL only.
var bpfLicense = []byte("Dual BSD/GPL\x00")

// loadForPerf loads the program for perf events. If log is not nil, the kernel's verifier writes into it.
func (c *bpfCode) loadForPerf(log []byte) (fd int, err error) { return c.loadAs(bpfProgPerfEvent, log) }

// loadAs loads the program for a kind of events.
func (c *bpfCode) loadAs(kind uint32, log []byte) (fd int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	attr := bpfProgram{kind: kind, insnCount: uint32(len(c.insns))}
	attr.insns, attr.license = bpfAddress(&pin, c.insns), bpfAddress(&pin, bpfLicense)
	if len(log) > 0 {
		attr.logLevel, attr.logSize, attr.log = 1, uint32(len(log)), bpfAddress(&pin, log)
	}
	return bpf(bpfProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// bpfAddress is where a slice lies, for the kernel, until it is unpinned. What is pinned is on the heap: Go's stacks
// move.
func bpfAddress[T any](pin *runtime.Pinner, s []T) uint64 {
	first := unsafe.SliceData(s)
	pin.Pin(first)
	return uint64(uintptr(unsafe.Pointer(first)))
}

// bpfProgram is the part of union bpf_attr for BPF_PROG_LOAD that goprof uses.
type bpfProgram struct {
	kind, insnCount   uint32
	insns, license    uint64
	logLevel, logSize uint32
	log               uint64
	version, flags    uint32
	name              [16]byte
	device, attach    uint32
}

// bpfTries bounds how often a command is repeated that a signal has ended. The kernel gives up checking a program when
// a signal is pending for the thread that loads it (kernel/bpf/verifier.c, do_check: EAGAIN). Go's scheduler sends
// signals to threads that are busy for long. libbpf tries five times.
const bpfTries = 50

func bpf(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	for tries := 1; (e == unix.EAGAIN || e == unix.EINTR) && tries < bpfTries; tries++ {
		fd, _, e = unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	}
	if e != 0 {
		return -1, fmt.Errorf("bpf: %w", e)
	}
	if command != bpfMapCreate && command != bpfProgLoad {
		return 0, nil // no other command makes a descriptor
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}

// BPFFiltered reports whether a seccomp filter answers in the kernel's place. With CAP_BPF the kernel refuses arguments
// that are too long with E2BIG, before it asks for more (kernel/bpf/syscall.c, __sys_bpf, bpf_check_uarg_tail_zero).
func BPFFiltered() bool {
	_, _, e := unix.RawSyscall(unix.SYS_BPF, bpfMapCreate, 0, 1<<20)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}
