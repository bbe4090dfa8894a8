//go:build linux

package ptrace

import (
	"unsafe"

	"goprof/arch"
	"goprof/sampler/look"
)

// What a thread waits for, by its system call and by the file of that call.

// readWaiting sets what the thread of the present look waits for.
func (t *Tracer) readWaiting(snap *look.Look) {
	u := &t.unstopped
	t.setWaiting(snap, u.call, u.args[0], u.args[1])
}

// setWaiting sets what a thread in a system call with these arguments waits for.
func (t *Tracer) setWaiting(snap *look.Look, number int64, first, second uint64) {
	w := &snap.Waiting
	w.Call = t.cpu.Calls[number]
	switch {
	case w.Call.HasFile():
		w.File = t.fileKind(first)
	case w.Call == arch.CallPoll && second > 0:
		w.File = t.polled(snap.TID, first)
	}
}

// polled returns the sort of file that a poll waits for. It reads only the first descriptor: the first member of the
// struct pollfd at addr. Java polls one descriptor at a time (sun.nio.ch.Net.poll).
func (t *Tracer) polled(tid int, addr uint64) look.FileKind {
	b := t.reader.small[:8]
	t.reader.set(0, &b[0], addr, len(b))
	if t.fetch(tid, 0, 1) < len(b) {
		return look.NoFile
	}
	fd := *(*int32)(unsafe.Pointer(&b[0]))
	if fd < 0 {
		return look.NoFile
	}
	return t.fileKind(uint64(fd))
}

// fileKind returns what kind of file a descriptor is, from its link in /proc/PID/fd: "socket:[4711]", "pipe:[1]",
// "anon_inode:[eventpoll]" or a path (fs/proc/fd.c; net/socket.c, sockfs_dname; fs/pipe.c; fs/anon_inodes.c).
func (t *Tracer) fileKind(fd uint64) look.FileKind {
	link := t.proc.FileLink(fd)
	if link == nil {
		return look.NoFile
	}
	return kindOfLink(link)
}

func kindOfLink(link []byte) look.FileKind {
	switch {
	case hasPrefix(link, "socket:["):
		return look.Socket
	case hasPrefix(link, "pipe:["):
		return look.Pipe
	case hasPrefix(link, "anon_inode:[eventpoll]"):
		return look.Selector
	case hasPrefix(link, "/"):
		return look.RegularFile
	}
	return look.OtherFile
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}
