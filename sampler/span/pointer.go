//go:build linux

package span

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"goprof/arch/threadpointer"
	"goprof/sampler/bpf"
)

// A thread-local variable is found from the thread pointer. While a thread is in the kernel, its thread pointer is in
// its struct task_struct (arch/x86/include/asm/processor.h, struct thread_struct: fsbase; arch/arm64: uw.tp_value). The
// offset differs from kernel to kernel. goprof finds the offset by a thread of its own, whose thread pointer it knows:
// a program copies the thread's task_struct, which has the pointer in one place.

// taskSize is how much of a task_struct is searched, taskPiece how much is copied at a time. Some bytes behind a
// task_struct may not be readable.
const (
	taskSize  = 16 << 10
	taskPiece = 256
)

// ErrNoPointer: the offset of a thread's pointer in the kernel's struct is not known.
var ErrNoPointer = errors.New("sampler: the kernel's place for thread pointers was not found")

var pointerAt = sync.OnceValues(func() (at int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, mem, err := bpf.NewMapped(taskSize)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(mem)
	defer unix.Close(fd)
	prog, err := taskProgram(fd).LoadAs(bpf.RawTracepoint, nil)
	if err != nil {
		return 0, err
	}
	defer unix.Close(prog)
	return at, threadpointer.With(func(own uint64) error {
		if err := bpf.TestRun(prog); err != nil {
			return err
		}
		at, err = find(mem, own)
		return err
	})
})

// find returns the offset of a word in mem, if mem has the word once.
func find(mem []byte, word uint64) (at int, err error) {
	err = ErrNoPointer
	for i := 0; i+8 <= len(mem) && word != 0; i += 8 {
		if binary.NativeEndian.Uint64(mem[i:]) != word {
			continue
		}
		if err == nil {
			return 0, ErrNoPointer
		}
		at, err = i, nil
	}
	return at, err
}

func taskProgram(fd int) *bpf.Code {
	c := bpf.New()
	c.Call(bpf.GetCurrentTask)
	c.Mov(bpf.R6, bpf.R0)
	c.Value(bpf.R7, fd)
	for range taskSize / taskPiece {
		c.Mov(bpf.R1, bpf.R7)
		c.Imm(bpf.MovImm, bpf.R2, taskPiece)
		c.Mov(bpf.R3, bpf.R6)
		c.Call(bpf.ReadKernel) // what cannot be read becomes zero
		c.Imm(bpf.AddImm, bpf.R6, taskPiece)
		c.Imm(bpf.AddImm, bpf.R7, taskPiece)
	}
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}
