//go:build linux

package session

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"goprof/vmstructs"
)

func TestZZ(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("ZZPID"))
	s, err := Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	c := s.VM.NewContinuations()
	l := vmstructs.NewLots(c)
	th, _ := s.VM.Threads()
	for range 12 {
		m := map[string]float64{}
		n := 0
		lot, err := l.Draw(th, 64, func(v *vmstructs.VirtualThread, st float64) { m[v.State] += st; n++ })
		fmt.Println(n, m, lot.Threads, lot.Failed, err)
	}
}
