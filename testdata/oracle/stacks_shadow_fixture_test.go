//go:build linux

package oracle

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestRecordShadow makes recordings of a thread at arbitrary instructions, each of which its own account of itself has
// shown to be right. It is run by hand, on arm64:
//
//	GOPROF_RECORD_WALKS=30 session.test -test.run TestRecordShadow
func TestRecordShadow(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("GOPROF_RECORD_WALKS"))
	if n == 0 || runtime.GOARCH == "amd64" {
		t.Skip("makes fixtures of arm64: set GOPROF_RECORD_WALKS there to their number")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, path := startShadow(t, jdk, []string{matrixHeap}, nil)
		shadow, err := jvmtest.OpenShadow(path)
		if err != nil {
			t.Fatal(err)
		}
		defer shadow.Close()
		threads, err := shadow.Threads()
		if err != nil || len(threads) == 0 {
			t.Fatal("no shadow threads", err)
		}
		s := attach(t, jvm.PID)
		tid := threads[0].TID
		th, _ := s.Thread(tid)
		rec, w := recorderOf(t, s.Process)
		count := &shadowCount{code: map[[2]uint64]map[string]bool{}}
		for i := 0; count.stops < n && i < 20*n; i++ {
			own, snap := stopShadow(t, s, shadow, tid, th, func() {})
			var st profile.Stack
			s.Walker.Walk(snap, &st)
			if own.Running && st.Truncated == profile.Whole && right(s, shadow, count, own, &st) {
				count.stops++
				rec.Begin(snap)
				if w.Walk(snap, &st); st.Truncated != profile.Whole || !right(s, shadow, count, own, &st) {
					t.Errorf("walk %d is another when it is recorded", count.stops)
				}
			}
			pause(i)
		}
		saveWalks(t, rec, walksFile(t, "shadow", "shadow", jdk))
	})
}

func right(s *session.Session, shadow *jvmtest.Shadow, count *shadowCount, own jvmtest.ShadowThread,
	st *profile.Stack) bool {
	verdict, _ := shadow.Judge(own.Frames, count.walkOf(s, shadow, st))
	return verdict != jvmtest.Mismatch
}
