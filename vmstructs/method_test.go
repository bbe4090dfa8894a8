package vmstructs

import "testing"

func TestParameters(t *testing.T) {
	for signature, want := range map[string]int{
		"()V":                            1,
		"(I)I":                           2,
		"(JD)V":                          5,
		"(Ljava/lang/String;I[[J[La;B)V": 6,
		"(Lunended":                      2, // from freed memory
		"([":                             2,
		"(":                              1,
	} {
		if got := (&Method{Signature: signature}).Parameters(); got != want {
			t.Errorf("%q: %d, want %d", signature, got, want)
		}
	}
}
