package process

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"
	"time"

	"goprof/arch"
)

type CoreThread struct {
	TID     int // in the thread's own pid namespace if the kernel wrote the core, otherwise in gcore's
	Regs    arch.Regs
	Syscall int64         // the system call that the thread was in, -1 if none or not known
	CPU     time.Duration // its CPU time; for the first thread in the kernel's cores, that of the process
	Info    *SigInfo      // the siginfo_t of the signal that was being delivered, nil if the core has none
	Signal  int           // the signal that was being delivered, 0: none
	PACMask uint64        // the bits of code addresses that hold a signature (arm64)
}

// SigInfo is a signal, and why it was sent (siginfo_t, include/uapi/asm-generic/siginfo.h).
type SigInfo struct {
	Signal, Code int
	Addr         uint64 // the faulting address, if the kernel sent the signal because of a fault
	PID          int    // the process that sent the signal, if any
}

// The types of notes (include/uapi/linux/elf.h).
const (
	ntPRStatus   = 1
	ntPRPSInfo   = 3
	ntAuxv       = 6
	ntSigInfo    = 0x53494749
	ntFile       = 0x46494c45
	ntARMPACMask = 0x406
)

const (
	// maxFilesNote bounds the list of files. The kernel writes up to 4 MB, or 16 MB if core_file_note_size_limit allows it
	// (fs/coredump.c, CORE_FILE_NOTE_SIZE_MAX).
	maxFilesNote     = 16 << 20
	maxNote          = 64 << 10 // bytes of each other note; they have some hundred
	maxThreadsOfCore = 1 << 16
	maxCoreNotes     = 16 * maxThreadsOfCore // a thread has about six
	// maxNoteSegments bounds the segments of notes. A real core has one, but a damaged core may have many over the same
	// bytes.
	maxNoteSegments = 8
)

type coreNotes struct {
	threads []CoreThread
	pid     int
	name    string
	args    string
	vdso    uint64 // its address
	files   []mappedPart

	segments int // segments of notes so far
}

// mappedPart is a part of a file that was mapped (NT_FILE).
type mappedPart struct {
	start, end, offset uint64
	path               string
}

// read reads the notes of one segment. It ends at a damaged note.
func (n *coreNotes) read(c *Core, p *elf.Prog64) {
	if n.segments++; n.segments > maxNoteSegments {
		return
	}
	if p.Off >= uint64(c.size) {
		c.cut += min(p.Filesz, 1<<40)
		return
	}
	size := min(p.Filesz, uint64(c.size)-p.Off)
	r := &noteReader{at: bufio.NewReaderSize(io.NewSectionReader(c.bytes.sources[0], int64(p.Off), int64(size)), 64<<10)}
	for range maxCoreNotes {
		kind, desc, ok := r.next()
		if !ok {
			return
		}
		n.take(c.cpu, kind, desc)
	}
}

// noteReader reads notes one after the other. A note has three words, and then name and content, each padded to 4
// bytes.
type noteReader struct {
	at *bufio.Reader
}

func wantedNote(owner string, kind uint32, size int64) bool {
	switch kind {
	case ntFile:
		return owner == "CORE" && size <= maxFilesNote
	case ntPRStatus, ntPRPSInfo, ntAuxv, ntSigInfo:
		return owner == "CORE" && size <= maxNote
	case ntARMPACMask:
		return owner == "LINUX" && size <= maxNote
	}
	return false
}

// next returns the next relevant note. Its content is valid until the next call.
func (r *noteReader) next() (kind uint32, desc []byte, ok bool) {
	for range maxCoreNotes {
		var head [12]byte
		if _, err := io.ReadFull(r.at, head[:]); err != nil {
			return 0, nil, false
		}
		namesz, descsz := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		kind = binary.LittleEndian.Uint32(head[8:])
		if namesz > 256 {
			return 0, nil, false
		}
		name := make([]byte, (namesz+3)&^3)
		if _, err := io.ReadFull(r.at, name); err != nil {
			return 0, nil, false
		}
		padded := (int64(descsz) + 3) &^ 3
		if !wantedNote(string(bytes.TrimRight(name, "\x00")), kind, padded) {
			if _, err := io.CopyN(io.Discard, r.at, padded); err != nil {
				return 0, nil, false
			}
			continue
		}
		var b bytes.Buffer // grows only with the bytes that the file really has
		if _, err := io.CopyN(&b, r.at, padded); err != nil {
			return 0, nil, false
		}
		return kind, b.Bytes()[:descsz], true
	}
	return 0, nil, false
}

func (n *coreNotes) take(cpu *arch.CPU, kind uint32, b []byte) {
	switch kind {
	case ntPRStatus:
		n.thread(cpu, b)
	case ntPRPSInfo:
		n.process(b)
	case ntAuxv:
		n.auxv(b)
	case ntFile:
		n.mapped(b)
	case ntSigInfo:
		n.signal(b)
	case ntARMPACMask: // struct user_pac_mask: the mask of data, then that of code
		if t := n.last(); t != nil && len(b) >= 16 {
			t.PACMask = binary.LittleEndian.Uint64(b[8:])
		}
	}
}

// last returns the thread to which a note belongs. The notes of a thread begin with NT_PRSTATUS.
func (n *coreNotes) last() *CoreThread {
	if len(n.threads) == 0 {
		return nil
	}
	return &n.threads[len(n.threads)-1]
}

func (n *coreNotes) thread(cpu *arch.CPU, b []byte) {
	if len(b) < arch.CoreRegs+cpu.PrstatusSize || len(n.threads) >= maxThreadsOfCore {
		return
	}
	t := CoreThread{
		TID:    int(int32(binary.LittleEndian.Uint32(b[arch.CoreThread:]))),
		Signal: int(binary.LittleEndian.Uint16(b[arch.CoreSignal:])),
		CPU:    timeval(b[arch.CoreUser:]) + timeval(b[arch.CoreSystem:]),
	}
	t.Syscall, _ = cpu.DecodeRegs(b[arch.CoreRegs:arch.CoreRegs+cpu.PrstatusSize], &t.Regs)
	n.threads = append(n.threads, t)
}

// timeval reads a struct timeval. It returns 0 if the values are impossible.
func timeval(b []byte) time.Duration {
	s, us := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if s > 1<<32 || us >= 1e6 {
		return 0
	}
	return time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond
}

// process reads struct elf_prpsinfo (include/linux/elfcore.h).
func (n *coreNotes) process(b []byte) {
	const pid, name, args, end = 24, 40, 56, 136
	if len(b) < end {
		return
	}
	n.pid = int(int32(binary.LittleEndian.Uint32(b[pid:])))
	n.name, n.args = upToZero(b[name:args]), strings.TrimRight(upToZero(b[args:end]), " ")
}

// upToZero returns the text in a field of fixed length, which ends at the first zero byte.
func upToZero(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// auxv reads pairs of words. It finds AT_SYSINFO_EHDR, the address of the vdso.
func (n *coreNotes) auxv(b []byte) {
	const sysinfoEHDR = 33
	for ; len(b) >= 16; b = b[16:] {
		if binary.LittleEndian.Uint64(b) == sysinfoEHDR {
			n.vdso = binary.LittleEndian.Uint64(b[8:])
		}
	}
}

func (n *coreNotes) signal(b []byte) {
	t := n.last()
	if t == nil || len(b) < 32 || t.Info != nil {
		return
	}
	t.Info = new(DecodeSigInfo(b))
}

// DecodeSigInfo reads a siginfo_t of 32 bytes or more.
func DecodeSigInfo(b []byte) (s SigInfo) {
	word := func(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }
	s = SigInfo{Signal: word(0), Code: word(8)}
	if s.Code > 0 {
		s.Addr = binary.LittleEndian.Uint64(b[arch.SigInfoAddr:])
	} else {
		s.PID = word(16)
	}
	return s
}

// mapped reads NT_FILE (fs/binfmt_elf.c, fill_files_note). It consists of a count, the unit of offsets, the start, end
// and offset of each file, and the names, each followed by a zero.
func (n *coreNotes) mapped(b []byte) {
	if len(b) < 16 || len(n.files) > 0 {
		return
	}
	count, unit := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if count > maxMappings || count > uint64(len(b)-16)/24 || unit > 1<<30 {
		return
	}
	names := b[16+count*24:]
	last := ""
	for i := range count {
		e := b[16+i*24:]
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			return
		}
		if name := bytes.TrimSuffix(names[:end], []byte(" (deleted)")); string(name) != last {
			last = string(name)
		}
		names = names[end+1:]
		p := mappedPart{binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint64(e[8:]),
			binary.LittleEndian.Uint64(e[16:]) * unit, last}
		if k := len(n.files); p.end > p.start && (k == 0 || p.start >= n.files[k-1].end) && len(last) <= maxMapsLine {
			n.files = append(n.files, p)
		}
	}
}
