package outfile

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// These bound how long the reader of a stream may not read. While it does not read, no recording can continue, and
// goprof would never end.
const (
	// stalledFor is for the time while more data will come.
	stalledFor = time.Minute
	// stalledAtEnd is for the rest at the end.
	stalledAtEnd = 10 * time.Second
)

// errStalled: goprof gave up on a reader.
func errStalled(waited time.Duration) error {
	return fmt.Errorf("whoever reads it has not read for %v: what was not written by then is lost", waited)
}

// piece is how much is written at a time. A reader that takes a piece now and then counts as slow, not as stalled.
const piece = 64 << 10

// patient writes to a stream, and gives up if the reader does not read. Then a goroutine may still be writing the last
// piece. So after an error the bytes given to Write must not be changed.
type patient struct {
	to io.Writer

	once         sync.Once
	ending       chan struct{} // closed when only the rest is left
	while, atEnd time.Duration
}

func newPatient(to io.Writer) *patient {
	return &patient{to: to, ending: make(chan struct{}), while: stalledFor, atEnd: stalledAtEnd}
}

// endSoon says that only the rest is left.
func (p *patient) endSoon() { p.once.Do(func() { close(p.ending) }) }

func (p *patient) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		var wrote int
		wrote, err = p.some(b[n:min(n+piece, len(b))])
		n += wrote
	}
	return n, err
}

type written struct {
	n   int
	err error
}

// some writes once. If that takes too long, it gives up, and abandons the writing goroutine.
func (p *patient) some(b []byte) (int, error) {
	done := make(chan written, 1)
	go func() {
		n, err := p.to.Write(b)
		done <- written{n, err}
	}()
	long := time.NewTimer(p.while)
	defer long.Stop()
	select {
	case w := <-done:
		return w.n, w.err
	case <-long.C:
		return 0, errStalled(p.while)
	case <-p.ending:
	}
	short := time.NewTimer(p.atEnd)
	defer short.Stop()
	select {
	case w := <-done:
		return w.n, w.err
	case <-short.C:
		return 0, errStalled(p.atEnd)
	}
}
