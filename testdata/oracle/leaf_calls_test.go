//go:build linux

package oracle

import (
	"os"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// stubCallers are methods that alone call intrinsic ones which HotSpot has stubs for, by part of the stub's name. It
// is so in java.math and java.util.zip.
var stubCallers = []struct{ stub, class string }{
	{"updateBytesCRC32", "java.util.zip.CRC32."},
	{"updateBytesAdler32", "java.util.zip.Adler32."},
	{"montgomery", "java.math.BigInteger.montgomery"},
	{"multiplyToLen", "java.math.BigInteger.mult"},
	{"squareToLen", "java.math.BigInteger.squareToLen"},
	{"mulAdd", "java.math.BigInteger.mulAdd"},
}

// callerOf is the class, and maybe the method, that has called a stub.
func callerOf(stub string) string {
	for _, c := range stubCallers {
		if strings.Contains(strings.ToLower(strings.ReplaceAll(stub, "_", "")), strings.ToLower(c.stub)) {
			return c.class
		}
	}
	return ""
}

// TestLeafCalls: who has called a stub that no record tells of. Intrinsic methods of checksums and big numbers are
// much of this program's work, and of their stubs it is known by whom alone they are called. The JVM has no flag.
func TestLeafCalls(t *testing.T) {
	const samples, rounds, enough = 800, 10, 100
	if os.Getenv("GOPROF_PROVE") == "" {
		t.Skip("takes up to a minute: set GOPROF_PROVE=1, or make prove ORACLE=TestLeafCalls")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Intrinsics", "--", "numbers")
		s := attach(t, jvm.PID)
		time.Sleep(2 * time.Second) // until most is compiled
		var all, certain smallScore
		for round := 0; round < rounds && all.n < enough; round++ {
			sample(t, s, time.Millisecond, samples, func(_ *look.Look, st *profile.Stack) {
				caller, want := stubCall(st)
				if caller == nil {
					return
				}
				is := strings.HasPrefix(caller.Func.Name, want)
				if !is {
					t.Logf("%s has been called by %s:%d (%v)", st.Frames[0].Func.Name, caller.Func.Name, caller.Line, caller.Sure)
				}
				all.add(is)
				if caller.Sure == profile.Certain {
					certain.add(is)
				}
			})
		}
		t.Logf("in such stubs right: %v; of those that are certain: %v", all, certain)
		if all.n < enough || all.right*100 < all.n*90 || certain.right*100 < certain.n*98 || certain.n*3 < all.n {
			t.Error("who has called a stub is not told")
		}
	})
}

// stubCall returns the compiled frame right below a stub of which it is known who calls it, nil if there is none.
func stubCall(st *profile.Stack) (caller *profile.Frame, want string) {
	for i := 1; i < min(len(st.Frames), 4); i++ {
		above, f := &st.Frames[i-1], &st.Frames[i]
		if !f.Kind.Java() {
			continue
		}
		if above.Kind != profile.Stub && above.Kind != profile.Native || f.Level != 4 {
			return nil, ""
		}
		want = callerOf(above.Func.Name)
		if want == "" {
			return nil, ""
		}
		return f, want
	}
	return nil, ""
}
