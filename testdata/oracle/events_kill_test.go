//go:build linux

package oracle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/process"
	"goprof/testdata/jvmtest"
)

// TestProbesEnd kills goprof at random moments: while it looks for the functions, sets probes, records. Afterwards the
// code in memory is what the file says, and the program lives and counts right.
func TestProbesEnd(t *testing.T) {
	t.Parallel()
	kills := envNumber("GOPROF_EVENT_KILLS", 8)
	if longForm {
		kills = envNumber("GOPROF_EVENT_KILLS", 300)
	}
	jdk := jvmtest.JDKs(t)[0]
	jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "100000000", "2")
	s := attach(t, jvm.PID)
	findEvent(t, s, "alloc", 0)
	binary := buildGoprof(t)
	pages := probedPages(t, s.Process)
	out := filepath.Join(t.TempDir(), "out.collapsed")
	checkPages(t, s.Process, pages) // before: a file that does not agree proves nothing
	was := 0
	for i := range kills {
		delay := time.Duration(rand.IntN(800)) * time.Millisecond
		cmd := exec.Command(binary, "record", "--pid", strconv.Itoa(jvm.PID), "--event", "alloc", "-q", "-o", out)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 { // however slow the machine is
			awaitProbe(s.Process, pages)
		}
		time.Sleep(delay)
		if len(changed(s.Process, pages)) > 0 {
			was++
		}
		cmd.Process.Signal(syscall.SIGKILL)
		if cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("goprof ended by itself: %s", said.String())
		}
		checkPages(t, s.Process, pages)
		if allocated(t, jvm) <= 0 {
			t.Fatal("the program does not answer")
		}
	}
	checkAllCode(t, jvm.PID)
	t.Logf("killed %d times, %d of them with probes set", kills, was)
	if was < kills/4 {
		t.Errorf("probes were set %d times of %d only", was, kills)
	}
}

// TestLeakedProbe: a goprof that is killed while it takes its probes out may leave a breakpoint behind, because the
// kernel gives up: the program goes on all the same, and the next recording of that event takes the breakpoint out.
func TestLeakedProbe(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "100000000", "2")
		s := attach(t, jvm.PID)
		findEvent(t, s, "alloc", 0)
		binary, pages := buildGoprof(t), probedPages(t, s.Process)
		out := filepath.Join(t.TempDir(), "out.collapsed")
		start := func(flags ...string) *exec.Cmd {
			cmd := exec.Command(binary, append([]string{"record", "--pid", strconv.Itoa(jvm.PID), "--event", "alloc", "-q",
				"-o", out}, flags...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return cmd
		}
		leaked := 0
		for range envNumber("GOPROF_EVENT_KILLS", 6) {
			cmd := start()
			awaitProbe(s.Process, pages)
			cmd.Process.Signal(syscall.SIGTERM) // it begins to take the probes out
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			cmd.Process.Kill()
			cmd.Wait()
			time.Sleep(50 * time.Millisecond)
			if allocated(t, jvm) <= 0 {
				t.Fatal("the program does not answer")
			}
			if len(changed(s.Process, pages)) > 0 {
				leaked++
				next := start("-d", "0.5")
				if err := next.Wait(); err != nil && next.ProcessState.ExitCode() != 7 { // 7: no sample
					t.Error(err)
				}
			}
			checkPages(t, s.Process, pages)
		}
		t.Logf("a breakpoint was left %d times", leaked)
		checkAllCode(t, jvm.PID)
	})
}

// codePage is a page of code, as the file has it.
type codePage struct {
	addr uint64
	file []byte
}

// probedPages are the pages in which the event alloc has its probes.
func probedPages(t *testing.T, p *process.Process) (pages []codePage) {
	t.Helper()
	size := uint64(os.Getpagesize())
	for _, name := range []string{"AllocTracer::send_allocation_in_new_tlab",
		"AllocTracer::send_allocation_outside_tlab"} {
		list, err := p.Functions("libjvm.so", name)
		if err != nil {
			t.Fatal(err) // findEvent has found it
		}
		for _, f := range list {
			file, err := p.OpenFunction(f)
			if err != nil {
				t.Fatal(err)
			}
			page := codePage{f.Addr &^ (size - 1), make([]byte, size)}
			_, err = file.ReadAt(page.file, int64(f.Offset&^(size-1)))
			file.Close()
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, page)
		}
	}
	return pages
}

// changed are the addresses of pages that are not as in the file.
func changed(p *process.Process, pages []codePage) (list []string) {
	b := make([]byte, os.Getpagesize())
	for _, page := range pages {
		if err := p.Read(page.addr, b); err != nil {
			list = append(list, err.Error())
		} else if !bytes.Equal(b, page.file) {
			list = append(list, fmt.Sprintf("%#x", page.addr))
		}
	}
	return list
}

// checkPages waits until pages are as in the file: the kernel takes the probes out when it closes the descriptors.
func checkPages(t *testing.T, p *process.Process, pages []codePage) {
	t.Helper()
	for deadline := time.Now().Add(jvmtest.Slow(time.Minute)); ; time.Sleep(2 * time.Millisecond) {
		bad := changed(p, pages)
		if len(bad) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("pages are not as in the file: %v", bad)
		}
	}
}

// awaitProbe waits until a page is changed, or for a minute.
func awaitProbe(p *process.Process, pages []codePage) {
	for deadline := time.Now().Add(jvmtest.Slow(time.Minute)); time.Now().Before(deadline); {
		if len(changed(p, pages)) > 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// checkAllCode compares all code that the process has mapped from files with these files.
func checkAllCode(t *testing.T, pid int) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	files := 0
	for line := range strings.Lines(string(maps)) {
		var from, to, offset uint64
		var rights, device, path string
		var inode int
		n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &from, &to, &rights, &offset, &device, &inode, &path)
		if n < 7 || inode == 0 || !strings.HasPrefix(rights, "r-x") {
			continue
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, min(to-from, uint64(len(file))-offset))
		if _, err := mem.ReadAt(b, int64(from)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !bytes.Equal(b, file[offset:][:len(b)]) {
			t.Errorf("the code of %s is not as in the file", path)
		}
		files++
	}
	if files == 0 {
		t.Error("no code is mapped from files")
	}
}
