//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/process/procfs"
)

// Process is a live process. All its methods may be called from any goroutine.
//
// Three things identify the program that ran when the process was opened: its pid with its start time, a descriptor of
// /proc/PID/mem, and one of /proc/PID/maps. The kernel ties both descriptors to the address space (fs/proc/base.c,
// proc_mem_open). So after an exec or an exit, or if the pid belongs to another process, a read from them returns 0
// bytes. Only the owner may open mem (its mode is 0600). If goprof runs as another user, with CAP_SYS_PTRACE but
// without CAP_DAC_OVERRIDE, it uses maps instead of mem.
//
// process_vm_readv uses only the pid. It would read the memory of a new program without an error (see Alive).
type Process struct {
	pid   int
	tid   atomic.Int32 // a live thread, whose files in /proc are used
	start uint64       // clock ticks since boot
	mem   *os.File
	memAt int64 // the offset for reading mem: nothing is mapped there. For maps, the offset of its first line
	maps  mapsFile
	cpu   *arch.CPU

	// nested: the threads have other numbers in their own pid namespace.
	nested bool
	// noMapFiles is only set by tests: goprof does not use map_files.
	noMapFiles bool

	calls calls
	mu    sync.Mutex // guards the fields below; see lock
	dead  deadFiles
	space
}

// Open opens a process. Its error is an *OpenError.
func Open(pid int) (*Process, error) {
	p := &Process{pid: pid, dead: deadFiles{}}
	if err := p.open(); err != nil {
		p.Close()
		var oe *OpenError
		if !errors.As(err, &oe) {
			err = &OpenError{PID: pid, Err: err}
		}
		return nil, err
	}
	return p, nil
}

func (p *Process) open() error {
	if err := CheckProc(); err != nil {
		return &OpenError{PID: p.pid, Err: err}
	}
	status, err := procfs.ReadStatus(p.pid, p.pid)
	if err != nil {
		return openError(p.pid, err)
	}
	if status.TGID != p.pid {
		return &OpenError{PID: p.pid, Err: ErrNoProcess,
			Detail: fmt.Sprintf("%d is a thread of process %d", p.pid, status.TGID)}
	}
	p.nested = status.Nested()
	stat, _, err := procfs.ReadStat(p.pid, p.pid)
	if err != nil {
		return openError(p.pid, err)
	}
	p.start = stat.Start
	p.tid.Store(int32(p.pid))
	if !stat.Alive() && !p.changeThread() {
		return &OpenError{PID: p.pid, Err: ErrNoProcess,
			Detail: "it has exited and waits for its parent to collect it"}
	}
	p.memAt = 4096
	if p.mem, err = os.Open(p.file("mem")); errors.Is(err, unix.EACCES) {
		p.memAt = 0
		p.mem, err = os.Open(p.file("maps"))
	}
	if errors.Is(err, unix.ESRCH) {
		return &OpenError{PID: p.pid, Err: ErrNoMemory} // kernel threads, since Linux 6.16
	} else if err != nil {
		return openError(p.pid, err)
	}
	if p.maps.File, err = os.Open(p.file("maps")); err != nil {
		return openError(p.pid, err)
	}
	// Check that these descriptors belong to the process that has this start time.
	if again, _, err := procfs.ReadStat(p.pid, p.pid); err != nil || again.Start != p.start {
		return openError(p.pid, unix.ESRCH)
	}
	if err := p.Alive(); err != nil {
		return &OpenError{PID: p.pid, Err: ErrNoMemory}
	}
	p.space.init()
	if err := p.Refresh(); err != nil {
		return openError(p.pid, err)
	}
	// Reading must also work: seccomp and some security modules forbid only that.
	if err := p.tryRead(); err != nil {
		return err
	}
	if p.cpu, err = p.findCPU(); err != nil {
		return openError(p.pid, err)
	}
	return nil
}

func (p *Process) Close() error {
	p.tables.giveAllBack()
	for _, f := range []*os.File{p.mem, p.maps.File} {
		if f != nil {
			f.Close()
		}
	}
	return nil
}

// PID returns the number under which the process was opened.
func (p *Process) PID() int { return p.pid }

// CPU returns the CPU type for which the program was compiled.
func (p *Process) CPU() *arch.CPU { return p.cpu }

// Alive returns ErrGone if the program that was opened no longer runs: the process has exited, or runs another program
// after an exec.
//
// It costs one pread of one byte, about a microsecond. Readers call it once for each round of looks, and before they
// use the result of a walk. Read calls it if an address is bad, and Refresh always calls it.
func (p *Process) Alive() error {
	// Any address is suitable: a bad one is EIO as long as the address space lives, and 0 bytes afterwards
	// (fs/proc/base.c, mem_rw; fs/proc/task_mmu.c, m_start).
	var b [1]byte
	if !p.calls.begin() {
		return ErrSilent
	}
	n, err := unix.Pread(int(p.mem.Fd()), b[:], p.memAt)
	p.calls.end()
	if n == 0 && err == nil {
		return ErrGone
	}
	return nil
}

// file returns the path of a file of /proc for a live thread. /proc/TID works for any thread and, unlike
// /proc/PID/task/TID, has map_files.
func (p *Process) file(name string) string {
	return "/proc/" + strconv.Itoa(int(p.tid.Load())) + "/" + name
}

// changeThread looks for another live thread. It reports whether there is one.
func (p *Process) changeThread() bool {
	tids, err := listThreads(p.pid)
	if err != nil {
		return false
	}
	for _, tid := range tids {
		if st, _, err := procfs.ReadStat(p.pid, tid); err == nil && st.Alive() {
			p.tid.Store(int32(tid))
			return true
		}
	}
	return false
}

// findCPU reads the ELF header of the program, or else of any image in its memory.
func (p *Process) findCPU() (*arch.CPU, error) {
	head := make([]byte, 20)
	if b := p.programHead(len(head)); len(b) == len(head) {
		return cpuOf(b)
	}
	for _, m := range p.Mappings() {
		if m.Offset == 0 && m.Inode != 0 && p.Read(m.Start, head) == nil && bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
			return cpuOf(head)
		}
	}
	if st, _, err := procfs.ReadStat(p.pid, int(p.tid.Load())); err != nil || !st.Alive() {
		return nil, ErrGone // the process has ended, and its memory is gone
	}
	return nil, errors.New("no ELF header found")
}

func cpuOf(head []byte) (*arch.CPU, error) {
	machine := elf.Machine(binary.LittleEndian.Uint16(head[18:]))
	cpu := cpus.ByMachine(machine)
	if cpu == nil || elf.Class(head[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(head[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, fmt.Errorf("%w: %v, %v", ErrUnknownCPU, machine, elf.Class(head[elf.EI_CLASS]))
	}
	return cpu, nil
}

// tryRead reads one byte of the first readable mapping.
func (p *Process) tryRead() error {
	for _, m := range p.Mappings() {
		if m.Perm&PermRead == 0 || m.Inode == 0 {
			continue
		}
		var b [1]byte
		if err := p.Read(m.Start, b[:]); errors.Is(err, ErrNotPermitted) {
			return openError(p.pid, unix.EPERM)
		}
		return nil
	}
	return nil
}
