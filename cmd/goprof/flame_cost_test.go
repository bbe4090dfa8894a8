//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// flameRatio bounds the CPU time of "goprof flame": it may take so many times as much as a mere reader of the same
// file (readStacks). It takes four times as much.
const flameRatio = 10

const flameStacks = 60_000

// TestFlameIsCheap: "goprof flame" on 60,000 different stacks takes little more CPU time than reading them. All CPU
// time of the process counts. Of each, the least of some runs counts: on a busy machine the same work uses more CPU
// time.
func TestFlameIsCheap(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.TakesLong)
	file := filepath.Join(t.TempDir(), "large.collapsed")
	size := writeStacks(t, file, flameStacks)
	cost, bare := time.Hour, time.Hour
	for range 3 {
		cost, bare = min(cost, flameCPU(t, file)), min(bare, readStacks(t, file))
	}
	t.Logf("%d MB: %v of CPU, to read it %v", size>>20, cost, bare)
	if cost > flameRatio*bare {
		t.Errorf("%v of CPU, %.1f times what it takes to read the file; want at most %d", cost, float64(cost)/float64(bare),
			flameRatio)
	}
}

// BenchmarkFlame measures the CPU time of "goprof flame" on 60,000 different stacks. The goal is 2 s.
func BenchmarkFlame(b *testing.B) {
	file := filepath.Join(b.TempDir(), "large.collapsed")
	writeStacks(b, file, flameStacks)
	var sum time.Duration
	for b.Loop() {
		sum += flameCPU(b, file)
	}
	b.ReportMetric(sum.Seconds()*1000/float64(b.N), "cpu-ms/flame")
}

func flameCPU(t testing.TB, file string) time.Duration {
	t.Helper()
	cmd := exec.Command("goprof", "flame", file)
	if told, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// readStacks is the CPU time of the least that a reader of the file must do: cut each line into frames, and look
// each frame up.
func readStacks(t testing.TB, name string) time.Duration {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	began := ownCPU(t)
	seen, frames := map[string]int{}, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		stack, _, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		for frame := range bytes.SplitSeq(stack, []byte(";")) {
			if _, known := seen[string(frame)]; !known {
				seen[string(frame)] = len(seen)
			}
			frames++
		}
	}
	if frames < flameStacks*20 {
		t.Fatalf("%d frames", frames)
	}
	return ownCPU(t) - began
}

// ownCPU is the CPU time of this process.
func ownCPU(t testing.TB) time.Duration {
	t.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// writeStacks writes stacks as deep and with such names as those of an application server, sorted as goprof writes
// them. Below a common root each stack goes its own way through 5,000 methods.
func writeStacks(t testing.TB, name string, n int) int64 {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	methods := make([]string, 5000)
	for i := range methods {
		methods[i] = fmt.Sprintf("com.example.shop.module%d.Service%d.handle%d_[%c]", i%40, i%700, i, "j10i"[i%4])
	}
	paths := make([][]uint16, n)
	for i := range paths {
		// Most stacks take the path of another one, and leave it at some depth.
		if i > 0 {
			from := paths[random.IntN(i)]
			paths[i] = append(paths[i], from[:1+random.IntN(len(from))]...)
		}
		for depth := 20 + random.IntN(40); len(paths[i]) < depth; {
			paths[i] = append(paths[i], uint16(random.IntN(len(methods))))
		}
		paths[i] = append(paths[i], uint16(i%len(methods)))
	}
	slices.SortFunc(paths, slices.Compare)
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for i, path := range paths {
		w.WriteString("java;start_thread")
		for _, m := range path {
			w.WriteByte(';')
			w.WriteString(methods[m])
		}
		fmt.Fprintf(w, " %d\n", 1+i%9)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
