//go:build linux

package heap

import (
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

func TestHolders(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", truthFlags("-XX:+UseG1GC", "")...)
		r, err := openLive(t, jvm)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"cache 2000", "listener 1000", "local 1000", "loader 1000", "garbage 5"} {
			jvm.Command(c)
		}
		time.Sleep(3 * time.Second)
		jvm.Command("stop")
		jvm.Command("gc")
		began := time.Now()
		h, err := r.Holders(Options{Seed: 1}, []string{"truth.HeapLeaks$Order", "byte[]"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(began), h.Notes)
		for _, c := range h.Holders {
			t.Log(c.Class, c.Looked, c.Newer)
			for _, row := range c.Rows[:min(12, len(c.Rows))] {
				t.Logf("%.3f +- %.3f %s roots %d %+v", row.Share, row.Error, row.Missing, row.Roots, row.Path)
			}
		}
	})
}
