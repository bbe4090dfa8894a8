//go:build linux

package events

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/bpf"
	"goprof/sampler/ring"
)

// Reads and writes, by file and peer.
//
// Two programs run where each system call begins and ends (the raw tracepoints sys_enter and sys_exit). They ignore the
// calls of other processes. For each descriptor a map in the kernel has a File: what the descriptor leads to, how often
// it was read and written, how many bytes, and how long that took. These sums are exact even if samples are lost.
//
// A descriptor's number is used again after it was closed. So a File begins with the call that makes the descriptor, or
// with the first call about it, and ends with close or dup2. A File has a number of its own. When it ends, the program
// puts it into a queue, which goprof empties. A call that began with one File and ends with another counts for neither.
//
// If a call of open, connect or accept was seen, the call shows what its descriptor leads to. For other descriptors
// goprof reads the link in /proc. The link counts only if the descriptor still has the same File afterwards.
//
// A thread may try to read, find nothing, wait until there is something (poll of that descriptor alone), and read. This
// counts as one read that lasted from the first try on. A virtual thread does not wait itself: the JDK asks epoll to
// report once when the descriptor is ready (EPOLLONESHOT; sun.nio.ch.EPollPoller), and another thread may read. The
// time in between belongs to the read in the same way. Other waits of epoll belong to no read, because a selector waits
// for any of many.
//
// Names are looked up by getaddrinfo, which has probes at its beginning and its ends, as in pairing.go.

// IO makes the event the calls that read and write files and sockets, and look up names.
type IO struct {
	// Min: shorter calls are counted, but are no samples.
	Min time.Duration
	// Lookup is the first instruction of getaddrinfo, Looked are those with which it ends.
	Lookup, Looked []Probe
	Ledger         *Ledger

	files, fresh, threads, kinds, lookups, scratch int // maps; see the constants below

	namedLast uint64
}

// IOKind is what a call does.
type IOKind uint8

const (
	IORead IOKind = iota
	IOWrite
	IOForce // fsync and its like
	IOConnect
	IOAccept
	IOWait    // until a descriptor is ready, if no call then used it: a selector's wait
	IOOpen    // open; for a host's name, the look-up
	NumIO     // the kinds above have sums
	ioPoll    // the kinds from here on have no sums, but the programs must follow them
	ioEpoll   // epoll_ctl
	ioClose   // close
	ioDup     // dup2
	ioPath    // open; the path is the first argument
	ioRange   // close_range
	ioRestart // restart_syscall
	ioExit    // exit of a thread
)

// ioUnread is a flag beside the kind of a call that returns no number of bytes.
const ioUnread = 1 << 8

// IOSum is the sum of the calls of one kind.
type IOSum struct {
	Calls, Bytes, Nanos, Failed uint64
}

// FileSort is how goprof knows what a File leads to.
type FileSort uint64

const (
	FileUnknown FileSort = iota // only by its link
	FileOpened                  // Name is the path that open was given
	FileConnected
	FileAccepted
	FileLookup // no file: Name is a host's name that was looked up
)

// File is a descriptor from its beginning to its end. It is a value of a map, and the programs know its layout.
type File struct {
	ID         uint64 // the File's number: CLOCK_MONOTONIC when it was first seen
	Sort       FileSort
	since      [2]uint64 // when the present read and write were first tried
	connecting uint64
	Folder     int64 // the folder that a relative path begins at; or unix.AT_FDCWD
	FD         int64
	fresh      uint64 // 1: the File was just seen, 0: it has ended
	Sums       [NumIO]IOSum
	name       [ioName]byte
}

const (
	fileSort       = 8
	fileSince      = 16
	fileConnecting = 32
	fileFolder     = 40
	fileFD         = 48
	fileFresh      = 56
	fileSums       = 64
	sumSize        = 32
	sumBytes       = 8
	sumNanos       = 16
	sumFailed      = 24
	fileName       = fileSums + sumSize*int(NumIO)
	fileSize       = 512
	ioName         = fileSize - fileName
)

// Name returns the path or the host's name. whole is false if there was no room for all of it.
func (f *File) Name() (name string, whole bool) {
	text, _, whole := bytes.Cut(f.name[:], []byte{0})
	return string(text), whole && len(text) < ioName-1
}

// Peer returns the address that connect was given or accept returned. For a Unix socket it returns the name.
func (f *File) Peer() (peer netip.AddrPort, name string) {
	port := binary.BigEndian.Uint16(f.name[2:])
	switch binary.NativeEndian.Uint16(f.name[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(f.name[4:])), port), ""
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(f.name[8:])).Unmap(), port), ""
	case unix.AF_UNIX:
		text := f.name[2:110]
		if len(text) > 0 && text[0] == 0 {
			return peer, "@"
		}
		text, _, _ = bytes.Cut(text, []byte{0})
		return peer, string(text)
	}
	return peer, ""
}

// Note is what the engine reports of a File: its sums, when it has ended, or its link, when it was just seen.
type Note struct {
	File  File
	Ended bool
	Link  string // empty: not known
}

// Ledger keeps the Notes of a run until Take. It outlives the run.
type Ledger struct {
	mu    sync.Mutex
	notes []Note
	IOLost
	files   int // the map, for Find and Rest
	threads int
	// Over is the time at which the run stopped using the maps, 0 before that.
	Over atomic.Int64
}

// IOLost counts what the sums of files lack.
type IOLost struct {
	// Full are calls for which a map had no room. Closed are calls during which their descriptor was closed. QueueFull are
	// calls of files that ended while the queue was full.
	Full, Closed, QueueFull IOCalls
	Polls                   IOCalls // waits for several descriptors
	Tries                   uint64  // calls that found nothing to read, or no room to write
	Unopened                uint64  // files that could not be opened
	Ranges                  uint64  // calls of close_range: the files that they closed still count as open
	Pushed                  uint64  // notes for which there was no room
}

// IOCalls are calls and their time.
type IOCalls struct{ Calls, Nanos uint64 }

// The offsets at which programs count IOLost. They follow the counts of all events.
const (
	countIOFull      = 80
	countIOClosed    = 96
	countIOQueueFull = 112
	countIOPolls     = 128
	countIOTries     = 144
	countIOUnopened  = 152
	countIORanges    = 160
)

const (
	// mostFiles is how many descriptors can have sums at a time, mostFresh how many can be in the queue, and
	// mostIOThreads how many threads can be in a call.
	mostFiles     = 1 << 14
	mostFresh     = 1 << 12
	mostIOThreads = 1 << 14
	mostNotes     = 1 << 16
	// mostCalls is larger than all numbers of system calls.
	mostCalls = 512

	bpfMapArray        = 2
	bpfMapPercpuArray  = 6
	bpfMapQueue        = 22
	bpfLookUpAndDelete = 21
)

// NewLedger makes a Ledger.
func NewLedger() *Ledger { return &Ledger{files: -1, threads: -1} }

// open makes the maps. The Ledger owns its maps from the beginning.
func (o *IO) open(cpu *arch.CPU) (err error) {
	if o == nil {
		return nil
	}
	defer func() { o.Ledger.files, o.Ledger.threads = o.files, o.threads }()
	for _, m := range []struct {
		fd                        *int
		kind, key, value, entries int
	}{{&o.files, bpf.MapHash, 8, fileSize, mostFiles}, {&o.fresh, bpfMapQueue, 0, fileSize, mostFresh},
		{&o.threads, bpf.MapHash, 8, callSize, mostIOThreads}, {&o.kinds, bpfMapArray, 4, 8, mostCalls},
		{&o.lookups, bpfMapLRUHash, 8, lookupSize, mostBuffered}, {&o.scratch, bpfMapPercpuArray, 4, fileSize, 1}} {
		if *m.fd, err = bpf.NewMap(m.kind, m.key, m.value, m.entries); err != nil {
			return &ring.Error{Call: "bpf", Err: err}
		}
	}
	for number, call := range cpu.Calls {
		if kind, ok := ioCalls[call]; ok && number < mostCalls {
			if number == unix.SYS_RECVMMSG || number == unix.SYS_SENDMMSG {
				kind |= ioUnread
			}
			if err := o.setKind(uint32(number), IOKind(kind)); err != nil {
				return &ring.Error{Call: "bpf", Err: err}
			}
		}
	}
	for _, k := range []struct {
		number uint32
		kind   IOKind
	}{{unix.SYS_CLOSE_RANGE, ioRange}, {unix.SYS_EXIT, ioExit}} {
		if err := o.setKind(k.number, k.kind); err != nil {
			return &ring.Error{Call: "bpf", Err: err}
		}
	}
	return nil
}

var ioCalls = map[arch.Call]int{arch.CallRead: int(IORead), arch.CallReceive: int(IORead), arch.CallWrite: int(IOWrite),
	arch.CallSend: int(IOWrite), arch.CallSync: int(IOForce), arch.CallConnect: int(IOConnect),
	arch.CallAccept: int(IOAccept), arch.CallSelect: int(IOWait), arch.CallPoll: int(ioPoll),
	arch.CallOpenAt: int(IOOpen), arch.CallOpen: int(ioPath), arch.CallClose: int(ioClose),
	arch.CallReplace: int(ioDup), arch.CallEpoll: int(ioEpoll), arch.CallRestart: int(ioRestart)}

// loadIO loads the four programs of the event io. They run at the end and at the beginning of a system call, and at the
// beginning and the end of a look-up of a name. number is the index of the event in r.list.
func (r *eventRun) loadIO(number, counts int) error {
	e := &r.list[number]
	o := e.IO
	zero, mem, err := bpf.NewMapped(fileSize)
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	unix.Munmap(mem)
	defer unix.Close(zero)
	first := len(r.probes) - 1 // the probe that has the counts
	r.probes[first].point = "sys_exit"
	r.probes = append(r.probes, eventProbe{number: number, prog: -1, point: "sys_enter"},
		eventProbe{number: number, prog: -1, at: o.Lookup}, eventProbe{number: number, prog: -1, at: o.Looked})
	for i, c := range []*probeCode{o.exitProgram(e, number+1, r.PID, counts, zero, r.array),
		o.enterProgram(r.PID, counts, zero, r.CPU), o.lookupProgram(r.PID, counts, r.CPU),
		o.lookedProgram(e, number+1, r.PID, counts, r.array, r.CPU)} {
		if err := r.load(c, first+i); err != nil {
			return err
		}
	}
	return nil
}

func (r *eventRun) takeFiles() {
	for i := range r.list {
		if o := r.list[i].IO; o != nil && o.fresh > 0 {
			o.take(r.PID)
		}
	}
}

// closeFiles closes the maps. After a run it leaves those that the Ledger reads.
func (r *eventRun) closeFiles() {
	for i := range r.list {
		if o := r.list[i].IO; o != nil {
			for _, fd := range []*int{&o.fresh, &o.kinds, &o.lookups, &o.scratch} {
				if *fd > 0 {
					unix.Close(*fd)
				}
				*fd = 0
			}
			if r.over == 0 {
				o.Ledger.Close() // the run has not begun
			}
			o.Ledger.Over.Store(r.over)
		}
	}
}

func (o *IO) take(pid int) {
	note := new(Note)
	for range mostFresh {
		if !mapElement(o.fresh, bpfLookUpAndDelete, nil, unsafe.Pointer(&note.File)) {
			return
		}
		if note.Ended = note.File.fresh == 0; note.Ended {
			note.Link = ""
		} else {
			note.Link = o.linkOf(pid, &note.File)
		}
		o.Ledger.put(note)
	}
}

// name reports to the Ledger what the File of a sample leads to. If the File has ended meanwhile, it is in the queue.
func (o *IO) name(pid int, fd int64, id uint64) {
	if o.namedLast == id {
		return
	}
	o.namedLast = id
	if f, ok := o.Ledger.Find(fd, id); ok {
		o.Ledger.put(&Note{File: f})
	}
	o.take(pid)
}

// linkOf reads what a descriptor leads to. It returns "" unless the descriptor still has that File afterwards.
func (o *IO) linkOf(pid int, f *File) string {
	link, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.FormatInt(f.FD, 10))
	if now, ok := o.Ledger.at(f.FD); err != nil || !ok || now.ID != f.ID {
		return ""
	}
	return link
}

func (l *Ledger) put(n *Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notes) >= mostNotes {
		l.Pushed++
		return
	}
	l.notes = append(l.notes, *n)
}

// Take returns the notes so far, and forgets them.
func (l *Ledger) Take() []Note {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes := l.notes
	l.notes = nil
	return notes
}

func (l *Ledger) at(fd int64) (f File, ok bool) {
	key, to := new(uint64), new(File)
	*key = uint64(fd)
	ok = mapElement(l.files, bpfLookupElem, key, unsafe.Pointer(to))
	return *to, ok
}

// Find returns the File of a descriptor, if its number still is id.
func (l *Ledger) Find(fd int64, id uint64) (File, bool) {
	f, ok := l.at(fd)
	return f, ok && f.ID == id
}

// Rest calls do for each File that has not ended. It is for after the run.
func (l *Ledger) Rest(do func(*File)) {
	eachKey(l.files, mostFiles, func(key uint64) {
		if f, ok := l.at(int64(key)); ok {
			do(&f)
		}
	})
}

// Pending is a call that had not ended when the run was over.
type Pending struct {
	FD    int64
	ID    uint64
	Kind  IOKind
	Nanos int64 // how long it has lasted so far
}

// Pending calls do for each call that has not ended. It is for after the run. A poll of one descriptor counts as a
// read. A waiting virtual thread is in no call of the kernel: its File says since when it waits.
func (l *Ledger) Pending(do func(Pending)) {
	eachKey(l.threads, mostIOThreads, func(key uint64) {
		k, c := new(uint64), new(ioCall)
		*k = key
		if !mapElement(l.threads, bpfLookupElem, k, unsafe.Pointer(c)) || c.begun == 0 {
			return
		}
		p := Pending{FD: int64(c.fd), ID: c.id, Kind: IOKind(c.kind), Nanos: l.Over.Load() - int64(c.begun)}
		if p.Kind == ioPoll && c.id != 0 {
			p.Kind = IORead
		}
		if p.Kind < NumIO && p.Nanos > 0 {
			do(p)
		}
	})
	l.Rest(func(f *File) {
		for kind, since := range f.since {
			if nanos := l.Over.Load() - int64(since); since != 0 && nanos > 0 {
				do(Pending{FD: f.FD, ID: f.ID, Kind: IOKind(kind), Nanos: nanos})
			}
		}
	})
}

// Close closes the maps.
func (l *Ledger) Close() {
	for _, fd := range []int{l.files, l.threads} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
	l.files, l.threads = -1, -1
}

// end keeps what the programs have counted.
func (o *IO) end(mem []byte) {
	if o == nil {
		return
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(mem[at:]) }
	calls := func(at int) IOCalls { return IOCalls{word(at), word(at + 8)} }
	l := o.Ledger
	l.Full, l.Closed, l.QueueFull = calls(countIOFull), calls(countIOClosed), calls(countIOQueueFull)
	l.Polls = calls(countIOPolls)
	l.Tries, l.Unopened, l.Ranges = word(countIOTries), word(countIOUnopened), word(countIORanges)
}

// mapElement executes a command of bpf(2) on one key of a map. to is the room for the value.
func mapElement(fd int, command uintptr, key *uint64, to unsafe.Pointer) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(to)
	attr := &struct {
		fd, _             uint32
		key, value, flags uint64
	}{fd: uint32(fd), value: uint64(uintptr(to))}
	if key != nil {
		pin.Pin(key)
		attr.key = uint64(uintptr(unsafe.Pointer(key)))
	}
	pin.Pin(attr)
	_, err := bpf.Do(command, unsafe.Pointer(attr), unsafe.Sizeof(*attr))
	return err == nil
}

// eachKey calls do for each key of a map that does not change.
func eachKey(fd, most int, do func(key uint64)) {
	var last *uint64
	for range most {
		next := new(uint64)
		if !mapElement(fd, bpfNextKey, last, unsafe.Pointer(next)) {
			return
		}
		do(*next)
		last = next
	}
}

// setKind sets what the system call of that number does.
func (o *IO) setKind(number uint32, kind IOKind) error {
	return bpf.Change(bpf.UpdateElem, o.kinds, number, binary.NativeEndian.AppendUint64(nil, uint64(kind)+1))
}

// Call is what a sample says of its call.
type Call struct {
	ID     uint64 // the File's number
	FD     int64
	Kind   IOKind
	Result int64
	Took   int64 // nanoseconds
}

// ReadCall returns the call of a hit from the record's data.
func ReadCall(data []byte) (c Call, ok bool) {
	if len(data) < ioDataSize {
		return c, false
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(data[at:]) }
	c = Call{ID: word(ioDataID), FD: int64(word(ioDataFD)), Kind: IOKind(word(ioDataKind)),
		Result: int64(word(ioDataRet)), Took: int64(min(word(ioDataTook), 1<<62))}
	if word(ioDataKind)&ioUnread != 0 {
		c.Result = min(c.Result, 0)
	}
	return c, c.Kind < NumIO
}
