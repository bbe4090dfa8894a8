package vmstructs

// ThreadFacts is what java.lang.Thread says of a thread besides its name and state.
type ThreadFacts struct {
	ID       int64 // Thread.threadId(), 0: not known
	Daemon   bool
	Priority int // 1 to 10, 0: not known
	// System: the thread belongs to the JDK or the JVM. Its thread group is "system", the topmost one, or the group of
	// jdk.internal.misc.InnocuousThread right below that. An application's threads are in "main" or below.
	System bool
}

// factFields says where these fields are. A field that does not exist is 0.
type factFields struct {
	daemon, priority, group uint64 // Thread up to 18, Thread.FieldHolder since (java/lang/Thread.java)
	parent, groupName       uint64 // ThreadGroup
}

// innocuousGroup is the group of the JDK's threads that have no rights of the application
// (jdk/internal/misc/InnocuousThread.java).
const innocuousGroup = "InnocuousThreadGroup"

// findFacts takes these places out of the fields of Thread or Thread.FieldHolder. A fact without a place is not known.
func (vm *VM) findFacts(fields map[string]uint64) factFields {
	f := factFields{daemon: fields["daemon"], priority: fields["priority"], group: fields["group"]}
	if group, err := vm.classFields(vm.l.oops.groupKlass); err == nil {
		f.parent, f.groupName = group["parent"], group["name"]
	}
	return f
}

// ThreadFacts reads what java.lang.Thread says of t. Afterwards it follows the references that led there once more.
// If a collector has moved an object meanwhile, the answer is ErrMoved.
func (vm *VM) ThreadFacts(t Thread) (f ThreadFacts, err error) {
	since := vm.heapMoment()
	way, err := vm.wayToFacts(t)
	if err != nil {
		return f, err
	}
	j := &vm.java
	if j.tid != 0 {
		id, err := vm.mem.U64(way.thread + j.tid)
		if err != nil {
			return f, vm.moved(err)
		}
		f.ID = int64(id)
	}
	if j.facts.daemon != 0 {
		b, err := vm.mem.U8(way.holder + j.facts.daemon)
		if err != nil {
			return f, vm.moved(err)
		}
		f.Daemon = b == 1
	}
	if j.facts.priority != 0 {
		n, err := vm.mem.U32(way.holder + j.facts.priority)
		if err != nil {
			return f, vm.moved(err)
		}
		if n >= 1 && n <= 10 {
			f.Priority = int(n)
		}
	}
	f.System = way.system
	if again, err := vm.wayToFacts(t); err != nil || again != way || !vm.nothingMoved(since) {
		return ThreadFacts{}, ErrMoved
	}
	return f, nil
}

// wayToFacts says where a thread's object, the holder of its fields and its group are.
type wayToFacts struct {
	thread, holder, group uint64
	system                bool
}

// wayToFacts follows the references from a thread to the objects with its facts.
func (vm *VM) wayToFacts(t Thread) (w wayToFacts, err error) {
	if w.thread, err = vm.threadObject(t); err != nil {
		return w, err
	}
	j := &vm.java
	w.holder = w.thread
	if j.holder != 0 {
		if w.holder, err = vm.oopAt(w.thread + j.holder); err != nil {
			return w, err
		}
		if w.holder == 0 {
			return w, ErrBadThread
		}
	}
	if j.facts.group == 0 || j.facts.parent == 0 || j.facts.groupName == 0 {
		return w, nil
	}
	if w.group, err = vm.oopAt(w.holder + j.facts.group); err != nil || w.group == 0 {
		return w, err // a thread that ends no longer has a group
	}
	w.system, err = vm.systemGroup(w.group)
	return w, err
}

// systemGroup reports whether a ThreadGroup is the topmost one, or innocuousGroup right below that.
func (vm *VM) systemGroup(group uint64) (bool, error) {
	f := &vm.java.facts
	parent, err := vm.oopAt(group + f.parent)
	if err != nil || parent == 0 {
		return err == nil, err
	}
	if top, err := vm.oopAt(parent + f.parent); err != nil || top != 0 {
		return false, err
	}
	name, err := vm.oopAt(group + f.groupName)
	if err != nil || name == 0 {
		return false, err
	}
	chars, err := vm.oopAt(name + vm.java.value)
	if err != nil || chars == 0 {
		return false, err
	}
	text, err := vm.charsOf(name, chars)
	return text == innocuousGroup, err
}
