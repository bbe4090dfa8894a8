package vmstructs

import "testing"

func TestPlainStub(t *testing.T) {
	for name, want := range map[string]string{
		"call_stub": "call_stub", // up to JDK 25
		// JDK 26, 27: made before there is a generator
		"get_cpu_info_stub":                         "get_cpu_info_stub",
		"Stub Generator call_stub_stub":             "call_stub",                // JDK 26
		"Stub Generator forward_exception_stub":     "forward_exception",        // JDK 26
		"jbyte_disjoint_arraycopy_stub (stub gen)":  "jbyte_disjoint_arraycopy", // JDK 27
		"Stub Generator cont_returnBarrierExc_stub": "cont_returnBarrierExc",
		"cont_returnBarrierExc_stub (stub gen)":     "cont_returnBarrierExc",
		"":                                          "",
	} {
		if got := plainStub(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
