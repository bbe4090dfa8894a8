package unwind

import (
	"testing"

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
