package machine

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"goprof/annotate"
	"goprof/arch"
	"goprof/arch/disasm"
	"goprof/process"
	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// Limits of what is copied while samples are taken.
const (
	maxCodes     = 512
	maxCodeBytes = 64 << 20
	maxSites     = 1 << 18
)

// Codes keeps the machine code that samples found in the wanted methods, inlined ones included. Add must follow the
// walk at once, because the walk has proven that the JVM's code is unchanged.
type Codes struct {
	vm     *vmstructs.VM
	target process.Target
	cpu    *arch.CPU
	wants  func(method string) bool
	codes  map[codeID]*code
	bytes  int
	sites  int
	// Lost counts samples for which there was no room, or whose code was already freed.
	Lost int64
}

// codeID is a JVM's number for a compilation. OSR compilations have their own series of numbers.
type codeID struct {
	begin uint64
	id    int32
	osr   bool
}

type code struct {
	blob  *vmstructs.Blob
	text  []byte
	sites map[uint64]*site // by pc; the lowest bit of the key marks a return address
}

// site holds the samples of a pc: their number, and their place in the source.
type site struct {
	pc     uint64
	called bool // pc is a return address
	count  int64
	frames []profile.Frame
}

func NewCodes(vm *vmstructs.VM, t process.Target, wants func(method string) bool) *Codes {
	return &Codes{vm: vm, target: t, cpu: t.CPU(), wants: wants, codes: map[codeID]*code{}}
}

// Add adds a stack n times.
func (c *Codes) Add(s *profile.Stack, n int64) {
	counted := map[*code]bool{}
	for i := 0; i < len(s.Frames); i++ {
		first := i
		for s.Frames[i].Kind == profile.Inlined && i < len(s.Frames)-1 {
			i++
		}
		f := &s.Frames[i]
		if f.Kind != profile.C1 && f.Kind != profile.C2 || !slices.ContainsFunc(s.Frames[first:i+1], c.isWanted) {
			continue
		}
		code := c.of(f)
		if code == nil {
			c.Lost += n
			continue
		}
		if counted[code] { // the method has called itself
			continue
		}
		counted[code] = true
		key := f.PC << 1
		if first > 0 {
			key |= 1
		}
		at := code.sites[key]
		if at == nil {
			if c.sites >= maxSites {
				c.Lost += n
				continue
			}
			c.sites++
			at = &site{pc: f.PC, called: first > 0, frames: slices.Clone(s.Frames[first : i+1])}
			code.sites[key] = at
		}
		at.count += n
	}
}

func (c *Codes) isWanted(f profile.Frame) bool { return f.Func != nil && c.wants(f.Func.Name) }

// of returns the code that a frame runs, or nil if it is not known.
func (c *Codes) of(f *profile.Frame) *code {
	b, err := c.vm.Blob(f.PC)
	if err != nil || f.Func == nil || b.Kind != vmstructs.Nmethod || b.Method == nil || named(b.Method) != f.Func.Name {
		return nil
	}
	id := codeID{b.Begin, b.CompileID, b.OSR}
	k := c.codes[id]
	if k == nil && len(c.codes) < maxCodes && c.bytes < maxCodeBytes {
		text, err := c.vm.Code(b, nil)
		if err != nil {
			return nil
		}
		k = &code{blob: b, text: text, sites: map[uint64]*site{}}
		c.codes[id] = k
		c.bytes += len(text)
	}
	return k
}

// AddTo adds the code of the page's method, and the code of the methods that it is inlined into.
func (c *Codes) AddTo(p *annotate.Page) {
	for _, k := range c.codes {
		var sites []*site
		for _, s := range k.sites {
			if slices.ContainsFunc(s.frames, func(f profile.Frame) bool { return f.Func.Name == p.Method }) {
				sites = append(sites, s)
			}
		}
		if len(sites) > 0 {
			p.Code = append(p.Code, c.page(k, sites))
		}
	}
	sort.Slice(p.Code, func(i, j int) bool {
		a, b := &p.Code[i], &p.Code[j]
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.CompileID, b.CompileID)) < 0
	})
	if c.Lost > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("samples whose machine code could not be kept: %d", c.Lost))
	}
}

// page decodes a piece of code. Calls are linked while code runs, so code that still exists is copied again.
func (c *Codes) page(k *code, sites []*site) annotate.Code {
	b := k.blob
	if now, err := c.vm.BlobAt(b.Addr); err == nil && now.CompileID == b.CompileID && now.Begin == b.Begin &&
		now.End == b.End && now.OSR == b.OSR {
		if text, err := c.vm.Code(now, nil); err == nil {
			k.text, k.blob, b = text, now, now
		}
	}
	out := annotate.Code{Method: named(b.Method), Compiler: "C2", Level: b.Level, CompileID: b.CompileID, OSR: b.OSR,
		EntryBCI: -1, Signature: b.Method.Signature, Begin: b.Begin, Size: len(k.text)}
	if b.Level < 4 {
		out.Compiler = "C1"
	}
	if b.OSR {
		out.EntryBCI = b.EntryBCI
	}
	rows := c.decode(k)
	c.count(k, sites, rows)
	for i := range rows {
		out.Sum(&rows[i].Count)
	}
	out.Instructions = rows
	return out
}

// decode lists the instructions. Bytes that are not an instruction are listed in groups of the shortest instruction's
// length.
func (c *Codes) decode(k *code) (rows []annotate.Instruction) {
	called := false // the previous instruction is a call
	for at := uint32(0); int(at) < len(k.text); {
		var in arch.Inst
		n, known := c.cpu.MinInst, c.cpu.Read(k.text, at, &in)
		if known && in.Len > 0 {
			n = in.Len
		}
		n = min(n, uint32(len(k.text))-at)
		row := annotate.Instruction{Offset: at, Bytes: hex.EncodeToString(k.text[at : at+n])}
		pc := k.blob.Begin + uint64(at)
		text, to, ok := disasm.Text(k.text[at:], pc, int(n))
		switch {
		case !known || !ok:
			text, to = ".byte "+row.Bytes, 0
		case in.Flow != arch.FlowCall && to >= k.blob.Begin && to < k.blob.End:
			text = strings.Replace(text, fmt.Sprintf("%#x", to), fmt.Sprintf("+%#x", to-k.blob.Begin), 1)
			to = 0
		}
		row.Text = text
		if known {
			row.Note = c.note(k, at, &in, to)
			c.place(k, &row, at, &in, called)
		}
		row.Note = join(entryNote(k.blob, pc), row.Note)
		rows = append(rows, row)
		called = known && in.Flow == arch.FlowCall
		at += n
	}
	return rows
}

func join(a, b string) string {
	if a != "" && b != "" {
		return a + ", " + b
	}
	return a + b
}

func entryNote(b *vmstructs.Blob, pc uint64) string {
	switch {
	case pc == b.VerifiedEntry:
		return "entry"
	case pc == b.OSREntry && b.OSR:
		return "OSR entry"
	case pc == b.EntryPoint:
		return "entry that checks the receiver's class"
	case pc == b.StubBegin:
		return "stubs and handlers from here on"
	}
	return ""
}

// note describes the target or the purpose of an instruction. to is the address that it calls or jumps to, or 0 within
// the same code.
func (c *Codes) note(k *code, at uint32, in *arch.Inst, to uint64) string {
	switch recorded := k.blob.HasPcDesc(k.blob.Begin + uint64(at)); {
	case in.Flow == arch.FlowCall && to != 0:
		return "calls " + c.name(k.blob, to)
	case to != 0:
		return "to " + c.name(k.blob, to)
	case in.Kind == arch.KindLong:
		if o, ok := c.cpu.Operands(k.text, at); ok && o.Constant != 0 {
			return c.knownName(o.Constant)
		}
	case disasm.PollsForSafepoint(k.text, int(at), recorded && !c.checksNull(k, at)):
		return "safepoint poll"
	case c.checksNull(k, at):
		return "also a null check"
	}
	return ""
}

func (c *Codes) checksNull(k *code, at uint32) bool {
	_, ok := c.vm.OnNull(k.blob, at)
	return ok
}

func (c *Codes) name(from *vmstructs.Blob, to uint64) string {
	if to >= from.Begin && to < from.End {
		return "a stub of its own"
	}
	return cmp.Or(c.knownName(to), "code without a name")
}

// knownName returns the name of the code at an address, or "". A constant need not be an address.
func (c *Codes) knownName(to uint64) string {
	if !c.vm.InCode(to) {
		code, ok := c.target.Code(to, true)
		if !ok || code.Symbol == "" {
			return ""
		}
		return unwind.Demangled(code.Symbol)
	}
	if c.vm.InInterpreter(to) {
		return "the interpreter"
	}
	b, err := c.vm.Blob(to)
	if err != nil {
		return ""
	}
	if b.Method != nil {
		return named(b.Method)
	}
	return cmp.Or(c.vm.StubName(to), b.Name, b.Kind.String())
}

// place fills in the JVM's record of an instruction. The record of a call is at the address behind the call. Other
// records are at the instruction itself. called says that the previous instruction is a call, so a record at this
// address belongs to that call.
func (c *Codes) place(k *code, row *annotate.Instruction, at uint32, in *arch.Inst, called bool) {
	pc := k.blob.Begin + uint64(at)
	if in.Flow == arch.FlowCall {
		pc, called = pc+uint64(in.Len), false
	}
	if called || !k.blob.HasPcDesc(pc) {
		return
	}
	scopes, err := c.vm.Scopes(k.blob, pc, true)
	if err != nil {
		return
	}
	for _, s := range scopes[:min(len(scopes), maxChain)] {
		if s.Method != nil {
			row.Place = append(row.Place, annotate.Place(short(named(s.Method)), s.Line, s.BCI))
		}
	}
}

// maxChain limits how many methods are shown of a place.
const maxChain = 4

// short returns a method's name without its package.
func short(name string) string {
	parts := strings.Split(name, ".")
	return strings.Join(parts[max(len(parts)-2, 0):], ".")
}

// count distributes the samples of the code to its instructions. A return address is the address behind the call.
func (c *Codes) count(k *code, sites []*site, rows []annotate.Instruction) {
	for _, s := range sites {
		at := uint32(s.pc - k.blob.Begin)
		i := sort.Search(len(rows), func(i int) bool { return rows[i].Offset > at }) - 1
		if s.called && i > 0 && rows[i].Offset == at { // not for the pc of an interrupted thread
			var in arch.Inst
			if c.cpu.Read(k.text, rows[i-1].Offset, &in) && in.Flow == arch.FlowCall {
				i--
			}
		}
		if i < 0 {
			c.Lost += s.count
			continue
		}
		row := &rows[i]
		row.Total += s.count
		if s.called {
			continue
		}
		sure := s.frames[0].Sure
		if !c.vm.FullRecords(k.blob) {
			sure = max(sure, profile.Likely) // of the method; the line is that of a nearby record
		}
		row.Add(s.count, sure)
		if len(row.Place) > 0 {
			continue // the JVM's own record
		}
		row.Place, row.Sure = nil, sure
		for _, f := range s.frames[:min(len(s.frames), maxChain)] {
			row.Place = append(row.Place, annotate.Place(short(f.Func.Name), f.Line, f.BCI))
		}
	}
}
