//go:build linux

package events

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler"
)

func TestIOPrograms(t *testing.T) {
	if err := TryIO(); err != nil {
		t.Skipf("no programs here: %v", err)
	}
	polled, broken, next, parked := newPipe(t), newPipe(t), newPipe(t), newPipe(t)
	handleWithoutRestart(t, unix.SIGUSR2)
	o := &IO{Ledger: NewLedger()}
	defer o.Ledger.Close()
	e := New(os.Getpid(), cpus.Here(), []Event{{Name: "io", Interval: 1, IO: o}}, false)
	q, done := sampler.NewQueue(64), make(chan error)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for s := range q.Looks() {
			q.Done(s)
		}
	}()
	go func() {
		_, err := e.Run(ctx, sampler.Config{Interval: 10 * time.Millisecond}, q)
		done <- err
	}()
	e.Progress.Stats() // Stats returns once the run has begun

	unix.Write(polled[1], []byte("x"))
	unix.Read(polled[0], make([]byte, 1))
	fds := make([]unix.PollFd, polled[0]) // as many as that descriptor's number
	for i := range fds {
		fds[i] = unix.PollFd{Fd: int32(polled[0]), Events: unix.POLLIN}
	}
	unix.Poll(fds, 20)

	unix.Write(next[1], []byte("x"))
	readAfterSignal(t, broken[0], next[0])

	park(t, parked[0])

	const many = 50
	tids := map[uint64]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends
			unix.Write(polled[1], []byte("x"))
			mu.Lock()
			tids[uint64(unix.Gettid())] = true
			mu.Unlock()
		})
	}
	all.Wait()
	for tid := range tids {
		for end := time.Now().Add(10 * time.Second); unix.Tgkill(os.Getpid(), int(tid), 0) == nil; {
			if time.Sleep(time.Millisecond); time.Now().After(end) {
				delete(tids, tid) // the main thread never ends
				break
			}
		}
	}

	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if f, ok := o.Ledger.at(int64(polled[0])); !ok || f.Sums[IORead].Calls != 1 || f.Sums[IOWait].Calls != 0 {
		t.Errorf("a poll of several: %v %+v", ok, f.Sums)
	}
	if o.Ledger.Polls.Calls == 0 {
		t.Error("no poll of several is counted")
	}
	f, ok := o.Ledger.at(int64(next[0]))
	if took := time.Duration(f.Sums[IORead].Nanos); !ok || f.Sums[IORead].Calls != 1 || took > between/2 {
		t.Errorf("the read after one that a signal has broken off: %v %+v", ok, f.Sums[IORead])
	}
	if f, _ = o.Ledger.at(int64(polled[1])); f.Sums[IOWrite].Calls != many+1 {
		t.Errorf("%d writes, want %d", f.Sums[IOWrite].Calls, many+1)
	}
	pending := 0
	o.Ledger.Pending(func(p Pending) {
		if p.FD == int64(parked[0]) && p.Kind == IORead && p.Nanos > 0 {
			pending++
		}
	})
	if pending != 1 {
		t.Errorf("%d parked reads are pending", pending)
	}
	if len(tids) < many/2 {
		t.Errorf("only %d threads have ended", len(tids))
	}
	eachKey(o.Ledger.threads, mostIOThreads, func(key uint64) {
		if tids[key&0xffffffff] {
			t.Errorf("thread %d has ended, and has a call", key&0xffffffff)
		}
	})
}

// park waits for a descriptor as virtual threads do: after a read without result, epoll is asked for one event.
func park(t *testing.T, fd int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	queue, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(queue) })
	unix.SetNonblock(fd, true)
	if _, err := unix.Read(fd, make([]byte, 1)); err != unix.EAGAIN {
		t.Errorf("an empty pipe: %v", err)
	}
	once := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	if err := unix.EpollCtl(queue, unix.EPOLL_CTL_ADD, fd, &once); err != nil {
		t.Fatal(err)
	}
}

func newPipe(t *testing.T) (fds [2]int) {
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds
}

// handleWithoutRestart makes a signal end the calls that it interrupts. Go's own handlers restart them (SA_RESTART).
func handleWithoutRestart(t *testing.T, sig unix.Signal) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	t.Cleanup(func() { signal.Stop(c) })
	action := struct{ handler, flags, restorer, mask uint64 }{}
	const restart = 0x10000000 // SA_RESTART
	call := func(set, get unsafe.Pointer) {
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(set), uintptr(get), 8, 0, 0); e != 0 {
			t.Fatal(e)
		}
	}
	call(nil, unsafe.Pointer(&action))
	action.flags &^= restart
	call(unsafe.Pointer(&action), nil)
}

// between is the pause between the two reads of readAfterSignal.
const between = 500 * time.Millisecond

// readAfterSignal reads from one descriptor until a signal comes, rests, and reads from another one.
func readAfterSignal(t *testing.T, broken, next int) {
	tid, ended := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		_, err := unix.Read(broken, make([]byte, 1))
		pause := unix.NsecToTimespec(int64(between))
		unix.Nanosleep(&pause, nil)
		unix.Read(next, make([]byte, 1))
		ended <- err
	}()
	thread := <-tid
	time.Sleep(50 * time.Millisecond)
	for tries := 0; ; tries++ {
		unix.Tgkill(os.Getpid(), thread, unix.SIGUSR2)
		select {
		case err := <-ended:
			if err != unix.EINTR {
				t.Errorf("the read ended with %v", err)
			}
			return
		case <-time.After(2 * time.Second):
			if tries == 5 {
				t.Fatal("the read goes on")
			}
		}
	}
}
