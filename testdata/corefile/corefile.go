//go:build linux

// Package corefile writes the core file of a live process, for tests. It writes what the kernel would write with the
// default coredump_filter, whatever the process has set: private memory that was written to, and the first page of each
// library; not what a file still has. A kernel's core of a JVM takes the JVM's life, and gdb's gcore takes half a
// minute; this one takes a second, and the process goes on.
package corefile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process"
)

const (
	pageSize = 4096
	// Of a word of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
	pagePresent, pageSwapped, pageOfFile = 1 << 63, 1 << 62, 1 << 61
	anySwapped                           = pagePresent | pageSwapped
	batch                                = 4096 // pages
)

// Write stops the threads of a process, and writes its core file.
func Write(t testing.TB, pid int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), fmt.Sprintf("core.%d", pid))
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it alone may let go of what it traces
		defer runtime.UnlockOSThread()
		failed <- write(name, pid)
	}()
	if err := <-failed; err != nil {
		t.Fatal("writing a core file: ", err)
	}
	return name
}

// writer is a core file that is being made.
type writer struct {
	pid   int
	guest elf.Machine // if not 0: see WriteGuest
	held  []int       // threads
	mem   *os.File
	notes bytes.Buffer
	parts []part
}

// part is a mapping, and which of its pages are written.
type part struct {
	process.Mapping
	pages []bool // nil: none
}

func write(name string, pid int) error {
	w := &writer{pid: pid}
	defer w.letGo()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return err
	}
	for _, th := range threads {
		tid, _ := strconv.Atoi(filepath.Base(th))
		if err := w.thread(tid); err == unix.ESRCH {
			continue // it has ended
		} else if err != nil {
			return fmt.Errorf("thread %d: %w", tid, err)
		}
	}
	return w.finish(name)
}

// finish writes all but the threads.
func (w *writer) finish(name string) (err error) {
	if w.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", w.pid)); err != nil {
		return err
	}
	defer w.mem.Close()
	if err := w.mappings(); err != nil {
		return err
	}
	w.more()
	return w.save(name)
}

// note appends one note.
func (w *writer) note(owner string, kind uint32, desc []byte) {
	pad := func(n int) []byte { return make([]byte, -n&3) }
	for _, v := range []uint32{uint32(len(owner) + 1), uint32(len(desc)), kind} {
		binary.Write(&w.notes, binary.LittleEndian, v)
	}
	w.notes.WriteString(owner + "\x00")
	w.notes.Write(pad(len(owner) + 1))
	w.notes.Write(desc)
	w.notes.Write(pad(len(desc)))
}

// thread stops a thread and notes its registers.
func (w *writer) thread(tid int) error {
	if err := unix.PtraceSeize(tid); err != nil {
		return err
	}
	w.held = append(w.held, tid)
	if err := unix.PtraceInterrupt(tid); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
		return err
	}
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(make([]byte, 32))
	binary.Write(&b, binary.LittleEndian, uint32(tid))
	b.Write(make([]byte, 112-36))
	binary.Write(&b, binary.LittleEndian, regs)
	b.Write(make([]byte, 8))
	w.note("CORE", 1, b.Bytes())
	return nil
}

// letGo lets all threads go on, or stand still as they did before.
func (w *writer) letGo() {
	for _, tid := range w.held {
		_ = unix.PtraceDetach(tid) // it may have ended
	}
}

// mappings finds out which pages there are.
func (w *writer) mappings() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", w.pid))
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := process.ParseMaps(f)
	if err != nil {
		return err
	}
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", w.pid))
	if err != nil {
		return err
	}
	defer pagemap.Close()
	for _, m := range list {
		if m.Path == "[vsyscall]" || m.Path == "[vvar]" || m.Path == "[vvar_vclock]" {
			continue
		}
		if w.guest != 0 && !ofGuest(&m) {
			continue
		}
		w.parts = append(w.parts, part{m, pagesOf(pagemap, &m)})
	}
	return nil
}

// pagesOf are the pages of a mapping that belong in the core.
func pagesOf(pagemap *os.File, m *process.Mapping) []bool {
	n := (m.End - m.Start) / pageSize
	if m.Perm == 0 || n > 1<<24 {
		return nil
	}
	pages, any := make([]bool, n), false
	words := make([]byte, 8*batch)
	for at := uint64(0); at < n; at += batch {
		k := min(n-at, batch)
		pagemap.ReadAt(words[:8*k], int64((m.Start/pageSize+at)*8))
		for i := range k {
			word := binary.LittleEndian.Uint64(words[8*i:])
			own := word&anySwapped != 0 && (word&pageOfFile == 0 || m.Perm&process.PermShared != 0 && m.Inode != 0)
			head := m.Inode != 0 && m.Offset == 0 && at+i == 0 && m.Perm&process.PermRead != 0
			if own || head || m.Path == "[vdso]" {
				pages[at+i], any = true, true
			}
		}
	}
	if !any {
		return nil
	}
	return pages
}

// more are the notes of the process.
func (w *writer) more() {
	prpsinfo := make([]byte, 136)
	binary.LittleEndian.PutUint32(prpsinfo[24:], uint32(w.pid))
	copy(prpsinfo[40:55], "java")
	w.note("CORE", 3, prpsinfo)
	if auxv, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", w.pid)); err == nil && w.guest == 0 { // else it is qemu's
		w.note("CORE", 6, auxv)
	}
	var table, names bytes.Buffer
	count := uint64(0)
	for _, p := range w.parts {
		if p.Inode != 0 {
			count++
			binary.Write(&table, binary.LittleEndian, []uint64{p.Start, p.End, p.Offset / pageSize})
			names.WriteString(p.Path + "\x00")
		}
	}
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, count), pageSize)
	w.note("CORE", 0x46494c45, append(append(head, table.Bytes()...), names.Bytes()...))
}

// save writes the file. Where a part has no page there is a hole.
func (w *writer) save(name string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	machine := w.guest
	if machine == 0 {
		machine = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	}
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(machine), Version: 1, Phoff: 64, Phentsize: 56,
		Phnum: uint16(len(w.parts) + 1), Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	at := uint64(64 + 56*(len(w.parts)+1))
	progs := []elf.Prog64{{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(w.notes.Len())}}
	at = (at + uint64(w.notes.Len()) + pageSize - 1) &^ (pageSize - 1)
	for _, p := range w.parts {
		prog := elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: p.Start, Memsz: p.End - p.Start, Off: at}
		for perm, flag := range map[process.Perm]elf.ProgFlag{process.PermRead: elf.PF_R, process.PermWrite: elf.PF_W,
			process.PermExec: elf.PF_X} {
			if p.Perm&perm != 0 {
				prog.Flags |= uint32(flag)
			}
		}
		if prog.Filesz = p.written(); prog.Filesz > 0 {
			if err := w.copy(out, &p, at); err != nil {
				return err
			}
		}
		at += prog.Filesz
		progs = append(progs, prog)
	}
	if err := out.Truncate(int64(at)); err != nil {
		return err
	}
	var head bytes.Buffer
	binary.Write(&head, binary.LittleEndian, h)
	binary.Write(&head, binary.LittleEndian, progs)
	head.Write(w.notes.Bytes())
	_, err = out.WriteAt(head.Bytes(), 0)
	return err
}

// written is how much of a part the core has: all of it, as the kernel does, or of a library that was not written
// to its first page alone.
func (p *part) written() uint64 {
	for i := range p.pages {
		if p.pages[i] && (i > 0 || p.Inode == 0) {
			return p.End - p.Start
		}
	}
	if p.pages == nil {
		return 0
	}
	return pageSize
}

// copy copies a part. Pages of a file that were not written to are the file's: they are read, too.
func (w *writer) copy(out *os.File, p *part, at uint64) error {
	b := make([]byte, pageSize)
	for i := range p.written() / pageSize {
		if !p.pages[i] && p.Inode == 0 {
			continue
		}
		if _, err := w.mem.ReadAt(b, int64(p.Start+i*pageSize)); err != nil {
			continue // behind the end of the file
		}
		if _, err := out.WriteAt(b, int64(at+i*pageSize)); err != nil {
			return err
		}
	}
	return nil
}
