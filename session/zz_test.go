//go:build linux

package session

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
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
	s.Walker.Warm()
	var st profile.Stack
	for range 100 {
		t0 := time.Now()
		n := 0
		l.Draw(th, 64, func(v *vmstructs.VirtualThread, _ float64) { n++ })
		d := time.Since(t0)
		t0 = time.Now()
		fr := 0
		l.Draw(th, 64, func(v *vmstructs.VirtualThread, _ float64) {
			s.Walker.WalkContinuation(v.Stack, &st)
			fr += len(st.Frames)
		})
		fmt.Println(n, d, time.Since(t0), fr)
	}
	for range 12 {
		m := map[string]float64{}
		n := 0
		lot, err := l.Draw(th, 64, func(v *vmstructs.VirtualThread, st float64) { m[v.State] += st; n++ })
		fmt.Println(n, m, lot.Threads, lot.Failed, err)
	}
}
