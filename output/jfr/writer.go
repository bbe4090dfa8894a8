package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"goprof/profile"
)

// Options set how a file is cut into chunks. The zero value has the defaults.
type Options struct {
	ChunkLength time.Duration // the greatest length; a minute if 0
	ChunkBytes  int           // memory for one chunk's events and constants, at which the chunk ends; 8 MiB if 0
}

const (
	maxChunkLength = time.Minute
	chunkBytes     = 8 << 20
	minChunkBytes  = 64 << 10
)

// Writer writes a recording. It is not safe for concurrent use. After an error it writes nothing more, and every later
// call returns that error.
type Writer struct {
	to    io.Writer
	o     Options
	facts facts

	open   bool
	start  profile.Instant // of the chunk: its pair of clocks
	from   int64           // earliest time of its events, in ticks
	until  int64           // latest time
	events []byte
	pools  *pools
	body   []byte // of the current event
	head   []byte
	types  eventTypes // of samples of events
	words  words

	written int64 // bytes of whole chunks
	unsaved int64 // number of events in the open chunk
	err     error
	closed  bool
}

// WriteError says that a chunk could not be written, and what is lost with it.
type WriteError struct {
	Whole  int64 // size of the whole chunks in the file. The rest was cut off if the file can be truncated
	Cut    bool  // the rest was cut off
	Events int64 // lost with the chunk
	Err    error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("the last %d events are lost, %d bytes before them are kept: %v", e.Events, e.Whole, e.Err)
}
func (e *WriteError) Unwrap() error { return e.Err }

var errClosed = errors.New("the recording has been closed")

// NewWriter returns a writer for a new recording at the beginning of to. Each chunk is one call of to.Write. Calls are
// a second or more apart and never small, so to needs no buffer, and a file is complete after each call. If to can be
// truncated (os.File), a write that fails halfway is undone.
func NewWriter(to io.Writer, o Options) *Writer {
	if o.ChunkLength <= 0 || o.ChunkLength > maxChunkLength {
		o.ChunkLength = maxChunkLength
	}
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = chunkBytes
	}
	o.ChunkBytes = min(max(o.ChunkBytes, minChunkBytes), 1<<30)
	return &Writer{to: to, o: o, pools: newPools()}
}

// Tick ends a chunk that is old enough. Call it each second, even if nothing happens.
func (w *Writer) Tick(now profile.Instant) error { return w.at(now) }

// Flush writes the open chunk, which ends at now, so that everything up to now can be read.
func (w *Writer) Flush(now profile.Instant) error {
	if err := w.at(now); err != nil {
		return err
	}
	w.flush()
	return w.err
}

// Close writes the last chunk, which ends at now.
func (w *Writer) Close(now profile.Instant) error {
	if w.closed {
		return w.err
	}
	err := w.at(now) // this may end an old chunk, which is not the last one
	w.closed = true
	if err != nil {
		return err
	}
	w.flush()
	err = w.err
	if err == nil {
		w.err = errClosed
	}
	return err
}

// Written returns the number of bytes in whole chunks.
func (w *Writer) Written() int64 { return w.written }

// at opens a chunk for an event at this time, if none is open or the open one is full.
func (w *Writer) at(now profile.Instant) error {
	if w.err != nil {
		return w.err
	}
	if w.open {
		old := now.Ticks-w.from >= int64(w.o.ChunkLength)
		full := len(w.events)+w.pools.size() >= w.o.ChunkBytes
		if old || full {
			w.flush()
		}
	}
	if !w.open && w.err == nil {
		w.begin(now)
	}
	w.pools.now = now.Ticks
	w.from = min(w.from, now.Ticks)
	w.until = max(w.until, now.Ticks)
	return w.err
}

func (w *Writer) begin(now profile.Instant) {
	w.open = true
	w.start, w.from, w.until = now, now.Ticks, now.Ticks
	w.events = w.events[:0]
	w.pools.reset()
	w.unsaved = 0
	w.facts.write(w)
	for i := range w.types.list {
		w.eventKind(&w.types.list[i])
	}
}

// event begins an event with a time; end appends it to the chunk.
func (w *Writer) event(typ typeID, ticks int64) {
	w.body = appendInt(w.body[:0], uint64(typ))
	w.body = appendInt(w.body, uint64(ticks))
}

func (w *Writer) end() {
	w.events = appendEvent(w.events, w.body)
	w.unsaved++
}

func (w *Writer) flush() {
	if !w.open || w.err != nil {
		return
	}
	w.open = false
	w.earlierNames()
	metadata := w.metadata()
	constants, size := w.constants()
	atEvents := headerSize + len(metadata)
	atConstants := atEvents + len(w.pools.sources) + len(w.events)
	head := header{
		size:        int64(atConstants + size),
		constants:   int64(atConstants),
		metadata:    headerSize,
		startNanos:  w.start.Wall - (w.start.Ticks - w.from),
		nanos:       w.until - w.from,
		startTicks:  w.from,
		ticksPerSec: int64(time.Second),
		final:       w.closed,
	}
	chunk := append(head.append(w.head[:0]), metadata...)
	w.head = chunk
	for _, part := range append([][]byte{chunk, w.pools.sources, w.events}, constants...) {
		if _, err := w.to.Write(part); err != nil {
			w.fail(err)
			return
		}
	}
	w.written += head.size
}

// fail keeps the error, and removes the incomplete chunk from the file.
func (w *Writer) fail(err error) {
	failed := &WriteError{Whole: w.written, Events: w.unsaved, Err: err}
	if file, ok := w.to.(interface {
		io.Seeker
		Truncate(int64) error
	}); ok && file.Truncate(w.written) == nil {
		_, err := file.Seek(w.written, io.SeekStart)
		failed.Cut = err == nil
	}
	w.err = failed
}

// The header of a chunk (jdk.jfr.internal.consumer.ChunkHeader): 68 bytes, big-endian.
const (
	headerSize   = 68
	magic        = "FLR\x00"
	majorVersion = 2
	minorVersion = 1
	// features: numbers are compressed, and the recorder ends with this chunk (JfrChunk::capabilities in HotSpot's
	// jfrChunk.cpp). The byte for a chunk that is still being written is 0.
	compressedInts = 1
	finalChunk     = 2
)

type header struct {
	size        int64 // of the chunk
	constants   int64 // offsets in the chunk
	metadata    int64
	startNanos  int64 // since 1970
	nanos       int64 // the chunk's length
	startTicks  int64
	ticksPerSec int64
	final       bool // nothing follows
}

func (h *header) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, majorVersion)
	b = binary.BigEndian.AppendUint16(b, minorVersion)
	for _, v := range []int64{h.size, h.constants, h.metadata, h.startNanos, h.nanos, h.startTicks, h.ticksPerSec} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	features := uint32(compressedInts)
	if h.final {
		features |= finalChunk
	}
	return binary.BigEndian.AppendUint32(b, features)
}

func (w *Writer) metadata() []byte {
	b := appendInt(w.body[:0], uint64(typeMetadata))
	b = appendInt(b, uint64(w.from))
	b = appendInt(b, 0) // duration
	if w.types.metadata != nil {
		b = append(b, w.types.metadata...)
	} else {
		b = append(b, metadataBody()...)
	}
	w.body = b
	return appendEvent(nil, b)
}

// constants returns the checkpoint event with all constants of the chunk, in pieces, and their total size. The pools
// are pieces without a copy: a copy would be as large as the chunk.
func (w *Writer) constants() (pieces [][]byte, size int) {
	b := appendInt(w.body[:0], uint64(typeCheckpoint))
	b = appendInt(b, uint64(w.from))
	b = append(b, 0, 0, 0) // duration; no checkpoint before; kind
	p := w.pools
	var lists []constantList
	for _, list := range append(slices.Concat(fixedPools, w.words.constants()),
		p.threads.constants(),
		constantList{typeMethod, p.methods.count, p.methods.data},
		constantList{typeClass, p.classes.count, p.classes.data},
		constantList{typeSymbol, p.symbols.count, p.symbols.data},
		constantList{typeStackTrace, p.stacks.count, p.stacks.data}, // last: a reader without stacks need not skip them
	) {
		if list.count > 0 { // the JDK's reader refuses an empty pool
			lists = append(lists, list)
		}
	}
	b = appendInt(b, uint64(len(lists)))
	from := 0
	for _, list := range lists {
		b = appendInt(b, uint64(list.typ))
		b = appendInt(b, uint64(list.count))
		if len(list.data) < smallPool {
			b = append(b, list.data...)
			continue
		}
		pieces = append(pieces, b[from:len(b):len(b)], list.data)
		from = len(b)
	}
	w.body = b
	pieces = append(pieces, b[from:])
	for _, piece := range pieces {
		size += len(piece)
	}
	head := appendEventSize(nil, size)
	return append([][]byte{head}, pieces...), size + len(head)
}

// smallPool bounds the pools that are copied: a write for each would cost more.
const smallPool = 4 << 10
