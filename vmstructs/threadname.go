package vmstructs

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"goprof/process"
)

// javaFields has the offsets of fields of java.lang.Thread and String, 0 if there is no such field. They are found at
// their first use.
type javaFields struct {
	done bool
	heap heapModel

	name, eetop  uint64 // Thread
	tid          uint64 // Thread, 0 if missing
	status       uint64 // Thread (up to 18) or Thread.FieldHolder
	holder       uint64 // Thread: its FieldHolder, 0 if there is none
	blocker      uint64 // Thread: parkBlocker
	facts        factFields
	value, coder uint64 // String; without coder (JDK 8) the value is an array of chars
}

const (
	// maxNameUnits bounds a thread's name in UTF-16 units. A longer name is cut.
	maxNameUnits = 4096
	maxArray     = 1 << 31
)

// readJavaFields finds the fields by their names in the metadata of their classes.
func (vm *VM) readJavaFields() error {
	j := &vm.java
	if j.done {
		return nil
	}
	if vm.lacks(capNames) {
		return ErrMissing
	}
	var err error
	if j.heap, err = vm.readHeapModel(); err != nil {
		return err
	}
	thread, err := vm.classFields(vm.l.oops.threadKlass)
	if err != nil {
		return err
	}
	str, err := vm.classFields(vm.l.oops.stringKlass)
	if err != nil {
		return err
	}
	j.name, j.eetop, j.value, j.coder = thread["name"], thread["eetop"], str["value"], str["coder"]
	if j.name == 0 || j.eetop == 0 || j.value == 0 {
		return fmt.Errorf("%w: no fields of Thread or String", ErrMissing)
	}
	j.tid = thread["tid"]
	j.status, j.blocker = thread["threadStatus"], thread["parkBlocker"]
	if j.status == 0 && vm.l.oops.holderKlass != 0 {
		holder, err := vm.classFields(vm.l.oops.holderKlass)
		if err != nil {
			return err
		}
		j.holder, j.status = thread["holder"], holder["threadStatus"]
		j.facts = vm.findFacts(holder)
	} else {
		j.facts = vm.findFacts(thread)
	}
	j.done = true
	return nil
}

// classFields returns the offsets of the fields of a class, to which the variable at addr points. No instance field is
// at 0.
func (vm *VM) classFields(addr uint64) (map[string]uint64, error) {
	if addr == 0 {
		return nil, ErrMissing
	}
	klass, err := vm.mem.Ptr(addr)
	if err != nil {
		return nil, err
	}
	if klass == 0 {
		return nil, ErrStarting
	}
	fields, err := vm.fieldsOf(klass)
	if err != nil {
		return nil, err
	}
	m := make(map[string]uint64, len(fields))
	for _, f := range fields {
		if _, twice := m[f.name]; !twice {
			m[f.name] = f.offset
		}
	}
	return m, nil
}

// threadObject returns the java.lang.Thread of t. The object's field eetop must point back to t. It does not if the
// thread has ended, or if the object was moved.
func (vm *VM) threadObject(t Thread) (uint64, error) {
	if err := vm.readJavaFields(); err != nil {
		return 0, err
	}
	var obj uint64
	var err error
	switch {
	case t.obj == 0:
		return 0, ErrBadThread // it has no object yet, or not any more
	case vm.l.thread.objHandle:
		obj, err = vm.wideOopAt(t.obj) // an OopHandle: a pointer to the reference
	default:
		obj, err = vm.uncolour(t.obj)
	}
	if err != nil {
		return 0, err
	}
	if obj == 0 {
		return 0, ErrBadThread
	}
	back, err := vm.mem.U64(obj + vm.java.eetop)
	if err != nil {
		return 0, vm.moved(err)
	}
	if back != t.Addr {
		return 0, vm.moved(ErrBadThread)
	}
	return obj, nil
}

// moved returns the error for an object whose fields contradict each other: ErrMoved with ZGC, which moves objects
// while threads run.
func (vm *VM) moved(err error) error {
	if vm.java.heap.z.on {
		return ErrMoved
	}
	return err
}

// ThreadName returns the name that Java gave a thread. Threads and collectors run during the reading. So ThreadName
// follows the references to the characters again afterwards. If they then lead elsewhere, the bytes may belong to
// another object, and the error is ErrMoved. If a collection has stopped the threads in between, the references may
// have been wrong both times. Then the name is returned with ErrMoved, and FitsComm may confirm it.
func (vm *VM) ThreadName(t Thread) (string, error) {
	since := vm.heapMoment()
	way, err := vm.wayToName(t)
	if err != nil || way.chars == 0 {
		return "", err
	}
	name, err := vm.charsOf(way.name, way.chars)
	if err != nil {
		return "", err
	}
	if again, err := vm.wayToName(t); err != nil || again != way {
		return "", ErrMoved
	}
	if !vm.nothingMoved(since) {
		return name, ErrMoved
	}
	return name, nil
}

// maxComm is the number of bytes of a thread's name that the kernel keeps (TASK_COMM_LEN, which includes a zero).
const maxComm = 15

// FitsComm reports whether the kernel's short name may be that of a thread with this name. HotSpot gives the kernel the
// first 15 bytes. Since 26 it shortens a longer name to its first 7 bytes, two dots and its last 6 bytes (os_linux.cpp,
// os::set_native_thread_name).
func FitsComm(name, comm string) bool {
	if len(name) <= maxComm {
		return name == comm
	}
	if len(comm) < maxComm-utf8.UTFMax { // only a part of a character may be missing
		return false
	}
	if strings.HasPrefix(name, comm) {
		return true
	}
	begin, end, cut := strings.Cut(comm, "..")
	return cut && strings.HasPrefix(name, begin) && strings.HasSuffix(name, end)
}

// ThreadID returns Thread.threadId(), or getId() in older releases. It checks the object again afterwards, because a
// collector may have moved another object there.
func (vm *VM) ThreadID(t Thread) (int64, error) {
	obj, err := vm.threadObject(t)
	if err != nil {
		return 0, err
	}
	if vm.java.tid == 0 {
		return 0, ErrMissing
	}
	id, err := vm.mem.U64(obj + vm.java.tid)
	if err != nil {
		return 0, vm.moved(err)
	}
	if again, err := vm.threadObject(t); err != nil || again != obj {
		return 0, ErrMoved
	}
	return int64(id), nil
}

// wayToName has the addresses of a thread's object, of its name, and of the characters of the name; 0 if there is no
// name.
type wayToName struct{ thread, name, chars uint64 }

func (vm *VM) wayToName(t Thread) (w wayToName, err error) {
	if w.thread, err = vm.threadObject(t); err != nil {
		return w, err
	}
	if w.name, err = vm.oopAt(w.thread + vm.java.name); err != nil || w.name == 0 {
		return w, err
	}
	w.chars, err = vm.oopAt(w.name + vm.java.value)
	return w, err
}

// charsOf reads the characters of the java.lang.String at str from its array. In 8 this is an array of chars. Since 9
// it is an array of bytes, in Latin-1 or UTF-16 by String.coder (0 or 1).
func (vm *VM) charsOf(str, array uint64) (string, error) {
	j := &vm.java
	n, err := vm.mem.U32(array + j.heap.arrayLength)
	if err != nil {
		return "", vm.moved(err)
	}
	unit := uint32(2)
	if j.coder != 0 {
		coder, err := vm.mem.U8(str + j.coder)
		if err != nil {
			return "", vm.moved(err)
		}
		if coder > 1 {
			return "", vm.moved(fmt.Errorf("%w: coder %d", process.ErrFault, coder))
		}
		if coder == 0 {
			unit = 1
		} else {
			n /= 2
		}
	}
	if n > maxArray/unit {
		return "", vm.moved(fmt.Errorf("%w: string of %d", process.ErrFault, n))
	}
	b := make([]byte, min(n, maxNameUnits)*unit)
	if err := vm.mem.Bytes(array+j.heap.arrayData, b); err != nil {
		return "", vm.moved(err)
	}
	if unit == 1 {
		return latin1(b), nil
	}
	return utf16LE(b), nil
}

func latin1(b []byte) string {
	if isASCII(b) {
		return string(b)
	}
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

func utf16LE(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}

// threadStatuses are the values of Thread.threadStatus (classfile/javaClasses.hpp, JavaThreadStatus). Each is a
// combination of JVMTI thread state bits. They are the same in all releases.
var threadStatuses = map[uint32]string{
	0: "NEW", 2: "TERMINATED", 5: "RUNNABLE", 225: "SLEEPING", 401: "WAITING", 417: "TIMED_WAITING",
	657: "PARKED", 673: "TIMED_PARKED", 1025: "BLOCKED",
}

// ThreadStatus returns a thread's state in java.lang.Thread: RUNNABLE, BLOCKED, WAITING, TIMED_WAITING (both in
// Object.wait), PARKED, TIMED_PARKED, SLEEPING. The error is ErrMoved if a collection has stopped the threads during
// the reading.
func (vm *VM) ThreadStatus(t Thread) (string, error) {
	since := vm.heapMoment()
	obj, err := vm.threadObject(t)
	if err != nil {
		return "", err
	}
	status, err := vm.statusOf(obj)
	if err == nil && !vm.nothingMoved(since) {
		return "", ErrMoved
	}
	return status, err
}

// statusOf is ThreadStatus of the java.lang.Thread at obj.
func (vm *VM) statusOf(obj uint64) (status string, err error) {
	j := &vm.java
	if j.status == 0 {
		return "", ErrMissing
	}
	if j.holder != 0 {
		if obj, err = vm.oopAt(obj + j.holder); err != nil {
			return "", err
		}
		if obj == 0 {
			return "", ErrBadThread
		}
	}
	number, err := vm.mem.U32(obj + j.status)
	if err != nil {
		return "", vm.moved(err)
	}
	if name, ok := threadStatuses[number]; ok {
		return name, nil
	}
	return fmt.Sprintf("status %d", number), nil
}
