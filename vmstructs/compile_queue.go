package vmstructs

import (
	"strings"
	"time"

	"goprof/process/maybe"
)

// CompileQueue describes the methods that wait for one compiler.
type CompileQueue struct {
	Compiler string // C1, C2, JVMCI
	Length   int
	Oldest   string                     // the method that has waited longest; empty if none is known
	Waited   maybe.Value[time.Duration] // how long it has waited
}

// In all releases since 9, CompileQueue begins with const char* _name, CompileTask *_first, *_last, *_first_stale, int
// _size (compiler/compileBroker.hpp). These fields are not exported, so goprof uses them only if the name is one of
// HotSpot's.
const (
	queueFirst, queueLast, queueSize = 8, 16, 32
	queueBytes                       = 40
	queueName                        = " compile queue" // CompileBroker::init_compiler_threads
	maxQueueName                     = 32
	maxTasks                         = 1 << 22 // more than any JVM has
	queueTries                       = 3       // attempts to read a queue that changes
)

// CompileQueues reads how many methods wait for each compiler. now is the target's CLOCK_MONOTONIC. ok is false if
// libjvm.so has no symbols, or if the release is 8.
func (h *Health) CompileQueues(now int64) (queues []CompileQueue, ok bool) {
	for _, variable := range h.symbols.queues {
		at, err := h.vm.mem.Ptr(variable)
		if err != nil {
			return nil, false
		}
		if at == 0 {
			continue // this JVM has no such compiler
		}
		q, ok := h.compileQueue(at, now)
		if !ok {
			return nil, false
		}
		queues = append(queues, q)
	}
	return queues, len(h.symbols.queues) > 0
}

// compileQueue reads the queue at an address. ok is false if there is no queue.
func (h *Health) compileQueue(at uint64, now int64) (q CompileQueue, ok bool) {
	var b [queueBytes]byte
	for range queueTries {
		if h.vm.mem.Bytes(at, b[:]) != nil {
			return q, false
		}
		name, err := h.vm.mem.CString(word(b[:]), maxQueueName)
		q.Compiler, ok = strings.CutSuffix(name, queueName)
		if err != nil || !ok || q.Compiler != "C1" && q.Compiler != "C2" && q.Compiler != "JVMCI" {
			return q, false
		}
		first, size := word(b[queueFirst:]), offset(queueSize).u32(b[:])
		if size > maxTasks || (size == 0) != (first == 0) || (first == 0) != (word(b[queueLast:]) == 0) {
			continue // a task is being added or removed
		}
		q.Length = int(size)
		if first != 0 {
			h.oldestTask(&q, first, at, now)
		}
		return q, true
	}
	return q, false
}

// oldestTask names the first task of a queue. New tasks are added at the end (CompileQueue::add).
func (h *Health) oldestTask(q *CompileQueue, task, queue uint64, now int64) {
	var b [maxTask]byte
	size := h.vm.l.task.size
	if size < TaskSize || size > maxTask || h.vm.mem.Bytes(task, b[:size]) != nil {
		return
	}
	name, waited := h.vm.TaskMethod(b[:size]), h.waited(b[:size], now)
	if first, err := h.vm.mem.Ptr(queue + queueFirst); err == nil && first == task {
		q.Oldest, q.Waited = name, waited
	}
}

// maxTask is larger than a CompileTask in any release.
const maxTask = 512

// waited returns how long ago a task was queued. _time_queued and _time_started come after _prev, the last exported
// field. Up to 25 there is a bool in between (compiler/compileTask.hpp). Both times count from os::init. A waiting task
// has not started, so its _time_started is 0, and only one of two words can be the time. If both are plausible, the
// result is not known.
func (h *Health) waited(task []byte, now int64) maybe.Value[time.Duration] {
	prev := int(h.vm.l.task.prev)
	began, err := h.vm.mem.U64(h.symbols.began)
	if h.symbols.began == 0 || err != nil || prev <= 0 || prev+24 > len(task) {
		return maybe.Value[time.Duration]{}
	}
	found, waited := 0, time.Duration(0)
	for _, at := range []int{prev + 8, prev + 16} {
		queued := word(task[at:])
		age := now - int64(began) - int64(queued)
		if queued >= uint64(time.Millisecond) && queued < 1<<62 && age >= 0 {
			found, waited = found+1, time.Duration(age)
		}
	}
	return maybe.If(waited, found == 1)
}
