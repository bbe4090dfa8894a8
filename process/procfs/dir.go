//go:build linux

package procfs

import (
	"math"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Dir reads /proc/PID without allocating. It keeps descriptors of the directories, and its buffers hold names and
// contents. The result of a method is valid until the next call of a method.
type Dir struct {
	PID   int
	task  int // descriptor of /proc/PID/task
	pidfd int
	child int8 // 1: a child of goprof, -1: not, 0: not yet checked
	name  [64]byte
	buf   [4096]byte
}

// OpenDir opens the directory of a process. The process need not exist.
func OpenDir(pid int) *Dir {
	p := &Dir{PID: pid, task: -1, pidfd: -1}
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", flags, 0); err == nil {
		p.task = fd
	}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		p.pidfd = fd
	}
	return p
}

// Exists reports whether the process existed at OpenDir.
func (p *Dir) Exists() bool { return p.task >= 0 }

func (p *Dir) Close() {
	for _, fd := range []*int{&p.task, &p.pidfd} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// EndFD is a descriptor that becomes readable when the process ends. It is -1 if there is none.
func (p *Dir) EndFD() int { return p.pidfd }

// Ended reports whether the whole process has ended. It is also true if the parent has not reaped the process yet, or
// if another process has its pid now (a pidfd stays with its process).
func (p *Dir) Ended() bool {
	if p.pidfd < 0 { // before Linux 5.3
		return p.task < 0 || unix.Faccessat(p.task, ".", unix.F_OK, 0) != nil || unix.Kill(p.PID, 0) == unix.ESRCH
	}
	fds := [1]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	zero := unix.Timespec{}
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1,
		uintptr(unsafe.Pointer(&zero)), 0, 0, 0)
	return n == 1
}

// Owns reports whether tid is a thread of this process, and not of a later process with the same pid.
func (p *Dir) Owns(tid int) bool {
	_, _, e := syscall.RawSyscall(unix.SYS_TGKILL, uintptr(p.PID), uintptr(tid), 0)
	return e != unix.ESRCH && !p.Ended()
}

// Open opens /proc/PID/task/TID/file.
func (p *Dir) Open(tid int, file string) (int, error) {
	name := strconv.AppendInt(p.name[:0], int64(tid), 10)
	name = append(name, '/')
	name = append(name, file...)
	return p.openName(p.task, append(name, 0))
}

func (p *Dir) openName(dir int, name []byte) (int, error) {
	for {
		fd, _, e := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
			unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		switch e {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, e
		}
	}
}

// ReadFD reads an open file from its beginning into the buffer. It returns nil if that fails.
func (p *Dir) ReadFD(fd int) []byte {
	n, _, e := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&p.buf)),
		uintptr(len(p.buf)), 0, 0, 0)
	if e != 0 {
		return nil
	}
	return p.buf[:n]
}

// Read reads /proc/PID/task/TID/file. It returns nil if that fails.
func (p *Dir) Read(tid int, file string) []byte {
	fd, err := p.Open(tid, file)
	if err != nil {
		return nil
	}
	b := p.ReadFD(fd)
	unix.Close(fd)
	return b
}

// FileLink returns up to 64 bytes of the text of the link /proc/PID/fd/FD. It returns nil if there is no such
// descriptor.
func (p *Dir) FileLink(fd uint64) []byte {
	if fd > 1<<31-1 {
		return nil
	}
	name := append(p.name[:0], "/proc/"...)
	name = strconv.AppendInt(name, int64(p.PID), 10)
	name = append(name, "/fd/"...)
	name = strconv.AppendInt(name, int64(fd), 10)
	name = append(name, 0)
	cwd := unix.AT_FDCWD
	n, _, e := syscall.RawSyscall6(unix.SYS_READLINKAT, uintptr(cwd), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(&p.buf)), 64, 0, 0)
	if e != 0 {
		return nil
	}
	return p.buf[:n]
}

// LastCPU is the CPU that a thread last ran on, -1 if unknown.
func (p *Dir) LastCPU(tid int) int {
	s, _ := ParseStat(p.Read(tid, "stat"))
	return s.CPU
}

// Status returns a thread's state letter (0 if there is no such thread) and its tracer.
func (p *Dir) Status(tid int) (state byte, tracer int) {
	b := p.Read(tid, "status")
	return StatusState(b), StatusTracer(b)
}

// Tracer returns the thread that traces a thread, which may belong to any process. It returns 0 if there is none.
func (p *Dir) Tracer(tid int) int {
	name := append(strconv.AppendInt(append(p.name[:0], "/proc/"...), int64(tid), 10), "/status\x00"...)
	fd, err := p.openName(unix.AT_FDCWD, name)
	if err != nil {
		return 0
	}
	tracer := StatusTracer(p.ReadFD(fd))
	unix.Close(fd)
	return tracer
}

// IsOwnChild reports whether goprof started the target.
func (p *Dir) IsOwnChild() bool {
	if p.child == 0 {
		p.child = -1
		parent, ok := StatusParent(p.Read(p.PID, "status"))
		if ok && parent == unix.Getpid() {
			p.child = 1
		}
	}
	return p.child == 1
}

// lists has buffers for Numbers, which are shared because an agent has hundreds of Dirs.
var lists = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Threads calls each for every present thread of the process.
func (p *Dir) Threads(each func(tid int)) error {
	if _, err := unix.Seek(p.task, 0, unix.SEEK_SET); err != nil {
		return err
	}
	return Numbers(p.task, each)
}

// Numbers calls each for every name in an open directory that is a number.
func Numbers(dir int, each func(n int)) error {
	buf := lists.Get().(*[32 << 10]byte)
	defer lists.Put(buf)
	for {
		n, err := unix.Getdents(dir, buf[:])
		if err != nil {
			return err
		}
		if n <= 0 {
			return nil
		}
		EachTask(buf[:n], each)
	}
}

// Count is the number of threads, -1 if it cannot be read. It is the number of links of the task directory minus two
// (fs/proc/base.c, proc_task_getattr). Reading this is cheaper than reading any file there.
func (p *Dir) Count() int {
	var st unix.Stat_t
	if unix.Fstat(p.task, &st) != nil {
		return -1
	}
	return int(st.Nlink) - 2
}

// Born is when a thread began, in ticks since the machine was started. It is 0 if there is no such thread.
func (p *Dir) Born(tid int) uint64 {
	s, _ := ParseStat(p.Read(tid, "stat"))
	return s.Start
}

// PassedOn is for a process that has ended. It returns the time, by the monotonic clock, at which another process got
// the same pid. The time may be a tick too early. It is math.MaxInt64 while no other thread has the number.
func (p *Dir) PassedOn() int64 {
	if p.Born(p.PID) != 0 { // its parent has not reaped it yet
		return math.MaxInt64
	}
	var boot, now unix.Timespec
	stat, _, err := ReadStat(p.PID, p.PID)
	if err != nil {
		return math.MaxInt64
	}
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return math.MinInt64
	}
	return int64(Ticks(stat.Start)) - (boot.Nano() - now.Nano())
}

// AnyThread returns a live thread of the process. The leader may have ended before the others.
func (p *Dir) AnyThread() (tid int) {
	tid = p.PID
	if state, _ := p.Status(tid); p.task < 0 || state != 'Z' && state != 'X' {
		return tid
	}
	p.Threads(func(t int) {
		if state, _ := p.Status(t); tid == p.PID && state != 0 && state != 'Z' && state != 'X' {
			tid = t
		}
	})
	return tid
}
