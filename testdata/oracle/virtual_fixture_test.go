//go:build linux

package oracle

import (
	"context"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestRecordVirtualWalks makes the recordings of unwind/testdata/virtual: carriers whose virtual thread has
// frames in the heap, and whose stack is whole. It is run by hand:
//
//	GOPROF_RECORD_WALKS=12 go test ./testdata/oracle -run TestRecordVirtualWalks
func TestRecordVirtualWalks(t *testing.T) {
	all := wantedWalks(t)
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.VirtualLoad", "-XX:CompileCommand=quiet",
			"-XX:CompileCommand=exclude,truth/VirtualLoad.root", "-XX:CompileCommand=exclude,java/lang/Thread.runWith")
		s := attach(t, jvm.PID)
		rec, w := recorderOf(t, s.Process)
		ctx, cancel := context.WithTimeout(t.Context(), jvmtest.Slow(10*time.Second)+time.Minute)
		defer cancel()
		samples := s.Sampling(session.PtraceEngine)
		config := sampler.Config{Interval: 2 * time.Millisecond}
		samples.ReadSoon(&config)
		var stack profile.Stack
		want := all
		samples.Run(ctx, config, func(snap *look.Look) {
			if k := &snap.Continuation; want > 0 && k.Settled && len(k.Chunks) > 0 {
				if s.Walker.Walk(&snap.Snapshot, &stack); stack.Truncated == profile.Whole && stack.Carrier > 0 && k.ID != 0 {
					rec.Begin(&snap.Snapshot)
					w.Walk(&snap.Snapshot, &stack)
					if want--; want == 0 {
						cancel()
					}
				}
			}
		})
		if want > 0 {
			t.Fatalf("%d walks of %d are missing", want, all)
		}
		saveWalks(t, rec, walksFile(t, "virtual", "virtual", jdk))
	})
}
