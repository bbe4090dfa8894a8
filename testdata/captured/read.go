package captured

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/process"
)

// maxRecording bounds the memory that a recording takes once loaded.
const maxRecording = 1 << 30

// maxStack bounds one snapshot's copy of a stack.
const maxStack = 64 << 20

// recReader reads the parts of a recording. The first error stays; after it all reads
// give zeros. Whatever takes memory is paid from budget.
type recReader struct {
	r       *bufio.Reader
	err     error
	budget  int64
	strings []string
	rows    []*process.Row
	stacks  map[int]*process.Snapshot
	version int // of the format
}

func load(rd io.Reader, budget int64) (*Recording, error) {
	gz, err := gzip.NewReader(rd)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRecording, err)
	}
	return readRecording(gz, budget)
}

// readRecording reads what is inside the gzip.
func readRecording(rd io.Reader, budget int64) (*Recording, error) {
	r := &recReader{r: bufio.NewReader(rd), budget: budget, stacks: map[int]*process.Snapshot{}}
	magic := make([]byte, len(recordingMagic))
	_, err := io.ReadFull(r.r, magic)
	r.version = slices.Index([]string{"", recordingFirst, recordingSecond, recordingThird, recordingMagic}, string(magic))
	if err != nil || r.version < 1 {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrBadRecording, recordingMagic)
	}
	rec := &Recording{
		cpu:     cpus.ByName(string(r.bytes())),
		codes:   map[codeKey]codeAnswer{},
		globals: map[globalKey]globalAnswer{},
		images:  map[string]imageAnswer{},
		step:    -1,
	}
	if rec.cpu == nil {
		r.fail("unknown CPU")
	}
	r.chunks(rec)
	r.tables()
	r.codes(rec)
	r.globals(rec)
	r.images(rec)
	for n := r.count(512); n > 0 && r.err == nil; n-- {
		rec.Snapshots = append(rec.Snapshots, r.snapshot())
		rec.patches = append(rec.patches, r.patches())
	}
	// Reading to the end lets gzip check its sum.
	if _, err := r.r.ReadByte(); r.err == nil && err != io.EOF {
		r.fail("it goes on behind its end (%v)", err)
	}
	if r.err != nil {
		return nil, r.err
	}
	rec.Step(0)
	return rec, nil
}

func (r *recReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrBadRecording, fmt.Sprintf(format, args...))
	}
}

// pay takes memory from the budget.
func (r *recReader) pay(n int64) bool {
	if r.err != nil {
		return false
	}
	if r.budget -= n; n < 0 || r.budget < 0 {
		r.err = fmt.Errorf("%w: %w", ErrBadRecording, process.ErrTooLong)
		return false
	}
	return true
}

func (r *recReader) num() uint64 {
	if r.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(r.r)
	if err != nil {
		r.failRead(err)
		return 0
	}
	return v
}

func (r *recReader) failRead(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	r.fail("%v", err)
}

func (r *recReader) signed() int64 {
	if r.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(r.r)
	if err != nil {
		r.failRead(err)
		return 0
	}
	return v
}

// below reads a number that must be smaller than a limit.
func (r *recReader) below(limit uint64) uint64 {
	v := r.num()
	if v >= limit {
		r.fail("%d where less than %d must be", v, limit)
		return 0
	}
	return v
}

func (r *recReader) bool() bool { return r.below(2) == 1 }

// count reads how many things follow of which each takes that much memory.
func (r *recReader) count(each int64) int {
	n := r.num()
	if n > math.MaxInt32 || !r.pay(int64(n)*each) {
		r.fail("%d elements", n)
		return 0
	}
	return int(n)
}

// bytes reads a piece of bytes. It is not allocated before it has been read so far.
func (r *recReader) bytes() []byte {
	n := r.count(1)
	if r.err != nil || n == 0 {
		return nil
	}
	const step = 1 << 20
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		k := min(n-len(b), step)
		b = append(b, make([]byte, k)...)
		if _, err := io.ReadFull(r.r, b[len(b)-k:]); err != nil {
			r.failRead(err)
			return nil
		}
	}
	return b
}

func (r *recReader) chunks(rec *Recording) {
	end := uint64(0)
	total := 0
	var chunks []patch
	for n := r.count(40); n > 0 && r.err == nil; n-- {
		gap := r.num()
		addr := end + gap
		data := r.bytes()
		end = addr + uint64(len(data))
		if addr < gap || end < addr {
			r.fail("memory beyond the last address")
			return
		}
		total += len(data)
		chunks = append(chunks, patch{addr, data})
	}
	if !r.pay(2 * int64(total)) {
		return
	}
	// All in a row: that makes going back to the start one copy.
	rec.first = make([]byte, 0, total)
	for _, c := range chunks {
		rec.first = append(rec.first, c.data...)
	}
	rec.all = append([]byte(nil), rec.first...)
	at := 0
	for _, c := range chunks {
		rec.chunks = append(rec.chunks, patch{c.addr, rec.all[at : at+len(c.data) : at+len(c.data)]})
		at += len(c.data)
	}
}

func (r *recReader) tables() {
	for n := r.count(16); n > 0 && r.err == nil; n-- {
		r.strings = append(r.strings, string(r.bytes()))
	}
	for n := r.count(96); n > 0 && r.err == nil; n-- {
		r.rows = append(r.rows, r.row())
	}
}

func (r *recReader) str() string {
	i := r.below(uint64(len(r.strings)))
	if r.err != nil {
		return ""
	}
	return r.strings[i]
}

func (r *recReader) row() *process.Row {
	row := &process.Row{CFA: r.rule()}
	if k := row.CFA.Kind; k != process.RuleRegister && k != process.RuleValExpr {
		r.fail("a frame address of kind %d", k)
	}
	for n := r.below(arch.MaxRegs + 1); n > 0 && r.pay(40); n-- {
		row.Saved = append(row.Saved, process.SavedReg{Reg: uint8(r.below(arch.MaxRegs)), Rule: r.rule()})
	}
	row.RA = uint8(r.below(arch.MaxRegs))
	row.Signal = r.bool()
	row.SignedRA = r.bool()
	return row
}

func (r *recReader) rule() process.Rule {
	kind := process.RuleKind(r.below(uint64(process.RuleValExpr) + 1))
	rule := process.Rule{Kind: kind, Reg: uint8(r.below(arch.MaxRegs))}
	off := r.signed()
	if off != int64(int32(off)) {
		r.fail("offset %d", off)
	}
	rule.Off = int32(off)
	rule.Expr = r.bytes()
	return rule
}

func (r *recReader) codes(rec *Recording) {
	pc := uint64(0)
	for n := r.count(128); n > 0 && r.err == nil; n-- {
		pc += uint64(r.signed())
		flags := r.below(4)
		a := codeAnswer{ok: flags&recFound != 0}
		if a.ok {
			a.code.Image = r.str()
			a.code.Offset = r.num()
			a.code.Symbol = r.str()
			if row := r.below(uint64(len(r.rows)) + 1); row > 0 {
				a.code.Row = r.rows[row-1]
			}
		}
		rec.codes[codeKey{pc, flags&recExact != 0}] = a
	}
}

func (r *recReader) globals(rec *Recording) {
	for n := r.count(96); n > 0 && r.err == nil; n-- {
		key := globalKey{r.str(), r.str()}
		kind := r.below(3)
		a := globalAnswer{addr: r.num()}
		if kind != recNoError {
			kinds := [...]error{recNoSymbol: process.ErrNoSymbol, recNoImage: process.ErrNoImage}
			a.err = fmt.Errorf("%w: %s in %s", kinds[kind], key.symbol, key.image)
		}
		rec.globals[key] = a
	}
}

func (r *recReader) images(rec *Recording) {
	for n := r.count(128); n > 0 && r.err == nil; n-- {
		name := r.str()
		a := imageAnswer{ok: r.bool()}
		if a.ok {
			a.image = process.Image{Name: r.str(), Path: r.str(), Start: r.num(), End: r.num(), Bias: r.num()}
		}
		rec.images[name] = a
	}
}

func (r *recReader) patches() []patch {
	var ps []patch
	for n := r.count(40); n > 0 && r.err == nil; n-- {
		ps = append(ps, patch{r.num(), r.bytes()})
	}
	return ps
}

func (r *recReader) snapshot() *process.Snapshot {
	s := &process.Snapshot{TID: int(r.signed())}
	n := r.below(uint64(len(s.Regs)) + 1)
	for i := range n {
		s.Regs[i] = r.num()
	}
	s.Syscall = r.signed()
	r.signed() // when the look was
	s.Cut = r.bool()
	s.SideAddr = r.num()
	s.Side = r.bytes()
	s.PACMask = r.num()
	s.SP = r.num()
	if size := r.below(maxStack + 1); r.pay(int64(size)) {
		s.Stack = expectedStack(r.stacks[s.TID], s.SP, int(size))
		r.stack(s.Stack)
		r.stacks[s.TID] = s
	}
	if r.version < 2 {
		return s
	}
	s.UnderSP = r.num()
	if size := r.below(maxStack + 1); size > 0 && r.pay(int64(size)) {
		s.Under = expectedStack(nil, 0, int(size))
		r.stack(s.Under)
	}
	if r.version > 2 {
		r.continuation(&s.Continuation)
	}
	if r.version > 3 {
		s.Followed = r.bytes()
		s.RunsOn = len(s.Followed) > 0
		r.signed() // the CPU time that a sample carried
	}
	return s
}

func (r *recReader) continuation(c *process.Continuation) {
	if c.Entry = r.num(); c.Entry == 0 {
		return
	}
	c.ID = r.num()
	c.Name = string(r.bytes())
	c.Settled = r.bool()
	c.BaseAddr = r.num()
	c.Base = r.bytes()
	for n := r.count(64); n > 0 && r.err == nil; n-- {
		c.Chunks = append(c.Chunks, process.Chunk{SP: r.num(), Stack: r.bytes()})
	}
}

// stack overwrites what is expected with what differs.
func (r *recReader) stack(b []byte) {
	for at := uint64(0); at < uint64(len(b)) && r.err == nil; {
		left := uint64(len(b)) - at
		same := r.below(left + 1)
		n := r.below(left - same + 1)
		if same+n == 0 {
			r.fail("a stack that does not go on")
		}
		if r.err != nil {
			return
		}
		at += same
		if _, err := io.ReadFull(r.r, b[at:at+n]); err != nil {
			r.failRead(err)
		}
		at += n
	}
}
