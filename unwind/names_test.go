package unwind

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// folded is a linkage name that stands for 2^n times int: each pair contains the previous pair twice.
func folded(n int) string {
	var b strings.Builder
	b.WriteString("_Z1fI1AIiiE")
	digit := func(k int) string {
		const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		if k < len(digits) {
			return digits[k : k+1]
		}
		return string([]byte{digits[k/len(digits)], digits[k%len(digits)]})
	}
	for k := range n {
		b.WriteString("S0_IS" + digit(k+1) + "_S" + digit(k+1) + "_E")
	}
	b.WriteString("EvT_")
	return b.String()
}

func TestDemangled(t *testing.T) {
	for in, want := range map[string]string{
		"_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread": "JavaCalls::call_helper",
		"read@@GLIBC_2.2.5":       "read",
		"_RNvCs1234_7mycrate3foo": "mycrate::foo",
		"not mangled":             "not mangled",
		"":                        "",
	} {
		if got := Demangled(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Demangled(folded(60)); len(got) > maxSymbol {
		t.Errorf("a name of %d bytes became %d bytes", len(folded(60)), len(got))
	}
}

// FuzzDemangled: names come from the target's files.
func FuzzDemangled(f *testing.F) {
	for _, name := range []string{
		"_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread",
		"_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZZN3foo3barEvENKUlvE_clEv", "_ZTV14CompilerThread",
		"_ZTIN10__cxxabiv117__class_type_infoE",
		"_RNvNtCs1234_7mycrate3foo3bar", "_RINvMs_NtCsx_4core6optionINtB5_6OptionhE3mapjE",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
		"_ZN13G1ParScanThreadState15trim_queue_to_thresholdEj.cold", "read@@GLIBC_2.2.5", "$x", folded(5), folded(40),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Demangled(name)
		if len(got) > 3*max(maxSymbol, 1<<maxDemangled) { // U+FFFD takes three bytes
			t.Fatalf("%d bytes became %d", len(name), len(got))
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
	})
}
