//go:build linux

package oracle

import (
	"runtime"
	"slices"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/process"
	"goprof/profile"
	"goprof/unwind/leaf"
	"goprof/vmstructs"
)

// leafJudge has the truth at places in compiled code: the full records there. It also says where they are no truth.
type leafJudge struct {
	vm     *vmstructs.VM
	finder *leaf.Finder
	cpu    *arch.CPU
	less   map[*vmstructs.Blob]*vmstructs.Blob // with the records that a JVM without the flag has
	strays map[*vmstructs.Blob][]strayRecord
}

func newLeafJudge(t process.Target, vm *vmstructs.VM) *leafJudge {
	return &leafJudge{vm, leaf.New(t, vm), t.CPU(), map[*vmstructs.Blob]*vmstructs.Blob{},
		map[*vmstructs.Blob][]strayRecord{}}
}

// safepointsOnly returns an nmethod as it is in a JVM without the flag.
func (j *leafJudge) safepointsOnly(b *vmstructs.Blob) *vmstructs.Blob {
	if j.less[b] == nil {
		j.less[b] = j.vm.SafepointsOnly(b)
	}
	return j.less[b]
}

// leafTold is what was told of a place.
type leafTold struct {
	leafPlace
	scopes []vmstructs.Scope
	sure   profile.Certainty
	rule   string // that has told it
}

// ask infers the methods at a place, and notes what a first sight takes.
func (s *leafScores) ask(j *leafJudge, p leafPlace) leafTold {
	runtime.LockOSThread() // for ownTime
	defer runtime.UnlockOSThread()
	less := j.safepointsOnly(p.b)
	reads := s.target.count()
	begin := ownTime()
	told, sure := j.finder.At(less, p.pc)
	took := ownTime() - begin
	rule := j.finder.DecidedBy()
	if _, judged := j.strays[p.b]; !judged && !s.seen[p.pc] { // the judge has read of it what a first sight reads
		s.seen[p.pc] = true
		s.first = append(s.first, took)
		if s.target != nil {
			s.firstReads = append(s.firstReads, s.target.count()-reads)
		}
	}
	if p.called != "" {
		var err error
		if told, sure, err = j.finder.Called(less, p.pc, p.called); err != nil {
			told = nil
		}
		rule = "in a call"
	}
	return leafTold{p, told, sure, rule}
}

// verdict says what the record at a place is worth.
type verdict uint8

const (
	isTruth   verdict = iota
	isGone            // or nobody knows
	isOfOther         // it stands at code in one piece, and its bytecode is one of which C2 makes no such piece
	isStray           // the JVM gives it to code of other bytecodes, too: see isStray, and isScattered for barriers
)

// record is what the JVM has at a place, nil if it has nothing.
func (j *leafJudge) record(p leafPlace) []vmstructs.Scope {
	truth, _, err := j.finder.Recorded(p.b, p.pc)
	if p.called != "" {
		truth, err = j.vm.Scopes(p.b, p.pc, true)
	}
	if err != nil {
		return nil
	}
	return truth
}

// truth returns what the record has at a place. Of calls it is often not that of the bytecode that has called: then it
// is no truth. Nor is it in code that C2 makes in one piece, unless its bytecode is one of which C2 makes such a piece:
// C2 often has no record of the piece, and what follows has one.
func (j *leafJudge) truth(p leafPlace) ([]vmstructs.Scope, verdict) {
	truth := j.record(p)
	if truth == nil || p.called != "" && !j.finder.MayHaveCalled(truth[0], p.called) {
		return nil, isGone
	}
	less := j.safepointsOnly(p.b)
	if p.called == "" {
		switch counted, no := j.finder.Counted(less, p.pc, truth); {
		case counted != nil:
			return counted, isTruth
		case no:
			return truth, isOfOther
		}
	}
	at := p.pc
	if to := j.finder.HandsClassTo(less, p.pc); to != 0 && slices.Equal(j.record(leafPlace{b: p.b, pc: to}), truth) {
		at = to
	}
	rule, may := j.finder.Judge(less, at, truth[0])
	switch {
	case p.called != "":
		return truth, isTruth
	case j.finder.Computes(less, p.pc) && !j.sameBefore(p, truth), !may:
		return truth, isOfOther
	case j.isStray(p.b, truth) || rule == "barrier" && j.isScattered(p.b, truth):
		return truth, isStray
	}
	return truth, isTruth
}

// sameBefore reports whether the record before a place has the same methods as the one behind it.
func (j *leafJudge) sameBefore(p leafPlace, truth []vmstructs.Scope) bool {
	before := uint64(0)
	for pc := range p.b.Records() {
		if pc > p.pc {
			break
		}
		before = pc
	}
	s, err := j.vm.Scopes(p.b, before, true)
	return err == nil && slices.EqualFunc(s, truth, func(a, b vmstructs.Scope) bool { return a.Method == b.Method })
}

// score holds what was told of a place against the truth.
func (s *leafScores) score(j *leafJudge, p *leafTold) {
	truth, worth := j.truth(p.leafPlace)
	record := j.record(p.leafPlace)
	address, err := j.vm.Scopes(j.safepointsOnly(p.b), p.pc, p.called != "")
	if worth == isGone || err != nil || p.scopes == nil {
		return
	}
	s.asRecord.add(record, p.scopes)
	if !slices.Equal(record, truth) {
		s.counted++
	}
	certain := 0
	if p.sure == profile.Certain {
		certain = 1
	}
	switch worth {
	case isOfOther:
		s.unjudged.add(truth, p.scopes)
		s.unjudgedSure += certain
		return
	case isStray:
		s.stray.add(truth, p.scopes)
		s.straySure += certain
		return
	}
	if p.called != "" {
		s.calls.add(truth, p.scopes)
	} else if rule, _ := j.finder.Judge(j.safepointsOnly(p.b), p.pc, truth[0]); rule != "" && certain > 0 {
		s.pieces.add(truth, p.scopes)
	}
	s.ours.add(truth, p.scopes)
	s.sure[p.sure].add(truth, p.scopes)
	s.ofRule(p.rule).add(truth, p.scopes)
	s.byAddress.add(truth, address)
	if len(truth) > 1 {
		s.inlined++
	}
}

// strayRecord is a record of an nmethod, and at how many places it cannot be the truth.
type strayRecord struct {
	scopes []vmstructs.Scope
	places int
}

// strayPlaces is at how many places of an nmethod a record must be wrong, so that it proves nothing anywhere in it. It
// was chosen with the answers at hand: docs/evidence/leaf.md has the figures for other numbers.
const strayPlaces = 3

// isStray reports whether the JVM has given a record to several instructions of an nmethod that cannot be its own. C2
// does so with one or two records of many nmethods: in truth.Services.trees on 25 that of Random.next, at the call of
// compareAndSet, stands at twelve branches of allocations, and at the comparisons in all loops.
func (j *leafJudge) isStray(b *vmstructs.Blob, truth []vmstructs.Scope) bool {
	if _, known := j.strays[b]; !known {
		j.strays[b] = j.straysOf(b)
	}
	i := findStray(j.strays[b], truth)
	return i >= 0 && j.strays[b][i].places >= strayPlaces
}

func findStray(strays []strayRecord, scopes []vmstructs.Scope) int {
	return slices.IndexFunc(strays, func(r strayRecord) bool { return slices.Equal(r.scopes, scopes) })
}

// straysOf looks at the last instruction before each record of an nmethod. The record is that instruction's own: the
// others before it may have none. If the instruction is part of a piece, and the record is that of a bytecode of which
// C2 makes no such piece, the record is wrong there. Which methods the rule tells there does not matter. That it is
// sure does, for loads and barriers: else they are no pieces. A jump counts for the code to which it leads, so it is
// left out.
func (j *leafJudge) straysOf(b *vmstructs.Blob) (strays []strayRecord) {
	code, err := j.vm.Code(b, nil)
	if err != nil || b.Level != levelOfC2 {
		return nil
	}
	less, from := j.safepointsOnly(b), b.Begin
	for pc := range b.Records() {
		last := lastBefore(j.cpu, code, uint32(from-b.Begin), uint32(pc-b.Begin))
		from = pc
		truth, err := j.vm.Scopes(b, pc, true)
		if last < 0 || err != nil || j.vm.IsSafepoint(b, pc) {
			continue
		}
		if _, may := j.finder.Judge(less, b.Begin+uint64(last), truth[0]); !may {
			strays = noteStray(strays, truth)
		}
	}
	return strays
}

// noteStray counts one more place at which a record is wrong.
func noteStray(strays []strayRecord, scopes []vmstructs.Scope) []strayRecord {
	i := findStray(strays, scopes)
	if i < 0 {
		return append(strays, strayRecord{scopes, 1})
	}
	strays[i].places++
	return strays
}

// lastBefore is where the last instruction between two records begins, -1 if nobody knows, or if it is a jump.
func lastBefore(cpu *arch.CPU, code []byte, at, end uint32) int {
	last := -1
	for at < end {
		var in arch.Inst
		if !cpu.Read(code, at, &in) {
			return -1
		}
		if last = int(at); in.Flow == arch.FlowJump {
			last = -1
		}
		at += in.Len
	}
	if at != end {
		return -1
	}
	return last
}

// mostPlaces is how many records one store may have in an nmethod. It was chosen with the answers at hand: on the kept
// cores of 17 the wrong ones in barriers have records in 25 to 297 places, the right ones in up to 14, but for 23 in
// javac's largest nmethods. C2 unrolls loops sixteen times at most (LoopMaxUnroll). The scores say what it drops.
const mostPlaces = 16

// scatters is the last release whose records of barriers are so (decision 7, "What a barrier's record is worth"): since
// 24 C2 makes barriers when it emits code.
const scatters = 23

// isScattered reports whether an nmethod has the same record in very many places. Up to 23 C2 gives most barriers of
// G1 in an nmethod the record of the first store of a reference there: one in Random.<init>, which runs once, has 297
// records in the code of truth.Programs.maps, with the stores in loops of TreeMap and PriorityQueue. Such a record is
// no truth for a barrier, whether it has the method that was told or not.
func (j *leafJudge) isScattered(b *vmstructs.Blob, truth []vmstructs.Scope) bool {
	if j.vm.Version().Major > scatters {
		return false
	}
	n := 0
	for pc := range b.Records() {
		if s, err := j.vm.Scopes(b, pc, true); err == nil && slices.Equal(s, truth) {
			n++
		}
	}
	return n > mostPlaces
}

// TestStrays: a record proves nothing from the third place on at which it cannot be true.
func TestStrays(t *testing.T) {
	own, other := []vmstructs.Scope{{BCI: 4}}, []vmstructs.Scope{{BCI: 7}}
	b := &vmstructs.Blob{Level: levelOfC2}
	j := &leafJudge{strays: map[*vmstructs.Blob][]strayRecord{b: nil}}
	for places := 1; places <= 4; places++ {
		j.strays[b] = noteStray(j.strays[b], own)
		if got := j.isStray(b, own); got != (places >= strayPlaces) {
			t.Errorf("at %d places: %v", places, got)
		}
	}
	j.strays[b] = noteStray(j.strays[b], other)
	if j.isStray(b, other) || j.isStray(b, []vmstructs.Scope{{BCI: 9}}) || !j.isStray(b, own) {
		t.Errorf("%+v", j.strays[b])
	}
}

// TestLastBefore: to which instruction a record belongs.
func TestLastBefore(t *testing.T) {
	for _, r := range []struct {
		name    string
		code    []byte
		at, end uint32
		want    int
	}{
		{"one", []byte{0x90}, 0, 1, 0},
		{"the last of three", []byte{0x90, 0x31, 0xc0, 0xff, 0xc0, 0x90}, 0, 5, 3},
		{"a branch", []byte{0x90, 0x74, 0x01, 0x90}, 0, 3, 1},
		{"a jump", []byte{0x90, 0xeb, 0x01, 0x90}, 0, 3, -1},
		{"none", []byte{0x90}, 1, 1, -1},
		{"the record stands in an instruction", []byte{0x31, 0xc0, 0x90}, 0, 1, -1},
		{"the code ends", []byte{0x31}, 0, 2, -1},
	} {
		if got := lastBefore(amd64.CPU, r.code, r.at, r.end); got != r.want {
			t.Errorf("%s: %d", r.name, got)
		}
	}
}
