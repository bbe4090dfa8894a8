//go:build linux

package process

import (
	"sync"
	"sync/atomic"
	"time"
)

// A file of the target may be on a file system that does not answer: NFS, FUSE, a dead disk. Then opening or reading
// the file never returns. So each such call has its own goroutine, which is abandoned after fileLimit. After that,
// goprof opens no file of that file system. If mostHung calls hang, it opens no file at all.

const (
	// fileLimit is the longest time for an open, or for a read of filePiece bytes.
	fileLimit = 2 * time.Second
	filePiece = 256 << 10
	// mostHung bounds the calls that hang, over all processes. Each of them keeps an OS thread.
	mostHung = 16
)

var hungCalls atomic.Int64

// deadFiles has the devices of file systems that have not answered. 0 stands for files on unknown devices.
type deadFiles map[uint64]bool

// within runs f, and reports whether f ended in time.
func within(limit time.Duration, f func()) bool {
	if hungCalls.Load() >= mostHung {
		return false
	}
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	if InTime(done, limit) {
		return true
	}
	hungCalls.Add(1)
	go func() {
		<-done
		hungCalls.Add(-1)
	}()
	return false
}

// patientFiles opens the files of a process within fileLimit. The caller holds the process's lock.
type patientFiles struct {
	*Process
}

func (p patientFiles) openImage(g *group) (imageFile, int64, error) {
	return p.open(g.first.Dev, func() (imageFile, int64, error) { return p.Process.openImage(g) })
}

func (p patientFiles) openDebug(path string, where debugRoot) (imageFile, int64, error) {
	return p.open(0, func() (imageFile, int64, error) { return p.Process.openDebug(path, where) })
}

// open opens a file. If that takes too long, it returns ErrSilent, and marks the file's device as dead.
func (p patientFiles) open(dev uint64, do func() (imageFile, int64, error)) (imageFile, int64, error) {
	if p.dead[dev] {
		return nil, 0, ErrSilent
	}
	type opened struct {
		file imageFile
		size int64
		err  error
	}
	result := make(chan opened, 1)
	if !within(fileLimit, func() {
		var o opened
		o.file, o.size, o.err = do()
		result <- o
	}) {
		p.dead[dev] = true
		go func() {
			if o := <-result; o.err == nil {
				o.file.Close()
			}
		}()
		return nil, 0, ErrSilent
	}
	o := <-result
	if o.err != nil {
		return nil, 0, o.err
	}
	return &patientFile{imageFile: o.file, dev: dev, dead: p.dead}, o.size, nil
}

// patientFile is a file whose reads return within fileLimit, or fail with ErrSilent.
type patientFile struct {
	imageFile
	dev  uint64
	dead deadFiles
}

func (f *patientFile) ReadAt(b []byte, at int64) (n int, err error) {
	for {
		piece := b[n:min(n+filePiece, len(b))]
		got, err := f.readPiece(piece, at+int64(n))
		n += got
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

var readBuffers = sync.Pool{New: func() any { return new([filePiece]byte) }}

func (f *patientFile) readPiece(b []byte, at int64) (int, error) {
	if f.dead[f.dev] {
		return 0, ErrSilent
	}
	buf := readBuffers.Get().(*[filePiece]byte)
	own := buf[:len(b)] // a read that ends too late must not write into the caller's buf
	var got int
	var err error
	if !within(fileLimit, func() { got, err = f.imageFile.ReadAt(own, at) }) {
		f.dead[f.dev] = true
		return 0, ErrSilent
	}
	defer readBuffers.Put(buf)
	return copy(b, own[:got]), err
}

// Close does not wait either: closing a FUSE file calls its file system (FUSE_FLUSH).
func (f *patientFile) Close() error {
	if f.dead[f.dev] {
		go f.imageFile.Close()
		return nil
	}
	if !within(fileLimit, func() { f.imageFile.Close() }) {
		f.dead[f.dev] = true
	}
	return nil
}

func (p *Process) programHead(size int) []byte {
	result := make(chan []byte, 1)
	if !within(fileLimit, func() {
		head := make([]byte, size)
		n := 0
		if f, _, err := OpenKernelLink(p.file("exe")); err == nil {
			n, _ = f.ReadAt(head, 0)
			f.Close()
		}
		result <- head[:max(n, 0)]
	}) {
		return nil
	}
	return <-result
}
