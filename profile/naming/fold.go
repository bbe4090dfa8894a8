package naming

import "goprof/profile"

// Fold folds a stack (root first): a run of frames that only pass calls on becomes one frame. From the root on, it
// calls keep with the index of each frame that stays, and fold with the first index of each run.
//
// The frames at the root in which a thread began are such a run. So are the frames at the leaf in which a thread waits
// for a futex. Any other leaf stays as it is, so Fold does not change where samples were taken.
func Fold(stack []Plumbing, keep func(i int), fold func(i int, what Plumbing)) {
	rest := waiting(stack)
	waits := rest < len(stack)
	stack = stack[:rest]
	i := 0
	for i < len(stack) && stack[i] == Label {
		keep(i)
		i++
	}
	if at := entry(stack, i, !waits); at > i {
		fold(i, ThreadEntry)
		i = at
	}
	for i < len(stack) {
		what, end := run(stack, i)
		if end == i {
			keep(i)
			i++
			continue
		}
		fold(i, what)
		i = end
	}
	if waits {
		fold(rest, FutexWait)
	}
}

// FoldEntry folds only the frames with which the thread began.
func FoldEntry(stack []Plumbing, keep func(i int), fold func(i int, what Plumbing)) {
	i := 0
	for i < len(stack) && stack[i] == Label {
		keep(i)
		i++
	}
	if at := entry(stack, i, true); at > i {
		fold(i, ThreadEntry)
		i = at
	}
	for ; i < len(stack); i++ {
		keep(i)
	}
}

// entry returns the end of the run with which a thread began, up to the first call of Java. The leaf does not belong to
// the run.
func entry(stack []Plumbing, i int, leaf bool) int {
	last := len(stack)
	if leaf {
		last--
	}
	for ; i < last && stack[i].enters(); i++ {
		if stack[i] == VMEntry {
			return i + 1
		}
	}
	return i
}

// waiting returns the beginning of the run in which the leaf waits for a futex. If there is no such run, it returns the
// stack's end.
func waiting(stack []Plumbing) int {
	at := len(stack)
	for at > 0 && (stack[at-1] == FutexCall || stack[at-1] == WaitCall && at < len(stack)) {
		at--
	}
	return at
}

// run returns the end of the run that begins at i. The run ends before the leaf.
func run(stack []Plumbing, i int) (what Plumbing, end int) {
	leaf := len(stack) - 1
	for end = i; end < leaf && stack[end].passes(); {
		at := stack[end]
		end++
		if at == IntoVM {
			at = Reflection
			end = beyondVM(stack, end, leaf)
		}
		what = max(what, at)
	}
	return what, end
}

// beyondVM returns the beginning of the Java code that the VM was asked to call: after native frames and the call stub.
// If there is none, the native frames are work of the VM (it checks, or loads a class).
func beyondVM(stack []Plumbing, i, leaf int) int {
	for k := i; k < leaf; k++ {
		switch stack[k] {
		case VMEntry:
			return k + 1
		default:
			if !stack[k].inVM() {
				return i
			}
		}
	}
	return i
}

// CallStub is the name of the stub with which the VM calls Java.
const CallStub = "call_stub"

// Folder folds stacks of one process, one after another. It caches the kinds of functions.
type Folder struct {
	known map[*profile.Func]Plumbing
	folds [VMCall]profile.Func
	stack []Plumbing
	out   []profile.Frame
}

const maxKnown = 1 << 16

// Stack folds a stack in place. The frames of a virtual thread and those of its carrier are folded separately.
func (f *Folder) Stack(s *profile.Stack) { f.each(s, false) }

// Entry folds only the frames with which the thread began.
func (f *Folder) Entry(s *profile.Stack) { f.each(s, true) }

func (f *Folder) each(s *profile.Stack, entry bool) {
	c := s.Carrier
	if c <= 0 || c > len(s.Frames) {
		f.fold(s, entry)
		return
	}
	virtual, carrier := profile.Stack{Frames: s.Frames[:c]}, profile.Stack{Frames: s.Frames[c:]}
	f.fold(&virtual, entry)
	f.fold(&carrier, entry)
	s.Carrier = len(virtual.Frames)
	s.Frames = append(virtual.Frames, carrier.Frames...)
}

// fold folds one stack in place. entry: the frames in which a thread began are folded, too.
func (f *Folder) fold(s *profile.Stack, entry bool) {
	n := len(s.Frames)
	f.stack, f.out = f.stack[:0], f.out[:0]
	for i := n - 1; i >= 0; i-- {
		f.stack = append(f.stack, f.plumbing(&s.Frames[i]))
	}
	keep := func(i int) { f.out = append(f.out, s.Frames[n-1-i]) }
	fold := func(_ int, what Plumbing) {
		f.out = append(f.out, profile.Frame{Func: f.frame(what), Kind: profile.Gap, BCI: -1})
	}
	if entry {
		FoldEntry(f.stack, keep, fold)
	} else {
		Fold(f.stack, keep, fold)
	}
	s.Frames = s.Frames[:len(f.out)]
	for i, frame := range f.out {
		s.Frames[len(f.out)-1-i] = frame
	}
}

func (f *Folder) frame(what Plumbing) *profile.Func {
	fn := &f.folds[what]
	fn.Name = what.String()
	return fn
}

// plumbing returns the kind of plumbing of a frame. It caches the result for each function.
func (f *Folder) plumbing(frame *profile.Frame) Plumbing {
	what, ok := f.known[frame.Func]
	if ok {
		return what
	}
	switch {
	case frame.Func == nil:
		return NoPlumbing
	case frame.Kind.Java():
		what = PlumbingOf(frame.Func.Name)
	default:
		what = NativePlumbingOf(frame.Func.Name)
	}
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = make(map[*profile.Func]Plumbing)
	}
	f.known[frame.Func] = what
	return what
}
