package vmstructs

import "strings"

// The interpreter links a call of a VarHandle to an adapter, nearly always to a method of VarHandleGuards
// (Invokers.java, varHandleInvokeLinkerMethod). The guard calls MethodHandle.linkToStatic, which calls its argument:
// the method of the VarHandle's own class with the name of the access (VarForm.java, getMemberName). If the VarHandle
// is a constant, a compiler inlines all of them. In this case goprof also knows its class.

const (
	classMethodHandle = "java.lang.invoke.MethodHandle"
	classVarHandle    = "java/lang/invoke/VarHandle"
	classGuards       = "java.lang.invoke.VarHandleGuards"
	linkToStatic      = "linkToStatic"
)

// handsOn reports whether a method only calls one of its arguments, a method: linkToStatic and similar methods, and
// invokeBasic (classfile/vmIntrinsics.hpp, is_signature_polymorphic_intrinsic). A compiler that knows the other method
// inlines it.
func (m *Method) handsOn() bool {
	return m.Native && m.Class == classMethodHandle && (strings.HasPrefix(m.Name, "linkTo") || m.Name == "invokeBasic")
}

// GuardsHandle reports whether a method may be the guard of a call of a VarHandle.
func (m *Method) GuardsHandle() bool { return m.Class == classGuards }

// InvokeEffect returns how many values an invoke of m pops, including the receiver, and how many it pushes. A long is
// one value. ok is false for invokedynamic.
func (vm *VM) InvokeEffect(m *Method, b *Bytecode) (takes, puts int, ok bool) {
	e, _ := vm.invokeEntry(m, b)
	c, ok := vm.methodConstant(m, e.constant)
	if !ok {
		return 0, 0, false
	}
	signature, err := vm.readSymbol(c.signature)
	if err != nil {
		return 0, 0, false
	}
	if takes, ok = parametersOf(signature.text); b.Op != OpInvokeStatic {
		takes++
	}
	if !strings.HasSuffix(signature.text, ")V") {
		puts = 1
	}
	return takes, puts, ok
}

// maxParameters bounds the parameters of a method (Java Virtual Machine Specification, 4.11).
const maxParameters = 255

// parametersOf counts the parameters in a signature: (ILjava/lang/String;[J)V has three.
func parametersOf(signature string) (n int, ok bool) {
	s, ok := strings.CutPrefix(signature, "(")
	for ; ok && s != "" && s[0] != ')' && n < maxParameters; n++ {
		if s = strings.TrimLeft(s, "["); strings.HasPrefix(s, "L") {
			_, s, ok = strings.Cut(s, ";")
		} else if s != "" {
			s = s[1:]
		}
	}
	return n, ok && strings.HasPrefix(s, ")")
}

// Accessed returns the method with which a VarHandle accesses memory. m loads the VarHandle from a static field (load)
// and calls it (call). The result is nil if the method is not known, or if the field is not final, because then the
// VarHandle is not a constant. After ErrMoved, another attempt may succeed.
func (vm *VM) Accessed(m *Method, call, load *Bytecode) (*Method, error) {
	e, ok := vm.invokeEntry(m, call)
	if !ok || !call.Handle || load.Op != OpGetstatic {
		return nil, nil
	}
	c, ok := vm.methodConstant(m, e.constant)
	field, ok2 := vm.fieldEntry(m, load)
	if !ok || !ok2 || field.gets != OpGetstatic || !field.final {
		return nil, nil
	}
	base := vm.poolKlass(m.pool, e.constant)
	if name, err := vm.klassName(base); err != nil || name != classVarHandle {
		return nil, nil
	}
	klass, err := vm.classInStatic(field.klass, field.at)
	if err != nil {
		return nil, err
	}
	found, err := vm.MethodNow(vm.accessMethod(klass, base, c.name))
	if err != nil {
		return nil, nil
	}
	// The VarHandle itself is the first parameter, and was the receiver of the call.
	takes, _, ok := vm.InvokeEffect(m, call)
	if n, ok2 := parametersOf(found.Signature); !ok || !ok2 || n != takes {
		return nil, nil
	}
	return found, nil
}

// accessMethod looks for a static method with that name in klass, or else in its superclasses below base
// (java.lang.invoke.VarForm, Lookup.findStatic). It returns 0 unless klass is a subclass of base and the nearest class
// with such methods has exactly one.
func (vm *VM) accessMethod(klass, base, name uint64) (method uint64) {
	l := &vm.l.invoke.named
	found := 0
	for n := 0; klass != base; n++ {
		if n == maxSupers || klass == 0 || klass%8 != 0 {
			return 0
		}
		if found == 0 {
			vm.eachNamed(klass, l.methods, name, func(d declaredMethod) bool {
				if flags, err := vm.near.U16(d.method + uint64(vm.l.method.accessFlags)); err == nil && flags&accStatic != 0 {
					method = d.method
					found++
				}
				return found < 2
			})
		}
		var err error
		if klass, err = vm.near.Ptr(klass + uint64(l.super)); err != nil {
			return 0
		}
	}
	if found != 1 {
		return 0
	}
	return method
}

// accStatic is JVM_ACC_STATIC (classfile_constants.h).
const accStatic = 8
