package captured

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"goprof/process"
)

// The format of a recording, inside gzip. Numbers are unsigned varints unless said
// otherwise; bytes and strings have their length before them.
//
//	magic "goprof recording 4\n" (1 had no second stack, 2 no continuation, 3 nothing unpacked and no CPU time)
//	CPU's name
//	memory as first seen:  count, then for each piece: distance from the last piece's end, bytes
//	strings:               count, then each; they are named by number below
//	unwind rows:           count, then each; they are named by number+1 below, 0 is none
//	code:                  count, then for each: pc as distance from the last (signed), flags
//	                       (1 exact, 2 found), and if found: image, offset, symbol, row
//	globals:               count, then for each: image, symbol, kind of error (0 none), address
//	images:                count, then for each: name asked for, found, and if found: name, path, start, end, bias
//	steps:                 count, then for each: snapshot, then its changes: count, and for each: address, bytes
//
// A snapshot's stack is written as what differs from the last one of the same thread:
// deep stacks change little from one look to the next. A second stack, as what is not 0.
const (
	recordingMagic  = "goprof recording 4\n"
	recordingThird  = "goprof recording 3\n"
	recordingSecond = "goprof recording 2\n"
	recordingFirst  = "goprof recording 1\n"
)

// Kinds of errors in a recording.
const (
	recNoError = iota
	recNoSymbol
	recNoImage
)

// recWriter writes the parts of a recording.
type recWriter struct {
	w       *bufio.Writer
	strings map[string]uint64
	list    []string
	rows    map[*process.Row]uint64
	rowList []*process.Row
	stacks  map[int]*process.Snapshot // the last one of each thread
}

func (r *Recorder) write(to io.Writer, steps []recStep) error {
	gz := gzip.NewWriter(to)
	w := &recWriter{w: bufio.NewWriter(gz), strings: map[string]uint64{}, rows: map[*process.Row]uint64{},
		stacks: map[int]*process.Snapshot{}}
	w.w.WriteString(recordingMagic)
	w.bytes([]byte(r.target.CPU().Name))
	w.chunks(r.chunks())
	codes := r.sortedCodes()
	globals := sortedKeys(r.globals, func(a, b globalKey) int {
		return cmp.Or(strings.Compare(a.image, b.image), strings.Compare(a.symbol, b.symbol))
	})
	images := sortedKeys(r.images, strings.Compare)
	w.collect(r, codes, globals, images)
	w.tables()
	w.codes(r, codes)
	w.globals(r, globals)
	w.images(r, images)
	w.num(uint64(len(steps)))
	for i := range steps {
		w.step(&steps[i])
	}
	return errors.Join(w.w.Flush(), gz.Close())
}

func sortedKeys[K comparable, V any](m map[K]V, by func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, by)
	return keys
}

func (r *Recorder) sortedCodes() []codeKey {
	return sortedKeys(r.codes, func(a, b codeKey) int {
		if a.pc == b.pc && a.exact != b.exact {
			if b.exact {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.pc, b.pc)
	})
}

func (w *recWriter) num(v uint64) {
	var b [binary.MaxVarintLen64]byte
	w.w.Write(b[:binary.PutUvarint(b[:], v)])
}

func (w *recWriter) signed(v int64) {
	var b [binary.MaxVarintLen64]byte
	w.w.Write(b[:binary.PutVarint(b[:], v)])
}

func (w *recWriter) bool(v bool) {
	if v {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *recWriter) bytes(b []byte) {
	w.num(uint64(len(b)))
	w.w.Write(b)
}

func (w *recWriter) chunks(chunks []patch) {
	w.num(uint64(len(chunks)))
	end := uint64(0)
	for _, c := range chunks {
		w.num(c.addr - end)
		w.bytes(c.data)
		end = c.addr + uint64(len(c.data))
	}
}

// collect numbers the strings and rows that are named.
func (w *recWriter) collect(r *Recorder, codes []codeKey, globals []globalKey, images []string) {
	for _, k := range codes {
		if a := r.codes[k]; a.ok {
			w.addString(a.code.Image)
			w.addString(a.code.Symbol)
			w.addRow(a.code.Row)
		}
	}
	for _, k := range globals {
		w.addString(k.image)
		w.addString(k.symbol)
	}
	for _, name := range images {
		w.addString(name)
		w.addString(r.images[name].image.Name)
		w.addString(r.images[name].image.Path)
	}
}

func (w *recWriter) addString(s string) {
	if _, ok := w.strings[s]; !ok {
		w.strings[s] = uint64(len(w.list))
		w.list = append(w.list, s)
	}
}

func (w *recWriter) addRow(r *process.Row) {
	if _, ok := w.rows[r]; !ok && r != nil {
		w.rowList = append(w.rowList, r)
		w.rows[r] = uint64(len(w.rowList))
	}
}

func (w *recWriter) tables() {
	w.num(uint64(len(w.list)))
	for _, s := range w.list {
		w.bytes([]byte(s))
	}
	w.num(uint64(len(w.rowList)))
	for _, r := range w.rowList {
		w.row(r)
	}
}

func (w *recWriter) row(r *process.Row) {
	w.rule(&r.CFA)
	w.num(uint64(len(r.Saved)))
	for i := range r.Saved {
		w.num(uint64(r.Saved[i].Reg))
		w.rule(&r.Saved[i].Rule)
	}
	w.num(uint64(r.RA))
	w.bool(r.Signal)
	w.bool(r.SignedRA)
}

func (w *recWriter) rule(r *process.Rule) {
	w.num(uint64(r.Kind))
	w.num(uint64(r.Reg))
	w.signed(int64(r.Off))
	w.bytes(r.Expr)
}

// Flags of a code answer.
const (
	recExact = 1 << iota
	recFound
)

func (w *recWriter) codes(r *Recorder, keys []codeKey) {
	w.num(uint64(len(keys)))
	last := uint64(0)
	for _, k := range keys {
		a := r.codes[k]
		w.signed(int64(k.pc - last))
		last = k.pc
		flags := uint64(0)
		if k.exact {
			flags |= recExact
		}
		if a.ok {
			flags |= recFound
		}
		w.num(flags)
		if a.ok {
			w.num(w.strings[a.code.Image])
			w.num(a.code.Offset)
			w.num(w.strings[a.code.Symbol])
			w.num(w.rows[a.code.Row])
		}
	}
}

func (w *recWriter) globals(r *Recorder, keys []globalKey) {
	w.num(uint64(len(keys)))
	for _, k := range keys {
		a := r.globals[k]
		w.num(w.strings[k.image])
		w.num(w.strings[k.symbol])
		switch {
		case a.err == nil:
			w.num(recNoError)
		case errors.Is(a.err, process.ErrNoImage):
			w.num(recNoImage)
		default:
			w.num(recNoSymbol)
		}
		w.num(a.addr)
	}
}

func (w *recWriter) images(r *Recorder, names []string) {
	w.num(uint64(len(names)))
	for _, name := range names {
		a := r.images[name]
		w.num(w.strings[name])
		w.bool(a.ok)
		if a.ok {
			w.num(w.strings[a.image.Name])
			w.num(w.strings[a.image.Path])
			w.num(a.image.Start)
			w.num(a.image.End)
			w.num(a.image.Bias)
		}
	}
}

func (w *recWriter) step(s *recStep) {
	w.snapshot(s.snap)
	w.num(uint64(len(s.patches)))
	for _, p := range s.patches {
		w.num(p.addr)
		w.bytes(p.data)
	}
}

func (w *recWriter) snapshot(s *process.Snapshot) {
	w.signed(int64(s.TID))
	w.num(uint64(len(s.Regs)))
	for _, v := range s.Regs {
		w.num(v)
	}
	w.signed(s.Syscall)
	w.signed(0) // when the look was; no walk needs it
	w.bool(s.Cut)
	w.num(s.SideAddr)
	w.bytes(s.Side)
	w.num(s.PACMask)
	w.num(s.SP)
	w.num(uint64(len(s.Stack)))
	w.stack(s.Stack, expectedStack(w.stacks[s.TID], s.SP, len(s.Stack)))
	w.stacks[s.TID] = s
	w.num(s.UnderSP)
	w.num(uint64(len(s.Under)))
	w.stack(s.Under, expectedStack(nil, 0, len(s.Under)))
	w.continuation(&s.Continuation)
	w.bytes(s.Followed)
	w.signed(0) // the CPU time that a sample carried; the same
}

func (w *recWriter) continuation(c *process.Continuation) {
	w.num(c.Entry)
	if c.Entry == 0 {
		return
	}
	w.num(c.ID)
	w.bytes([]byte(c.Name))
	w.bool(c.Settled)
	w.num(c.BaseAddr)
	w.bytes(c.Base)
	w.num(uint64(len(c.Chunks)))
	for i := range c.Chunks {
		w.num(c.Chunks[i].SP)
		w.bytes(c.Chunks[i].Stack)
	}
}

// expectedStack is the content that the last snapshot of the same thread lets expect.
func expectedStack(last *process.Snapshot, sp uint64, n int) []byte {
	b := make([]byte, n)
	if last == nil {
		return b
	}
	if sp >= last.SP && sp-last.SP < uint64(len(last.Stack)) {
		copy(b, last.Stack[sp-last.SP:])
	} else if sp < last.SP && last.SP-sp < uint64(n) {
		copy(b[last.SP-sp:], last.Stack)
	}
	return b
}

// stack writes the differences: number of equal bytes, then different ones, in turn. Few
// equal ones between two different ones do not pay.
func (w *recWriter) stack(b, expected []byte) {
	const worthwhile = 8
	for at := 0; at < len(b); {
		same := at
		for same < len(b) && b[same] == expected[same] {
			same++
		}
		end, run := same, 0
		for end+run < len(b) && run < worthwhile {
			if b[end+run] == expected[end+run] {
				run++
			} else {
				end, run = end+run+1, 0
			}
		}
		w.num(uint64(same - at))
		w.bytes(b[same:end])
		at = end
	}
}
