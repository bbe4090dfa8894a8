//go:build linux

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// filled is how many megabytes the program of the section heap keeps.
const filled = 500

// heapTrial is one way of finding out what fills a heap.
type heapTrial struct {
	name string
	line func(pid string) []string
}

// heapSection measures how long it takes to say what fills a heap, and for how long the program stood meanwhile.
func (b *bench) heapSection() error {
	jcmd := filepath.Join(b.java, "bin", "jcmd")
	trials := []heapTrial{
		{"goprof heap", func(pid string) []string { return []string{b.goprofs[0], "heap", pid, "--json"} }},
		{"goprof heap --all", func(pid string) []string { return []string{b.goprofs[0], "heap", pid, "--all", "--json"} }},
		{"jcmd GC.class_histogram -all", func(pid string) []string {
			return []string{jcmd, pid, "GC.class_histogram", "-all"}
		}},
		{"jcmd GC.class_histogram", func(pid string) []string { return []string{jcmd, pid, "GC.class_histogram"} }},
	}
	p, err := start(filepath.Join(b.java, "bin", "java"), "-Xmx2g", "-cp", b.dir, "Fill", strconv.Itoa(filled))
	if err != nil {
		return err
	}
	if err := p.ready(); err != nil {
		return err
	}
	defer p.end()
	took, stood := map[string][]float64{}, map[string][]float64{}
	rounds := (b.rounds + 2) / 3
	for round := range rounds {
		b.progress("heap: round %d of %d", round+1, rounds)
		for _, i := range rand.Perm(len(trials)) {
			t := trials[i]
			if _, err := p.longestGap(); err != nil {
				return err
			}
			line := t.line(strconv.Itoa(p.pid))
			began := time.Now()
			if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", t.name, err, out[:min(len(out), 1<<10)])
			}
			took[t.name] = append(took[t.name], time.Since(began).Seconds())
			gap, err := p.longestGap()
			if err != nil {
				return err
			}
			stood[t.name] = append(stood[t.name], float64(gap)/1e6)
		}
	}
	fmt.Fprintf(b.out, "\n## What fills a heap of %d MB: seconds (for each GB), and the longest gap that the program "+
		"saw, in ms; %d rounds\n\n", filled, rounds)
	for _, t := range trials {
		s := spreadOf(took[t.name])
		fmt.Fprintf(b.out, "%-30s %24v s %8.2f s/GB %24v ms\n", t.name, s, s.mid*1000/filled, spreadOf(stood[t.name]))
	}
	return nil
}

// longestGap asks Fill.java for the longest gap since it was asked last.
func (p *program) longestGap() (int64, error) {
	if _, err := io.WriteString(p.in, "g\n"); err != nil {
		return 0, err
	}
	n, err := p.numbers()
	if err == nil && len(n) != 1 {
		err = fmt.Errorf("it says %v", n)
	}
	if err != nil {
		return 0, err
	}
	return n[0], nil
}
