package leaf

import (
	"testing"

	"goprof/profile"
	"goprof/vmstructs"
)

// TestBytecodesOf: which bytecode, and which method, can have called a stub. The stubs' names are of several JDKs.
func TestBytecodesOf(t *testing.T) {
	for _, r := range []struct {
		stub   string
		op     uint8
		method string
		want   bool
	}{
		{"sha256_implCompressMB", vmstructs.OpInvoke, "implCompressMultiBlock0", true},
		{"sha256_implCompress", vmstructs.OpInvoke, "implCompress0", true},
		{"SharedRuntime::montgomery_square", vmstructs.OpInvokeStatic, "implMontgomerySquare", true},
		{"SharedRuntime::montgomery_square", vmstructs.OpInvokeStatic, "materialize", false},
		{"squareToLen", vmstructs.OpInvokeStatic, "implSquareToLen", true},
		{"squareToLen", vmstructs.OpInvokeStatic, "implMulAdd", false},
		{"updateBytesCRC32", vmstructs.OpInvokeStatic, "updateBytes0", true},
		{"libmTan", vmstructs.OpInvokeStatic, "tan", true},
		{"libmTan", vmstructs.OpInvokeStatic, "sin", false},
		{"jint_disjoint_arraycopy_avx3", vmstructs.OpInvokeStatic, "copyOf", true},
		{"jint_disjoint_arraycopy_avx3", vmstructs.OpInvokeStatic, "", false},
		{"jint_disjoint_arraycopy_avx3", vmstructs.OpPutfield, "", false},
		{"g1_post_barrier_slow", vmstructs.OpAastore, "", true},
		{"G1BarrierSetRuntime::write_ref_field_post_entry", vmstructs.OpPutfield, "", true},
		{"G1BarrierSetRuntime::write_ref_field_post_entry", vmstructs.OpInvoke, "", false},
		{"ZBarrierSetRuntime::load_barrier_on_oop_field_preloaded", vmstructs.OpGetfield, "", true},
		{"ZBarrierSetRuntime::load_barrier_on_oop_field_preloaded", vmstructs.OpPutfield, "", false},
		{"ZBarrierSetRuntime::store_barrier_on_oop_field_with_healing", vmstructs.OpPutfield, "", true},
		{"ShenandoahRuntime::load_reference_barrier_strong", vmstructs.OpAaload, "", true},
		{"slow_subtype_check Runtime1 stub", vmstructs.OpCheckcast, "", true},
		{"SharedRuntime::drem", vmstructs.OpDrem, "", true},
		{"int division", vmstructs.OpIdiv, "", true},
		{"int division", vmstructs.OpLrem - 1, "", true}, // irem
		{"int division", vmstructs.OpLrem, "", false},
		{"int division", vmstructs.OpIadd, "", false},
		{"long division", vmstructs.OpLrem, "", true},
		{"long division", vmstructs.OpIdiv + 1, "", true}, // ldiv
		{"long division", vmstructs.OpIdiv, "", false},
	} {
		var intrinsic *vmstructs.Method
		if r.method != "" {
			intrinsic = &vmstructs.Method{Name: r.method}
		}
		if got := bytecodesOf(r.stub)(nil, &vmstructs.Bytecode{Op: r.op}, intrinsic); got != r.want {
			t.Errorf("%s, bytecode %#x %s: %v", r.stub, r.op, r.method, got)
		}
	}
}

// TestSureOfCall: a call is certain if all bytecodes on the route that may have called are of one method at one place.
func TestSureOfCall(t *testing.T) {
	one, other, outer := &vmstructs.Method{Name: "one"}, &vmstructs.Method{Name: "other"}, &vmstructs.Method{Name: "outer"}
	at := func(m *vmstructs.Method, bci, caller int32) foundCall {
		return foundCall{scopes: []vmstructs.Scope{{Method: m, BCI: bci}, {Method: outer, BCI: caller}}}
	}
	for _, r := range []struct {
		name   string
		found  []foundCall
		offWay bool
		want   profile.Certainty
	}{
		{name: "none", want: profile.Guessed},
		{name: "one", found: []foundCall{at(one, 1, 5)}, want: profile.Certain},
		{name: "one, elsewhere", found: []foundCall{at(one, 1, 5)}, offWay: true, want: profile.Likely},
		{name: "two of a method", found: []foundCall{at(one, 1, 5), at(one, 3, 5)}, want: profile.Certain},
		{name: "two methods", found: []foundCall{at(one, 1, 5), at(other, 3, 5)}, want: profile.Likely},
		{name: "a method at two places", found: []foundCall{at(one, 1, 5), at(one, 1, 8)}, want: profile.Likely},
	} {
		way := router{q: questionIn(nil, &vmstructs.Blob{}, nil), found: r.found, offWay: r.offWay}
		if got := way.sureOfCall(); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}
