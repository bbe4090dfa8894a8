package vmstructs

// For an interface's method or an abstract one, the constant pool does not show which method an invoke calls. A
// compiler inlines the methods of the types in the caller's profile (opto/doCall.cpp, call_generator). goprof reads
// that profile, too. It shows what most calls were, not all of them.

// profileLayout has the place and the form of a profile: oops/methodData.hpp, MethodData and DataLayout. Each entry of
// a profile has a head of 8 bytes: its tag, one byte of flags, and the index of its bytecode, in 16 bits. Words follow.
type profileLayout struct {
	data       offset // of MethodData
	method     offset `vm:"MethodData._method"` // the method to which the profile belongs
	call       uint8  // the tag of the entry for an invoke with a receiver
	callOfType uint8  // the same if types of arguments are also counted
}

func (r *resolver) profile() profileLayout {
	l := fill[profileLayout](r, "")
	l.data = r.profileData()
	l.call = uint8(r.int("DataLayout::virtual_call_data_tag", 5))
	l.callOfType = uint8(r.int("DataLayout::virtual_call_type_data_tag", 11))
	return l
}

// profileData returns the offset of the first entry of a profile. 27 does not export it. In all releases it is the last
// word of MethodData: `intptr_t _data[1]` (oops/methodData.hpp).
func (r *resolver) profileData() offset {
	if at := r.field("", "MethodData._data[0]"); at.ok() {
		return at
	}
	if n := r.size(capReceivers, "MethodData"); n >= 16 && n%8 == 0 {
		return offset(n - 8)
	}
	return absent
}

const (
	maxProfile = 16 << 10 // bytes of a profile; if they cannot be read, the rest of the page
	aPage      = 4 << 10
	// receiverWords bounds the words of an entry: one or two counts of other calls, and types with their counts.
	// TypeProfileWidth is 2 unless a flag says otherwise.
	receiverWords = 6
	// majorPercent of all calls must have one type (TypeProfileMajorReceiverPercent, opto/c2_globals.hpp). Otherwise C2
	// inlines the methods of two types, or none.
	majorPercent = 90
	maxCount     = 1<<48 - 1
)

// Received returns the method that an invoke calls for the most frequent type in m's profile, or the only one that the
// named class and its subclasses have. It is nil if neither is known.
func (vm *VM) Received(m *Method, b *Bytecode) *Method {
	if b.Op != OpInvoke && b.Op != OpInvokeInterface || b.BCI > 0xffff {
		return nil
	}
	e, _ := vm.invokeEntry(m, b)
	c, ok := vm.methodConstant(m, e.constant)
	if e.never || !ok {
		return nil
	}
	method, ok := vm.majorReceiver(vm.receivers(m, uint16(b.BCI)), c)
	if !ok {
		if b.Op == OpInvokeInterface || e.method != 0 {
			return nil
		}
		return vm.onlyBelow(vm.poolKlass(m.pool, e.constant), e.table)
	}
	called, err := vm.MethodNow(method)
	if err != nil {
		return nil
	}
	return called
}

// majorReceiver returns the method that a constant names, for the type that has nearly all counts. The first word
// counts the calls of types for which there was no room, or all calls if C1 knew of only one possible type.
func (vm *VM) majorReceiver(words []byte, c methodConstant) (method uint64, ok bool) {
	if len(words) < 8 {
		return 0, false
	}
	types, most, all := 0, uint64(0), word(words)&maxCount
	for at := 8; at+16 <= len(words); at += 8 {
		klass, count := word(words[at:]), word(words[at+8:])&maxCount
		if klass == 0 || klass%8 != 0 || count == 0 {
			continue
		}
		// A count is not a class, because it has no method with that name.
		found := vm.inheritedMethod(klass, c.name, c.signature)
		if found == 0 {
			continue
		}
		types++
		if all += count; count > most {
			method, most = found, count
		}
	}
	return method, types == 1 || most > 0 && most*100 >= all*majorPercent
}

// receivers returns the words of the entry for an invoke in m's profile, nil if there is none.
func (vm *VM) receivers(m *Method, bci uint16) []byte {
	l := &vm.l.profile
	profile := vm.DataOf(m)
	if profile == 0 || profile%8 != 0 || !l.data.ok() || !l.method.ok() {
		return nil
	}
	if of, err := vm.mem.Ptr(profile + uint64(l.method)); err != nil || of != m.Addr {
		return nil // not a profile of that method
	}
	// The profile's length is not known. The data after it belong to other methods.
	begin, raw := profile+uint64(l.data), make([]byte, maxProfile)
	if vm.mem.Bytes(begin, raw) != nil {
		if raw = raw[:min(aPage-begin%aPage, maxProfile)]; vm.mem.Bytes(begin, raw) != nil {
			return nil
		}
	}
	for at := 0; at+8 <= len(raw); at += 8 {
		if tag := raw[at]; (tag == l.call || tag == l.callOfType) && offset(2).u16(raw[at:]) == bci {
			return raw[at+8 : min(at+8+8*receiverWords, len(raw))]
		}
	}
	return nil
}
