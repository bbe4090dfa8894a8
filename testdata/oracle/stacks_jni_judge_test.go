//go:build linux

package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// A chain is what a stack of Java and C must look like. truth.JniChain says which of its
// methods and functions are on the stack; what stands between them follows:
//
//	Java <- Java            nothing
//	native method <- C      nothing; the native method itself has no shadow
//	C <- C                  nothing
//	C <- Java               libjvm's functions, then one call_stub
//	(root) <- C             nothing
//
// and where C has no unwind information, only its uppermost such function is there, then a
// gap, then the native method that led to it; nothing where a thread began there.

// linkKind is what a link of the chain is.
type linkKind uint8

const (
	javaLink   linkKind = iota
	nativeLink          // a native method's frame
	cLink
	gapLink
	entryLink // call_stub
	otherLink
)

var linkNames = [...]string{"java", "native method", "C", "gap", "entry", "other"}

// link is one frame of a chain. Chains are written from the top down.
type link struct {
	kind linkKind
	name string
	line int
	top  bool // it belongs to the topmost physical frame, of compiled Java
}

func (l link) String() string { return fmt.Sprintf("%s %s:%d", linkNames[l.kind], l.name, l.line) }

// isC tells C functions from Java methods.
func isC(name string) bool { return !strings.Contains(name, ".") }

// isBare: the function has no unwind information.
func isBare(name string) bool { return strings.Contains(name, "Bare_") }

// expectedChain is the chain of a shadow, which is written from the top down.
func expectedChain(shadow []jvmtest.ShadowFrame) (chain []link) {
	last := ""
	for _, f := range slices.Backward(shadow) {
		switch wasC := last != "" && isC(last); {
		case isC(f.Method):
			if last != "" && !wasC {
				method, _, _ := strings.Cut(f.Method, "_")
				chain = append(chain, link{kind: nativeLink, name: "truth.JniChain." + method})
			}
			chain = append(chain, link{kind: cLink, name: f.Method})
		case wasC:
			chain = append(chain, link{kind: entryLink, name: callStubName}, link{kind: javaLink, name: f.Method, line: f.Line})
		default:
			chain = append(chain, link{kind: javaLink, name: f.Method, line: f.Line})
		}
		last = f.Method
	}
	slices.Reverse(chain)
	return withGaps(chain)
}

const callStubName = "call_stub"

// withGaps replaces what lies behind a function without unwind information.
func withGaps(chain []link) (seen []link) {
	hidden := false
	for _, l := range chain {
		hidden = hidden && l.kind == cLink
		if hidden {
			continue
		}
		seen = append(seen, l)
		if l.kind == cLink && isBare(l.name) {
			seen = append(seen, link{kind: gapLink})
			hidden = true
		}
	}
	return seen
}

// mayCall: what can be on top of the shadow before it says so.
func mayCall(caller, callee string) bool {
	function, outer := strings.CutSuffix(callee, "_outer")
	inner := strings.HasSuffix(callee, "_inner")
	switch {
	case !isC(caller):
		return outer || !inner && callee != "truth.JniChain.back"
	case strings.HasSuffix(caller, "_root"):
		return callee == "truth.JniChain.run"
	case strings.HasSuffix(caller, "_outer"):
		return inner && strings.TrimSuffix(caller, "_outer") == strings.TrimSuffix(callee, "_inner")
	default: // C calls back, or the other library
		return callee == "truth.JniChain.back" || outer && isBare(caller) != isBare(function+"_")
	}
}

// chainJudge compares walks with shadows.
type chainJudge struct {
	names     []string // all that a shadow may hold
	cfi, bare *nativeLibrary
}

// judge compares a whole stack. It allows what jvmtest.Shadow.Judge does: one method or
// function more on top, with its native method; one Java method less; other methods
// inlined into the topmost physical frame, of which the code is made.
func (j *chainJudge) judge(shadow []jvmtest.ShadowFrame, walked []link, code map[string]bool) (jvmtest.Verdict, error) {
	want := expectedChain(shadow)
	why := sameChain(want, walked)
	switch {
	case why == nil:
		return jvmtest.Exact, nil
	case slices.ContainsFunc(j.oneMore(shadow), func(more []link) bool { return sameChain(more, walked) == nil }):
		return jvmtest.OneMore, nil
	case len(want) > 1 && want[0].kind == javaLink && sameChain(want[1:], walked) == nil && !walked[0].top:
		return jvmtest.OneLess, nil
	case onlyInlined(want, walked, code):
		return jvmtest.InlinedDiffer, nil
	}
	return jvmtest.Mismatch, why
}

// judgePart is judge for a stack that ends too early: what is there must be right.
func (j *chainJudge) judgePart(shadow []jvmtest.ShadowFrame, walked []link, _ map[string]bool) (jvmtest.Verdict,
	error) {
	cut := func(chain []link) []link { return chain[:min(len(chain), len(walked))] }
	want := expectedChain(shadow)
	why := sameChain(cut(want), walked)
	if why == nil {
		return jvmtest.Exact, nil
	}
	if slices.ContainsFunc(j.oneMore(shadow), func(more []link) bool { return sameChain(cut(more), walked) == nil }) {
		return jvmtest.OneMore, nil
	}
	return jvmtest.Mismatch, why
}

// oneMore are the chains of what the thread may have entered, or not left yet.
func (j *chainJudge) oneMore(shadow []jvmtest.ShadowFrame) (chains [][]link) {
	if len(shadow) == 0 {
		return nil
	}
	for _, name := range j.names {
		if !mayCall(shadow[0].Method, name) {
			continue
		}
		more := expectedChain(append([]jvmtest.ShadowFrame{{Method: name}}, shadow...))
		chains = append(chains, more)
		if method := slices.IndexFunc(more, func(l link) bool { return l.kind == nativeLink }); isC(name) &&
			!isC(shadow[0].Method) {
			chains = append(chains, more[method:]) // in the native method itself
		}
	}
	return chains
}

// sameChain compares frame by frame; a line counts where the method is a caller.
func sameChain(want, walked []link) error {
	if n := agreement(want, walked); n < len(want) && n < len(walked) {
		return fmt.Errorf("frame %d from the root is %v, not %v", n+1, walked[len(walked)-1-n], want[len(want)-1-n])
	}
	if len(want) != len(walked) {
		return fmt.Errorf("the stack has %d frames, not %d", len(walked), len(want))
	}
	return nil
}

// agreement counts the frames at the root that agree.
func agreement(want, walked []link) int {
	for up := range min(len(want), len(walked)) {
		w, g := want[len(want)-1-up], walked[len(walked)-1-up]
		caller := up+1 < len(want) && up+1 < len(walked)
		if w.kind != g.kind || w.name != g.name || caller && w.line != g.line {
			return up
		}
	}
	return min(len(want), len(walked))
}

// onlyInlined: the two differ only in what is inlined into the frame that was interrupted.
func onlyInlined(want, walked []link, code map[string]bool) bool {
	n := agreement(want, walked)
	foreign := func(l link) bool { return l.kind != javaLink || !code[l.name] }
	deeper := func(l link) bool { return !l.top }
	return len(walked) > 0 && walked[0].top && !slices.ContainsFunc(want[:len(want)-n], foreign) &&
		!slices.ContainsFunc(walked[:len(walked)-n], deeper)
}

// chain makes a chain of a walk: the program's own methods and functions and what stands between
// them. Above the program's uppermost frame and below its lowest there is Java's own business.
func (j *chainJudge) chain(st *profile.Stack) []link {
	var chain []link
	var topSP uint64
	for i := range st.Frames {
		f := &st.Frames[i]
		if f.Kind.Java() && topSP == 0 {
			topSP = f.SP
		}
		l := j.link(f)
		l.top = l.kind == javaLink && f.Kind != profile.Interpreted && f.SP == topSP
		chain = append(chain, l)
	}
	return withoutJVM(chain)
}

func (j *chainJudge) link(f *profile.Frame) link {
	name := f.Func.Name
	switch {
	case f.Kind == profile.Gap && name == "[no unwind info: "+j.bare.name()+"]":
		return link{kind: gapLink}
	case f.Kind == profile.Native && (f.Func.Module == j.cfi.name() || f.Func.Module == j.bare.name()):
		if name = j.bare.nameAt(name); strings.HasPrefix(name, f.Func.Module+"+") {
			break // the linker's own code, on the way to another library's function
		}
		return link{kind: cLink, name: name}
	case f.Kind == profile.Native && f.Func.Module == libjvmName:
		return link{kind: otherLink, name: libjvmName}
	case f.Kind == profile.Stub && name == callStubName:
		return link{kind: entryLink, name: name}
	case f.Kind == profile.NativeMethod && strings.HasPrefix(name, "truth.JniChain."):
		return link{kind: nativeLink, name: name}
	case f.Kind.Java() && slices.Contains(j.names, name):
		return link{kind: javaLink, name: name, line: int(f.Line)}
	}
	return link{kind: otherLink, name: f.Kind.String() + " " + name, line: int(f.Line)}
}

const libjvmName = "libjvm.so"

// withoutJVM leaves out what is above and below the program's frames, and libjvm's functions
// where C calls Java.
func withoutJVM(chain []link) (own []link) {
	begin := slices.IndexFunc(chain, isOwn)
	if begin < 0 {
		return nil
	}
	end := len(chain)
	for !isOwn(chain[end-1]) {
		end--
	}
	entered := false
	for _, l := range chain[begin:end] {
		entered = l.kind == entryLink || entered && l.name == libjvmName
		if !entered || l.kind == entryLink {
			own = append(own, l)
		}
	}
	return own
}

func isOwn(l link) bool { return l.kind != otherLink && l.kind != entryLink }

// TestChainJudge: the judge itself can fail.
func TestChainJudge(t *testing.T) {
	java := func(name string, line int) link {
		return link{kind: javaLink, name: "truth.JniChain." + name, line: line}
	}
	method := func(name string) link { return link{kind: nativeLink, name: "truth.JniChain." + name} }
	c := func(name string) link { return link{kind: cLink, name: name} }
	entry, gap := link{kind: entryLink, name: callStubName}, link{kind: gapLink}
	j := chainJudge{names: []string{"truth.JniChain.run", "truth.JniChain.step", "truth.JniChain.back",
		"plainCfi_outer", "plainCfi_inner", "savedBare_outer", "savedBare_inner"}}
	shadow := []jvmtest.ShadowFrame{{Method: "savedBare_inner"}, {Method: "savedBare_outer"},
		{Method: "truth.JniChain.step", Line: 7},
		{Method: "truth.JniChain.back", Line: 5}, {Method: "plainCfi_inner"}, {Method: "plainCfi_outer"},
		{Method: "truth.JniChain.step", Line: 9}}
	right := []link{c("savedBare_inner"), gap, method("savedBare"), java("step", 7), java("back", 5), entry,
		c("plainCfi_inner"), c("plainCfi_outer"), method("plainCfi"), java("step", 9)}
	with := func(i int, l link) []link { s := slices.Clone(right); s[i] = l; return s }
	top := func(l link) link { l.top = true; return l }
	code := map[string]bool{"truth.JniChain.step": true}
	tests := []struct {
		name    string
		shadow  []jvmtest.ShadowFrame
		walked  []link
		verdict jvmtest.Verdict
	}{
		{"as it is", shadow, right, jvmtest.Exact},
		{"entering Java", shadow, append([]link{java("back", 1), entry}, right...), jvmtest.OneMore},
		{"entering a native method", shadow[3:], append([]link{method("plainCfi")}, right[4:]...), jvmtest.OneMore},
		{"entering C", shadow[3:], append([]link{c("plainCfi_outer"), method("plainCfi")}, right[4:]...), jvmtest.OneMore},
		{"entering C without unwind information", shadow[2:],
			append([]link{c("savedBare_outer"), gap, method("savedBare")}, right[3:]...), jvmtest.OneMore},
		{"a thread that C has made", []jvmtest.ShadowFrame{{Method: "truth.JniChain.run"}, {Method: "attachedCfi_root"}},
			[]link{java("run", 0), entry, c("attachedCfi_root")}, jvmtest.Exact},
		{"a thread that C without unwind information has made", []jvmtest.ShadowFrame{{Method: "attachedBare_root"}},
			[]link{java("run", 0), entry, c("attachedBare_root"), gap}, jvmtest.OneMore},
		{"leaving by an exception", shadow[2:], right[4:], jvmtest.OneLess},
		{"inlined on top", shadow[2:], append([]link{top(java("sum", 3)), top(java("sum", 3)), top(java("step", 8))},
			right[4:]...), jvmtest.InlinedDiffer},
		{"a method that is nowhere inlined", append([]jvmtest.ShadowFrame{{Method: "truth.JniChain.run"},
			{Method: "truth.JniChain.run"}}, shadow[2:]...),
			append([]link{top(java("step", 7))}, right[4:]...), jvmtest.Mismatch},
		{"inlined below C", shadow, with(3, top(java("run", 7))), jvmtest.Mismatch},
		{"a wrong line", shadow, with(3, java("step", 8)), jvmtest.Mismatch},
		{"a wrong method", shadow, with(4, java("run", 5)), jvmtest.Mismatch},
		{"a method twice", shadow, slices.Insert(slices.Clone(right), 4, right[4]), jvmtest.Mismatch},
		{"a method missing", shadow, slices.Delete(slices.Clone(right), 4, 5), jvmtest.Mismatch},
		{"no gap", shadow, slices.Delete(slices.Clone(right), 1, 2), jvmtest.Mismatch},
		{"two gaps", shadow, slices.Insert(slices.Clone(right), 1, gap), jvmtest.Mismatch},
		{"a gap too many", shadow, slices.Insert(slices.Clone(right), 7, gap), jvmtest.Mismatch},
		{"functions in another order", shadow, slices.Concat(right[:6], []link{right[7], right[6]}, right[8:]),
			jvmtest.Mismatch},
		{"no entry", shadow, slices.Delete(slices.Clone(right), 5, 6), jvmtest.Mismatch},
		{"an invented frame", shadow, slices.Insert(slices.Clone(right), 4, link{kind: otherLink, name: "native x"}),
			jvmtest.Mismatch},
		{"nothing", shadow, nil, jvmtest.Mismatch},
		{"C that the method cannot call", shadow[3:], append([]link{c("plainCfi_inner"), method("plainCfi")}, right[4:]...),
			jvmtest.Mismatch},
		{"a C function less", shadow, right[2:], jvmtest.Mismatch},
	}
	for _, test := range tests {
		if got, why := j.judge(test.shadow, test.walked, code); got != test.verdict {
			t.Errorf("%s: %v (%v), not %v", test.name, got, why, test.verdict)
		}
	}
	if got, _ := j.judgePart(shadow, right[:4], nil); got != jvmtest.Exact {
		t.Errorf("the upper part of the right stack: %v", got)
	}
	if got, _ := j.judgePart(shadow, with(2, method("plainCfi"))[:4], nil); got != jvmtest.Mismatch {
		t.Errorf("the upper part of a wrong stack: %v", got)
	}
}
