package vmstructs

import "testing"

func TestJavaName(t *testing.T) {
	for name, want := range map[string]string{
		"[B":                     "byte[]",
		"[[J":                    "long[][]",
		"[Ljava/lang/String;":    "java.lang.String[]",
		"java/util/HashMap$Node": "java.util.HashMap$Node",
		"B":                      "B",
		"[":                      "[]",
		"":                       "",
	} {
		if got := JavaName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
