package vmstructs

import "strings"

// A thread that waits for a CompletableFuture (join, get) is parked for a Signaller. No field of the Signaller leads to
// the future, or to the thread that computes it. But the future's list of completions leads to the Signaller, directly
// or through dependent futures (CompletableFuture.stack, Completion.next, UniCompletion.dep). The method that computes
// a future (AsyncSupply.run, UniApply.tryFire) completes it in the end. So its frame refers to the future while the
// program's code runs above: in a slot, or in the frame pointer that its callee saves.
//
// The frame may also have other futures: those of inlined methods, and stale words. So a frame counts only if exactly
// one future in it has no result yet. A future that any of several others completes is left out. With ZGC the heap's
// addresses are not known, and nothing is found.

const (
	classFuture     = "java/util/concurrent/CompletableFuture"
	classCompletion = classFuture + "$Completion"
	classSignaller  = classFuture + "$Signaller"
	// maxTaskRefs bounds the objects of frames that are read. maxCompletions bounds the completions.
	maxTaskRefs, maxCompletions = 1 << 14, 1 << 14
)

// taskSearch finds out, in one round, which threads compute futures that others wait for.
type taskSearch struct {
	holderSearch
	computed []computed
	by       map[uint64]uint64 // completion -> the JavaThread that computes the future on which it depends
}

// computed is a future, and the JavaThread that computes it.
type computed struct {
	future poolObject
	thread uint64
}

// noteTask finds the future that a frame computes.
func (k *Locks) noteTask(s *liveStack, f *LockFrame) {
	if !f.Task || f.Saved < s.at || f.End-s.at > uint64(len(s.words)) || f.Saved > f.End {
		return
	}
	if k.tasks == nil {
		k.tasks = &taskSearch{by: map[uint64]uint64{}, holderSearch: holderSearch{left: maxTaskRefs,
			p: &Pools{k: k, classes: map[uint64]*poolClass{}}}}
		k.tasks.start, k.tasks.end, _ = k.vm.NewHealth().HeapRange()
	}
	t, found := k.tasks, []poolObject(nil)
	for _, at := range t.references(s.words[f.Saved-s.at : f.End-s.at]) {
		if o, ok := t.p.read(at); ok && t.open(&o) {
			found = append(found, o)
		}
	}
	if len(found) == 1 && t.left > 0 { // otherwise some of the frame was not read
		t.computed = append(t.computed, computed{found[0], s.thread})
	}
}

// open reports whether an object is a future without a result.
func (t *taskSearch) open(o *poolObject) bool {
	return o.is(classFuture) && t.p.ref(o, classFuture, "result") == 0
}

// follow finds all completions that depend on the computed futures.
func (t *taskSearch) follow() {
	if t == nil {
		return
	}
	for _, c := range t.computed {
		for todo := []poolObject{c.future}; len(todo) > 0; {
			f := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for at := t.p.ref(&f, classFuture, "stack"); at != 0 && t.by[at&t.p.k.mask] == 0 && len(t.by) < maxCompletions; {
				t.by[at&t.p.k.mask] = c.thread
				o, ok := t.p.read(at)
				if !ok || !o.is(classCompletion) {
					break
				}
				at = t.p.ref(&o, classCompletion, "next")
				if both, ok := t.p.follow(&o, classFuture+"$CoCompletion", "base"); ok {
					o = both
				}
				if strings.HasPrefix(o.class.name, classFuture+"$Or") {
					continue
				}
				if dep, ok := t.p.follow(&o, classFuture+"$UniCompletion", "dep"); ok && t.open(&dep) {
					todo = append(todo, dep)
				}
			}
		}
	}
}

// computedBy adds the computing thread to a wait for a CompletableFuture.
func (k *Locks) computedBy(w *Wanted) {
	if k.tasks == nil || w.Class != classSignaller {
		return
	}
	if i, ok := k.byAddr[k.tasks.by[w.Object]]; ok {
		w.Kind, w.Owner = TaskResult, k.ownerAt(i)
	}
}
