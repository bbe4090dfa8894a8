//go:build linux

package bpf

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An assembler for the few BPF instructions that goprof's programs use, and the system call that loads them
// (Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h).

// Reg is one of BPF's registers. r0 is a call's result. r1 to r5 are its arguments, which the call destroys. r6 to r9
// survive a call. r10 is the upper end of the stack of 512 bytes.
type Reg uint8

const (
	R0 Reg = iota
	R1
	R2
	R3
	R4
	R5
	R6
	R7
	R8
	R9
	R10
)

// Operation codes. The lowest three bits are the class: LD, LDX, ST, STX, JMP, ALU64.
const (
	LoadWide  = 0x18 // a constant of 64 bits, in two instructions
	Load8     = 0x71
	Load32    = 0x61
	Load64    = 0x79
	store32   = 0x63
	store64   = 0x7b
	storeZero = 0x7a
	Mov       = 0xbf
	MovImm    = 0xb7
	Add       = 0x0f
	AddImm    = 0x07
	Sub       = 0x1f
	AndImm    = 0x57
	MulImm    = 0x27
	LeftImm   = 0x67
	Right     = 0x7f
	RightImm  = 0x77
	Call      = 0x85
	Exit      = 0x95
	JumpEqImm = 0x15
	JumpNeImm = 0x55
	JumpGtImm = 0x25 // unsigned
	JumpGt    = 0x2d // unsigned
	JumpGe    = 0x3d // unsigned
	Goto      = 0x05
	Mul       = 0x2f

	MapFD       = 1 // the source of a LoadWide that loads a map
	bpfMapValue = 2 // the source of a LoadWide that loads the address of a map's only value

	MapLookup         = 1   // bpf_map_lookup_elem(map, key): the value's address, or 0
	MapUpdate         = 2   // bpf_map_update_elem(map, key, value, flags)
	MapDelete         = 3   // bpf_map_delete_elem(map, key)
	KtimeGetNS        = 5   // bpf_ktime_get_ns: CLOCK_MONOTONIC
	Random            = 7   // bpf_get_prandom_u32
	GetCurrentPIDTGID = 14  // bpf_get_current_pid_tgid: the process << 32 | the thread
	GetCurrentComm    = 16  // bpf_get_current_comm(to, size)
	PerfOutput        = 25  // bpf_perf_event_output(ctx, map, flags, data, size)
	GetCurrentTask    = 35  // bpf_get_current_task: the address of the thread's struct task_struct
	ProbeReadUser     = 112 // bpf_probe_read_user(to, size, from): 0, or an error where memory is not present
	ReadKernel        = 113 // bpf_probe_read_kernel(to, size, from)

	ThisCPU = 0xffffffff
)

type bpfInsn struct {
	op   uint8
	regs uint8 // destination, and source << 4
	off  int16
	imm  int32
}

// Code is a program being written. Jumps go forward, to labels that are placed later.
type Code struct {
	insns []bpfInsn
	jumps map[string][]int
}

// New begins a program.
func New() *Code { return &Code{jumps: map[string][]int{}} }

// Op adds one instruction. dst and src are registers. op decides what off and imm mean.
func (c *Code) Op(op uint8, dst, src Reg, off int, imm int64) {
	c.insns = append(c.insns, bpfInsn{op, uint8(dst) | uint8(src)<<4, int16(off), int32(imm)})
}

// LoadWide loads a constant of 64 bits.
func (c *Code) LoadWide(dst Reg, v uint64) {
	c.Op(LoadWide, dst, 0, 0, int64(int32(v)))
	c.Op(0, 0, 0, 0, int64(int32(v>>32)))
}

// Value loads the address of the value of the map behind a descriptor.
func (c *Code) Value(dst Reg, fd int) {
	c.Op(LoadWide, dst, bpfMapValue, 0, int64(fd))
	c.Op(0, 0, 0, 0, 0)
}

// Load loads the memory at from + off. op says how many bytes.
func (c *Code) Load(op uint8, dst, from Reg, off int) { c.Op(op, dst, from, off, 0) }

// Store stores the 64 bits of src at to + off.
func (c *Code) Store(to Reg, off int, src Reg) { c.Op(store64, to, src, off, 0) }

// Store32 stores the lower half of src at to + off.
func (c *Code) Store32(to Reg, off int, src Reg) { c.Op(store32, to, src, off, 0) }

// Zero stores 64 bits of zero at to + off.
func (c *Code) Zero(to Reg, off int) { c.Op(storeZero, to, 0, off, 0) }

// Mov copies src to dst.
func (c *Code) Mov(dst, src Reg) { c.Op(Mov, dst, src, 0, 0) }

// Imm does op with dst and the constant v, and leaves the result in dst.
func (c *Code) Imm(op uint8, dst Reg, v int) { c.Op(op, dst, 0, 0, int64(v)) }

// Output writes bytes of the program's stack to this CPU's event in a map of PerfArray. R6 is the program's context. R0
// is 0 if the ring had room.
func (c *Code) Output(array, from, size int) {
	c.Mov(R1, R6)
	c.MapFD(R2, array)
	c.LoadWide(R3, ThisCPU)
	c.Mov(R4, R10)
	c.Imm(AddImm, R4, from)
	c.Imm(MovImm, R5, size)
	c.Call(PerfOutput)
}

// CallOf calls a function that has a map and a key on the program's stack as its first arguments.
func (c *Code) CallOf(helper, fd, key int) {
	c.MapFD(R1, fd)
	c.Mov(R2, R10)
	c.Imm(AddImm, R2, key)
	c.Call(helper)
}

// Call calls a function of the kernel by its number, with arguments in R1 to R5 and the result in R0.
func (c *Code) Call(helper int) { c.Op(Call, 0, 0, 0, int64(helper)) }

// Jump goes to a label if the comparison op holds between dst and src, or between dst and v.
func (c *Code) Jump(op uint8, dst, src Reg, v int, label string) {
	c.jumps[label] = append(c.jumps[label], len(c.insns))
	c.Op(op, dst, src, 0, int64(v))
}

// Label places a label: jumps to it lead here.
func (c *Code) Label(name string) {
	for _, at := range c.jumps[name] {
		c.insns[at].off = int16(len(c.insns) - at - 1)
	}
	delete(c.jumps, name)
}

// The commands of bpf(2).
const (
	bpfMapCreate      = 0
	UpdateElem        = 2
	DeleteElem        = 3
	bpfProgLoad       = 5
	bpfProgTestRun    = 10
	rawTracepointOpen = 17

	MapHash          = 1
	bpfMapArray      = 2
	PerfArrayMap     = 4
	bpfProgPerfEvent = 7
	bpfMmapable      = 1 << 10
)

// NewMap makes a map of a kind. key and value are sizes in bytes.
func NewMap(kind, key, value, entries int) (fd int, err error) {
	return bpfMapWith(kind, key, value, entries, 0)
}

func bpfMapWith(kind, key, value, entries, flags int) (fd int, err error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{uint32(kind), uint32(key), uint32(value), uint32(entries),
		uint32(flags)}
	return Do(bpfMapCreate, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// NewMapped makes an array of one value that can be mapped, and maps the array.
func NewMapped(size int) (fd int, mem []byte, err error) {
	if fd, err = bpfMapWith(bpfMapArray, 4, size, 1, bpfMmapable); err != nil {
		return -1, nil, err
	}
	if mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, mem, nil
}

// bpfLicense is the program's license. The kernel allows bpf_probe_read_user only to programs under the GPL.
var bpfLicense = []byte("Dual BSD/GPL\x00")

// PerfArray makes the map through which a program finds the event of its CPU. The event of cpus[i] is fds[i].
func PerfArray(cpus []int, fds []int) (int, error) {
	most := 0
	for _, cpu := range cpus {
		most = max(most, cpu+1)
	}
	fd, err := NewMap(PerfArrayMap, 4, 4, most)
	if err != nil {
		return -1, err
	}
	for i, cpu := range cpus {
		if err := Change(UpdateElem, fd, uint32(cpu), binary.NativeEndian.AppendUint32(nil, uint32(fds[i]))); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// Change puts a value into a map (UpdateElem) or removes it (DeleteElem).
func Change(command uintptr, fd int, key uint32, value []byte) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	attr := struct {
		fd, _             uint32
		key, value, flags uint64
	}{fd: uint32(fd), key: bpfAddress(&pin, []uint32{key})}
	if command == UpdateElem {
		attr.value = bpfAddress(&pin, value)
	}
	_, err := Do(command, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// TestRun runs a program for RawTracepoint once, on this OS thread (Linux 5.10).
func TestRun(prog int) error {
	attr := struct { // union bpf_attr, test
		prog uint32
		_    [19]uint32
	}{prog: uint32(prog)}
	_, err := Do(bpfProgTestRun, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// RawTracepoint is the kind of programs that run at a tracepoint (BPF_PROG_TYPE_RAW_TRACEPOINT).
const RawTracepoint = 17

// AttachRaw loads the program and attaches it to a tracepoint, until the descriptor is closed. The program's context is
// the tracepoint's arguments. AttachRaw needs no tracefs (Linux 4.17).
func (c *Code) AttachRaw(tracepoint string) (fd int, err error) {
	prog, err := c.LoadAs(RawTracepoint, nil)
	if err != nil {
		return -1, err
	}
	defer unix.Close(prog) // the attachment keeps the program
	return Attach(tracepoint, prog)
}

// Attach attaches a program of LoadAs to a tracepoint, until the descriptor is closed.
func Attach(tracepoint string, prog int) (fd int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	attr := struct {
		name uint64
		prog uint32
		_    uint32
	}{bpfAddress(&pin, append([]byte(tracepoint), 0)), uint32(prog), 0}
	return Do(rawTracepointOpen, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// LoadForPerf loads the program for perf events. If log is not nil, the kernel's verifier writes into it.
func (c *Code) LoadForPerf(log []byte) (fd int, err error) { return c.LoadAs(bpfProgPerfEvent, log) }

// LoadAs loads the program for a kind of events.
func (c *Code) LoadAs(kind uint32, log []byte) (fd int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	attr := bpfProgram{kind: kind, insnCount: uint32(len(c.insns))}
	attr.insns, attr.license = bpfAddress(&pin, c.insns), bpfAddress(&pin, bpfLicense)
	if len(log) > 0 {
		attr.logLevel, attr.logSize, attr.log = 1, uint32(len(log)), bpfAddress(&pin, log)
	}
	return Do(bpfProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// bpfAddress pins a slice, and returns its address for the kernel. The slice must be on the heap, because Go's stacks
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

// bpfTries bounds how often a command is repeated after a signal has interrupted it. A pending signal makes the kernel
// give up checking a program (kernel/bpf/verifier.c, do_check: EAGAIN). Go's scheduler sends signals to threads that
// are busy for long. libbpf tries five times.
const bpfTries = 50

// Do makes the system call bpf(2), and repeats it if a signal has ended it. attr must not point into a Go stack, which
// may move.
func Do(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	for tries := 1; (e == unix.EAGAIN || e == unix.EINTR) && tries < bpfTries; tries++ {
		fd, _, e = unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	}
	if e != 0 {
		return -1, fmt.Errorf("bpf: %w", e)
	}
	if command != bpfMapCreate && command != bpfProgLoad && command != rawTracepointOpen {
		return 0, nil // no other command makes a descriptor
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}

// Filtered reports whether a seccomp filter answers in the kernel's place. With CAP_BPF, the kernel itself refuses
// arguments that are too long with E2BIG, before it checks anything else (kernel/bpf/syscall.c, __sys_bpf,
// bpf_check_uarg_tail_zero).
func Filtered() bool {
	_, _, e := unix.RawSyscall(unix.SYS_BPF, bpfMapCreate, 0, 1<<20)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}

// MapFD loads the map behind a descriptor.
func (c *Code) MapFD(dst Reg, fd int) {
	c.Op(LoadWide, dst, MapFD, 0, int64(fd))
	c.Op(0, 0, 0, 0, 0)
}
