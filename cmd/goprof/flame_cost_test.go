//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestFlameIsCheap: "goprof flame" on 60,000 different stacks takes less than 2 s of CPU (on a machine
// that is not emulated), all of the process counted.
func TestFlameIsCheap(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.TakesLong)
	const stacks = 60_000
	most := jvmtest.Slow(2 * time.Second)
	file := filepath.Join(t.TempDir(), "large.collapsed")
	size := writeStacks(t, file, stacks)
	cmd := exec.Command("goprof", "flame", file)
	told, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%d MB: %v of CPU; %s", size>>20, cpu, told)
	if cpu > most {
		t.Errorf("%v of CPU, want at most %v", cpu, most)
	}
}

// writeStacks writes stacks as deep and named as an application server's, sorted as goprof
// writes them: below a common root each goes its own way through 5,000 methods.
func writeStacks(t *testing.T, name string, n int) int64 {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	methods := make([]string, 5000)
	for i := range methods {
		methods[i] = fmt.Sprintf("com.example.shop.module%d.Service%d.handle%d_[%c]", i%40, i%700, i, "j10i"[i%4])
	}
	paths := make([][]uint16, n)
	for i := range paths {
		// Mostly another stack's path, left at some depth.
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
