package redaction

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// window is the size of a file's part that is searched at once. Longer data are searched window by window. Each window
// begins with the end of the previous one, because a word, a run of base64, or a page's names may cross the border.
const window = 8 << 20

// stream searches a stream of data, and everything that is packed in it.
func (s *search) stream(from io.Reader, where string, depth int) error {
	data := make([]byte, s.window)
	n, err := io.ReadFull(from, data)
	data = data[:n]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.in(data, where, depth)
		return nil
	}
	if err != nil {
		return err
	}
	all := io.MultiReader(bytes.NewReader(data), from)
	look := &windows{s: s, where: where, depth: depth}
	if isGzip(data) && depth <= maxNested {
		// The window searches the bytes on their way into the unpacker.
		if z, err := gzip.NewReader(io.TeeReader(all, look)); err == nil {
			s.unpack(z, depth)
		}
	}
	if depth > maxNested || bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		s.deep = true // a zip is read from its end
	}
	if _, err := io.Copy(look, all); err != nil && !errors.Is(err, errSearched) {
		return err
	}
	look.end()
	return nil
}

// toDamage reads packed data up to their damage, and ends there.
type toDamage struct{ io.Reader }

func (r *toDamage) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// windows searches the data that are written to it.
type windows struct {
	s     *search
	where string
	depth int
	data  []byte
	fresh int // bytes of data that are not counted yet
}

var errSearched = errors.New("enough was searched")

func (w *windows) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		if w.data == nil {
			w.data = make([]byte, 0, w.s.window)
		}
		n := min(len(rest), w.s.window-len(w.data))
		w.data = append(w.data, rest[:n]...)
		rest, w.fresh = rest[n:], w.fresh+n
		if len(w.data) == w.s.window {
			if !w.look() {
				return 0, errSearched
			}
			keep := w.keep()
			w.data = w.data[:copy(w.data, w.data[keep:])]
		}
	}
	return len(b), nil
}

// look searches the window, and reports whether more data may follow.
func (w *windows) look() bool {
	w.s.left -= int64(w.fresh)
	w.fresh = 0
	if w.s.left < 0 {
		w.s.deep = true
		return false
	}
	w.s.look(w.data, w.where)
	if w.depth <= maxNested {
		w.s.base64(w.data, w.depth)
		w.s.names(w.data)
	}
	return true
}

// end searches the last window.
func (w *windows) end() {
	if w.fresh > 0 {
		w.look()
	}
}

// keep returns the beginning of the part of a window that the next window repeats: a run of base64 or a page's names
// may begin there and continue. If such a run fills a window, it is not searched as a whole, and the result says so.
func (w *windows) keep() int {
	from := len(w.data) - min(w.s.longest, len(w.data)/2)
	run := len(w.data)
	for run > 0 && isBase64[w.data[run-1]] {
		run--
	}
	from = min(from, run)
	if at := bytes.LastIndex(w.data, []byte(beginNames)); at >= 0 && !namesEnd(w.data[at:]) {
		from = min(from, at)
	}
	if from < w.s.window/2 {
		w.s.deep = true
		from = len(w.data) - min(w.s.longest, len(w.data)/2)
	}
	return from
}
