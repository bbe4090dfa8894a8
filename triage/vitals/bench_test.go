//go:build linux

package vitals

import (
	"fmt"
	"testing"

	"goprof/session"
	"goprof/testdata/jvmtest"
)

// BenchmarkRead measures a reading of a JVM with 200 threads.
func BenchmarkRead(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.Vitals", "-Xmx1g")
			jvm.Command(fmt.Sprintf("allocators %d", 200))
			s, err := session.Attach(jvm.PID)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			v, err := Open(s)
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			for b.Loop() {
				if _, err := v.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen measures what comes before the first reading: it includes reading libjvm's symbols.
func BenchmarkOpen(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.Vitals", "-Xmx128m")
			for b.Loop() {
				s, err := session.Attach(jvm.PID)
				if err != nil {
					b.Fatal(err)
				}
				v, err := Open(s)
				if err != nil {
					b.Fatal(err)
				}
				v.Close()
				s.Close()
			}
		})
	}
}
