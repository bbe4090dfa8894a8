package jfr

import (
	"bufio"
	"encoding/binary"
	"io"

	"goprof/profile"
	"goprof/profile/redact"
)

// Redacted counts what happened to a recording's events.
type Redacted struct {
	Chunks int
	Events int64 // the kept ones
	// Dropped counts the events of types in no list, by name.
	Dropped map[string]int64
	// Texts counts the texts in events that were emptied because textFields does not list them.
	Texts int64
	// CutOff: the file ends in an incomplete chunk, which is left out. nil: the file ends with a whole chunk.
	CutOff *BadRecording
}

// Redact writes a recording again, chunk by chunk, without what a Redactor removes. Only listed events, types and
// fields stay (redact_types.go): all others are left out, in the metadata too. All constants except symbols keep their
// keys. Numbers and stacks stay as they are. spill makes a file for the events of a chunk that is too large for memory.
func Redact(to io.Writer, file io.ReaderAt, size int64, by *redact.Redactor, spill func() (Spill, error)) (*Redacted,
	error) {
	r := &redactor{in: NewReader(file, size, nil), to: to, by: by, symbols: &symbolTable{keys: make(map[string]uint64)},
		spill: spill, out: &Redacted{Dropped: make(map[string]int64)}}
	for {
		if r.in.chunk == size && r.out.Chunks > 0 {
			return r.out, nil
		}
		r.in.start = r.in.chunk
		if bad := r.in.readHeader(); bad != nil {
			if bad.Incomplete && r.out.Chunks > 0 {
				r.out.CutOff = bad
				return r.out, nil
			}
			return r.out, bad
		}
		r.in.chunks++
		r.in.chunk += r.in.head.size
		r.in.end = r.in.chunk
		if err := r.chunk(); err != nil {
			return r.out, err
		}
		r.out.Chunks++
	}
}

// Spill is a file without a name.
type Spill interface {
	io.ReadWriteSeeker
	io.Closer
}

type redactor struct {
	in      *Reader
	to      io.Writer
	by      *redact.Redactor
	spill   func() (Spill, error)
	out     *Redacted
	symbols *symbolTable

	// Data of the open chunk.
	k       *rawConstants
	sources map[uint64]string // by class: the file of a class or a function
	plans   map[*class]*plan
	kept    *keptTypes
	metaID  uint64
}

// chunk redacts one chunk: first its types and constants, then its events.
func (r *redactor) chunk() error {
	if bad := r.readTypes(); bad != nil {
		return bad
	}
	if bad := r.readAll(); bad != nil {
		return bad
	}
	r.symbols.beginChunk()
	r.sources = make(map[uint64]string)
	r.plans = make(map[*class]*plan)
	events := &spilled{make: r.spill}
	defer events.close()
	if err := r.events(events); err != nil {
		return err
	}
	constants, bad := r.constants()
	if bad != nil {
		return bad
	}
	metadata := r.kept.event(r.in.head.startTicks, r.metaID)
	return r.write(events, constants, metadata)
}

// readTypes reads the metadata, as a schema and unchanged.
func (r *redactor) readTypes() *BadRecording {
	if bad := r.in.readMetadata(); bad != nil {
		return bad
	}
	c := newCursor(r.in.metadata, r.in.start+r.in.head.metadata)
	root, id := readTree(&c)
	r.metaID = id
	r.kept = keepTypes(root)
	return c.bad
}

func (r *redactor) events(to *spilled) error {
	r.choose()
	at := r.in.start + headerSize
	r.in.at = at
	if r.in.buf == nil {
		r.in.buf = bufio.NewReaderSize(nil, eventBuffer)
	}
	r.in.buf.Reset(io.NewSectionReader(r.in.file, at, r.in.end-at))
	r.in.Tally()
	for _, c := range r.in.schema.byID {
		c.events = 0
	}
	var body []byte
	for r.in.at < r.in.end {
		of, bad := r.in.nextEvent()
		if bad != nil {
			return bad
		}
		if of == nil {
			continue
		}
		if body, bad = r.event(of, body[:0]); bad != nil {
			return bad
		}
		r.out.Events++
		if err := to.write(appendEvent(nil, body)); err != nil {
			return err
		}
	}
	r.countDropped()
	return nil
}

func (r *redactor) choose() {
	for id, c := range r.in.schema.byID {
		c.wanted = c.event && r.kept.classes[id]
	}
}

// countDropped counts the dropped events. Metadata and constants do not count as events.
func (r *redactor) countDropped() {
	for id, c := range r.in.schema.byID {
		if c.event && !r.kept.classes[id] && c.events > 0 {
			r.out.Dropped[c.name] += c.events
		}
	}
}

// event writes an event's body again.
func (r *redactor) event(of *class, b []byte) ([]byte, *BadRecording) {
	c := newCursor(r.in.body, r.in.base)
	c.int() // size
	c.int() // type
	b = appendInt(b, uint64(of.id))
	p := r.plan(of)
	var in *around
	if of.name == sourceName {
		in = r.noteSource(of, c)
	}
	if p.asItIs {
		return append(b, c.b[c.at:]...), nil
	}
	b = r.value(&c, of, b, 0, in)
	return b, c.bad
}

// write writes a chunk: header, events, constants, metadata.
func (r *redactor) write(events *spilled, constants, metadata []byte) error {
	original := make([]byte, headerSize)
	if _, err := r.in.file.ReadAt(original, r.in.start); err != nil {
		return r.in.bad(r.in.start, err.Error())
	}
	h := r.in.head
	h.constants = headerSize + events.size
	h.metadata = h.constants + int64(len(constants))
	h.size = h.metadata + int64(len(metadata))
	head := h.append(nil)
	copy(head[4:8], original[4:8]) // the version
	binary.BigEndian.PutUint32(head[64:], uint32(original[67])&3)
	if _, err := r.to.Write(head); err != nil {
		return err
	}
	if err := events.copyTo(r.to); err != nil {
		return err
	}
	if _, err := r.to.Write(constants); err != nil {
		return err
	}
	_, err := r.to.Write(metadata)
	return err
}

// spilled are bytes in memory, or in a file if there are many.
type spilled struct {
	make func() (Spill, error)
	mem  []byte
	file Spill
	size int64
}

// maxInMemory bounds a chunk's events in memory.
const maxInMemory = 32 << 20

// write keeps bytes in memory. If there are many, it writes them to a file.
func (s *spilled) write(b []byte) (err error) {
	s.size += int64(len(b))
	s.mem = append(s.mem, b...)
	if len(s.mem) < maxInMemory {
		return nil
	}
	if s.file == nil {
		if s.file, err = s.make(); err != nil {
			return err
		}
	}
	_, err = s.file.Write(s.mem)
	s.mem = s.mem[:0]
	return err
}

func (s *spilled) copyTo(to io.Writer) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(to, s.file); err != nil {
			return err
		}
	}
	_, err := to.Write(s.mem)
	return err
}

func (s *spilled) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// DroppedNames returns the names of the dropped event types, those with the most events first.
func (r *Redacted) DroppedNames() []string {
	return profile.ByCount(r.Dropped)
}
