// fleet measures what many JVMs add up to at a collector. It replays batches that an agent has recorded (its folder of
// files, one file a batch) as those of N JVMs, through goprof's own encoders and connections, to a server of its own
// that takes all and counts.
//
//	go run ./scripts/fleet -jvms 200 -services 20 -every 15s /var/lib/goprof
//
// It prints for each kind of server: bytes of messages and on the wire for a JVM in an hour, series, and the CPU time
// that encoding and sending take. docs/evidence/fleet.md holds what it printed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	var p plan
	flag.IntVar(&p.jvms, "jvms", 200, "how many JVMs there are")
	flag.IntVar(&p.services, "services", 20, "of how many services they are")
	flag.IntVar(&p.batches, "batches", 20, "how many batches each of them sends")
	flag.DurationVar(&p.every, "every", 15*time.Second, "the time that a file stands for")
	flag.IntVar(&p.merge, "merge", 1, "put so many files into one batch")
	flag.Parse()
	if err := run(os.Stdout, p, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(to io.Writer, p plan, folders []string) error {
	if len(folders) != 1 {
		return fmt.Errorf("name the folder of an agent's files")
	}
	recorded, err := readFolder(folders[0], p.merge)
	if err != nil {
		return err
	}
	p.every *= time.Duration(p.merge)
	fmt.Fprintf(to, "%d recorded JVMs, %.1f samples in a batch; %d JVMs of %d services, %d batches each, one every %v\n",
		len(recorded), samplesOf(recorded), p.jvms, p.services, p.batches, p.every)
	fmt.Fprintf(to, "%-10s %14s %14s %8s %16s %16s\n", "server", "message/JVM/h", "wire/JVM/h", "series", "CPU/JVM/h",
		"requests/s")
	for _, kind := range kinds {
		r, err := p.replay(kind, recorded)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		hours := float64(p.jvms) * float64(p.batches) * p.every.Hours()
		fmt.Fprintf(to, "%-10s %11.0f kB %11.0f kB %8d %13.0f ms %16.2f\n", kind.name, float64(r.message)/hours/1e3,
			float64(r.wire)/hours/1e3, r.series, float64(r.cpu.Milliseconds())/hours, float64(p.jvms)/p.every.Seconds())
	}
	return nil
}
