//go:build linux

package osthread

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func newRunner(t testing.TB) *Runner {
	t.Helper()
	r, err := New(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func soon() int64 { return in(time.Minute) }

func in(d time.Duration) int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano() + int64(d)
}

// isThread reports whether this process has an OS thread of this number.
func isThread(tid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid))
	return err == nil
}

func TestCall(t *testing.T) {
	r := newRunner(t)
	tid := r.TID()
	for range 10000 {
		r.Go(unix.SYS_GETTID, &[6]uintptr{})
		if !r.Wait(soon()) {
			t.Fatal("gettid does not return")
		}
		if v, e := r.Result(); int(v) != tid || e != 0 {
			t.Fatalf("gettid: %d, %v; the Runner is %d", v, e, tid)
		}
	}
	r.Go(unix.SYS_CLOSE, &[6]uintptr{^uintptr(0)})
	if r.Wait(soon()); !r.Returned() {
		t.Fatal("close does not return")
	}
	if v, e := r.Result(); v != 0 || e != unix.EBADF {
		t.Errorf("close(-1): %d, %v", v, e)
	}
	if !isThread(tid) {
		t.Errorf("%d is no thread of ours", tid)
	}
	r.End()
	for range 20_000 { // the thread's memory is given back a moment before /proc forgets the thread
		if !isThread(tid) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("its OS thread has not ended")
}

// TestArguments: all six arguments arrive, in order.
func TestArguments(t *testing.T) {
	r := newRunner(t)
	defer r.End()
	copy(r.Room(), "what is read")
	from, to := uintptr(unsafe.Pointer(&r.Room()[0])), uintptr(unsafe.Pointer(&r.Room()[4096]))
	vectors := (*[2][2]uintptr)(unsafe.Pointer(&r.Room()[8192]))
	vectors[0], vectors[1] = [2]uintptr{to, 12}, [2]uintptr{from, 12}
	r.Go(unix.SYS_PROCESS_VM_READV, &[6]uintptr{uintptr(os.Getpid()),
		uintptr(unsafe.Pointer(&vectors[0])), 1, uintptr(unsafe.Pointer(&vectors[1])), 1, 0})
	r.Wait(soon())
	if n, e := r.Result(); n != 12 || e != 0 || string(r.Room()[4096:4108]) != "what is read" {
		t.Errorf("%d bytes, %v: %q", n, e, r.Room()[4096:4108])
	}
	r.Go(unix.SYS_PROCESS_VM_READV, &[6]uintptr{uintptr(os.Getpid()), 0, 0, 0, 0, 1})
	r.Wait(soon())
	if _, e := r.Result(); e != unix.EINVAL { // this call knows no flags
		t.Errorf("the sixth argument does not arrive: %v", e)
	}
}

// TestGivenUp: a call does not return. It is waited for until the deadline and no longer. Its later result does no
// harm. Neither the garbage collector nor a new Runner waits for it.
func TestGivenUp(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t)
	r.Go(unix.SYS_READ, &[6]uintptr{uintptr(pipe[0]), uintptr(unsafe.Pointer(&r.Room()[0])), 8})
	until := in(20 * time.Millisecond)
	if r.Wait(until) {
		t.Fatal("a read of an empty pipe has returned")
	}
	if now := in(0); now < until {
		t.Errorf("given up %v too early", time.Duration(until-now))
	}
	// on a busy machine the Runner may have begun just now
	for end := soon(); !r.Sleeps(); time.Sleep(time.Millisecond) {
		if in(0) > end {
			t.Fatal("it does not sleep")
		}
	}
	r.End() // End leaves the Runner as it is
	var rubbish [][]byte
	for range 20 {
		rubbish = append(rubbish, make([]byte, 1<<16))
		runtime.GC()
		other := newRunner(t)
		other.Go(unix.SYS_GETTID, &[6]uintptr{})
		if !other.Wait(soon()) {
			t.Fatal("another Runner waits for it")
		}
		other.End()
	}
	runtime.KeepAlive(rubbish)
	unix.Write(pipe[1], []byte("at last!"))
	if !r.Wait(soon()) || string(r.Room()[:8]) != "at last!" {
		t.Errorf("it has not come back: %q", r.Room()[:8])
	}
	r.End()
	unix.Close(pipe[0])
	unix.Close(pipe[1])
}

// TestSignals: no handler of Go's runs on a Runner's thread.
func TestSignals(t *testing.T) {
	r := newRunner(t)
	defer r.End()
	for range 100 {
		unix.Tgkill(os.Getpid(), r.TID(), unix.SIGURG)
		r.Go(unix.SYS_GETTID, &[6]uintptr{})
		if !r.Wait(soon()) {
			t.Fatal("it does not come back")
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", r.TID()))
	if err != nil {
		t.Fatal(err)
	}
	var blocked uint64
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "SigBlk:\t%x", &blocked)
	}
	if kept := ^uint64(1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1)); blocked&kept != kept {
		t.Errorf("it blocks only %x", blocked)
	}
}

func BenchmarkCall(b *testing.B) {
	r := newRunner(b)
	defer r.End()
	for b.Loop() {
		r.Go(unix.SYS_GETTID, &[6]uintptr{})
		r.Wait(soon())
	}
}
