package vmstructs

import "cmp"

// ThreadFacts has fields of a java.lang.Thread other than name and state.
type ThreadFacts struct {
	ID       int64 // Thread.threadId(), 0: not known
	Daemon   bool
	Priority int // 1 to 10, 0: not known
	// System: the thread belongs to the JDK or the JVM. Its thread group is "system", the topmost one, or that of
	// jdk.internal.misc.InnocuousThread directly below. An application's threads are in "main" or below.
	System bool
}

// factFields has the offsets of these fields, 0 if there is no such field.
type factFields struct {
	daemon, priority, group uint64 // Thread up to 18, Thread.FieldHolder since 19 (java/lang/Thread.java)
	parent, groupName       uint64 // ThreadGroup
}

// innocuousGroup is the group of threads of the JDK that have no rights of the application
// (jdk/internal/misc/InnocuousThread.java).
const innocuousGroup = "InnocuousThreadGroup"

// findFacts returns these offsets from the fields of Thread or Thread.FieldHolder.
func (vm *VM) findFacts(fields map[string]uint64) factFields {
	f := factFields{daemon: fields["daemon"], priority: fields["priority"], group: fields["group"]}
	if group, err := vm.classFields(vm.l.oops.groupKlass); err == nil {
		f.parent, f.groupName = group["parent"], group["name"]
	}
	return f
}

// ThreadFacts reads the java.lang.Thread of t. Afterwards it follows the references again. If a collector has moved an
// object in between, the error is ErrMoved.
func (vm *VM) ThreadFacts(t Thread) (f ThreadFacts, err error) {
	since := vm.heapMoment()
	way, err := vm.wayToFacts(t)
	if err != nil {
		return f, err
	}
	j := &vm.java
	var id uint64
	var daemon uint8
	var priority uint32
	var errs [3]error
	if j.tid != 0 {
		id, errs[0] = vm.mem.U64(way.thread + j.tid)
	}
	if j.facts.daemon != 0 {
		daemon, errs[1] = vm.mem.U8(way.holder + j.facts.daemon)
	}
	if j.facts.priority != 0 {
		priority, errs[2] = vm.mem.U32(way.holder + j.facts.priority)
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return f, vm.moved(err)
	}
	f.ID, f.Daemon = int64(id), daemon == 1
	if priority <= 10 {
		f.Priority = int(priority)
	}
	f.System = way.system
	if again, err := vm.wayToFacts(t); err != nil || again != way || !vm.nothingMoved(since) {
		return ThreadFacts{}, ErrMoved
	}
	return f, nil
}

// wayToFacts has the addresses of a thread's object, of the holder of its fields, and of its group.
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
		return w, err // a thread that is ending has no group
	}
	w.system, err = vm.systemGroup(w.group)
	return w, err
}

// systemGroup reports whether a ThreadGroup is the topmost one, or innocuousGroup directly below that.
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
