package vmstructs

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Listed is a bytecode of a method, as text.
type Listed struct {
	BCI, Line int32 // Line is 0 if the class has no lines
	Text      string
}

// mnemonics are the names of the opcodes 0 to 201 (Java Virtual Machine Specification, 6.5).
var mnemonics = strings.Fields(`nop aconst_null iconst_m1 iconst_0 iconst_1 iconst_2 iconst_3 iconst_4 iconst_5 lconst_0
	lconst_1 fconst_0 fconst_1 fconst_2 dconst_0 dconst_1 bipush sipush ldc ldc_w ldc2_w iload lload fload dload aload
	iload_0 iload_1 iload_2 iload_3 lload_0 lload_1 lload_2 lload_3 fload_0 fload_1 fload_2 fload_3 dload_0 dload_1
	dload_2 dload_3 aload_0 aload_1 aload_2 aload_3 iaload laload faload daload aaload baload caload saload istore lstore
	fstore dstore astore istore_0 istore_1 istore_2 istore_3 lstore_0 lstore_1 lstore_2 lstore_3 fstore_0 fstore_1
	fstore_2 fstore_3 dstore_0 dstore_1 dstore_2 dstore_3 astore_0 astore_1 astore_2 astore_3 iastore lastore fastore
	dastore aastore bastore castore sastore pop pop2 dup dup_x1 dup_x2 dup2 dup2_x1 dup2_x2 swap iadd ladd fadd dadd isub
	lsub fsub dsub imul lmul fmul dmul idiv ldiv fdiv ddiv irem lrem frem drem ineg lneg fneg dneg ishl lshl ishr lshr
	iushr lushr iand land ior lor ixor lxor iinc i2l i2f i2d l2i l2f l2d f2i f2l f2d d2i d2l d2f i2b i2c i2s lcmp fcmpl
	fcmpg dcmpl dcmpg ifeq ifne iflt ifge ifgt ifle if_icmpeq if_icmpne if_icmplt if_icmpge if_icmpgt if_icmple if_acmpeq
	if_acmpne goto jsr ret tableswitch lookupswitch ireturn lreturn freturn dreturn areturn return getstatic putstatic
	getfield putfield invokevirtual invokespecial invokestatic invokeinterface invokedynamic new newarray anewarray
	arraylength athrow checkcast instanceof monitorenter monitorexit wide multianewarray ifnull ifnonnull goto_w jsr_w`)

// arrayTypes are the element types of newarray, from 4 on.
var arrayTypes = [...]string{"boolean", "char", "float", "double", "byte", "short", "int", "long"}

// opNewarray is the bytecode with its type as a number.
const opNewarray, opIload, opAload, opIstore, opAstore, opRet = 0xbc, 0x15, 0x19, 0x36, 0x3a, 0xa9

// Listing reads the bytecodes of a method with the names of what they access. A name that cannot be read is left out.
func (vm *VM) Listing(m *Method) ([]Listed, error) {
	raw, code, err := vm.readBytecodes(m)
	if err != nil {
		return nil, err
	}
	list := make([]Listed, len(code))
	for i := range code {
		b := &code[i]
		text := mnemonics[b.Op]
		if operand := vm.operand(m, b, raw[b.BCI:]); operand != "" {
			text += " " + operand
		}
		list[i] = Listed{b.BCI, m.Line(b.BCI), text}
	}
	if ok, err := vm.proveMethod(m); err != nil || !ok {
		return nil, fmt.Errorf("%w: %s", ErrChanged, m.full)
	}
	return list, nil
}

// operand returns the text after a mnemonic. raw begins with the bytecode, and has all of it.
func (vm *VM) operand(m *Method, b *Bytecode, raw []byte) string {
	switch op := b.Op; {
	case b.Target >= 0:
		return fmt.Sprint(b.Target)
	case op == opBipush || op == opSipush:
		return fmt.Sprint(int16(b.Index))
	case op >= opIload && op <= opAload, op >= opIstore && op <= opAstore, op == opRet:
		if raw[0] >= opFirstOfVM || raw[0] == op {
			return fmt.Sprint(raw[1])
		}
	case op == opIinc:
		return fmt.Sprintf("%d by %d", raw[1], int8(raw[2]))
	case op == opWide:
		if local := binary.BigEndian.Uint16(raw[2:]); raw[1] != opIinc && int(raw[1]) < len(mnemonics) {
			return fmt.Sprintf("%s %d", mnemonics[raw[1]], local)
		} else if raw[1] == opIinc {
			return fmt.Sprintf("iinc %d by %d", local, int16(binary.BigEndian.Uint16(raw[4:])))
		}
	case op == opNewarray:
		if i := int(raw[1]) - 4; i >= 0 && i < len(arrayTypes) {
			return arrayTypes[i]
		}
	case op == OpNew || op == OpAnewarray || op == OpCheckcast || op == OpInstanceof || op == opMultianewarray:
		return vm.classConstant(m.pool, binary.BigEndian.Uint16(raw[1:]))
	case op >= OpGetstatic && op <= OpInvokeInterface:
		return vm.memberName(m, b)
	}
	return ""
}

// memberName returns the field or the method that a bytecode names: java.util.List.get(I)Ljava/lang/Object;
func (vm *VM) memberName(m *Method, b *Bytecode) string {
	var constant uint16
	if b.Op >= OpInvoke {
		e, _ := vm.invokeEntry(m, b)
		constant = e.constant
	} else {
		e, _ := vm.fieldEntry(m, b)
		constant = e.constant
	}
	c, ok := vm.methodConstant(m, constant)
	if !ok {
		return ""
	}
	name, err := vm.readSymbol(c.name)
	if err != nil {
		return ""
	}
	text := name.text
	if class := vm.classConstant(m.pool, c.class); class != "" {
		text = class + "." + text
	}
	if signature, err := vm.readSymbol(c.signature); err == nil && b.Op >= OpInvoke {
		text += signature.text
	}
	return text
}

// classConstant returns the class that a constant names. It is empty if that cannot be read. Since 9 the constant has
// the number of the name (oops/constantPool.hpp, CPKlassSlot). In 8 it has the class, or the name until the class is
// resolved.
func (vm *VM) classConstant(p *pool, constant uint16) string {
	slot, ok := vm.poolSlot(p, constant)
	if ok && vm.l.invoke.klasses.ok() {
		slot, ok = vm.poolSlot(p, uint16(slot>>16))
	} else if ok && slot&1 == 0 {
		name, _ := vm.klassName(slot)
		return JavaName(name)
	}
	if !ok {
		return ""
	}
	s, err := vm.readSymbol(slot &^ 1)
	if err != nil {
		return ""
	}
	return JavaName(s.text)
}

// maxFoundMethods bounds the methods that FindMethods checks, over all classes.
const maxFoundMethods = 1 << 16

// FindMethods lists the matching methods of all loaded classes with a wanted name. It leaves out a class that cannot be
// read.
func (vm *VM) FindMethods(wanted func(class string) bool, fits func(*Method) bool) (found []*Method, err error) {
	l := &vm.l.invoke.named
	if !l.methods.ok() || !l.data.ok() {
		return nil, fmt.Errorf("%w: the methods of a class", ErrMissing)
	}
	klasses, err := (&Heap{vm: vm, health: vm.NewHealth()}).klassList()
	if err != nil {
		return nil, err
	}
	seen := 0
	for _, klass := range klasses {
		name, err := vm.klassName(klass)
		if err != nil || strings.HasPrefix(name, "[") || !wanted(JavaName(name)) {
			continue
		}
		array, n := vm.arrayIn(vm.mem, klass+uint64(l.methods), maxDeclared)
		for i := range uint64(n) {
			if seen++; seen > maxFoundMethods {
				return found, nil
			}
			addr, err := vm.mem.Ptr(array + uint64(l.data) + 8*i)
			if err != nil {
				break
			}
			if m, err := vm.MethodNow(addr); err == nil && fits(m) {
				found = append(found, m)
			}
		}
	}
	return found, nil
}
