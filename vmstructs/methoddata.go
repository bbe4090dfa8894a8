package vmstructs

// DataOf returns the address of the memory that holds a method's profile (oops/methodData.hpp). It returns 0 if the
// method has none, or if the address is not known. Code that counts for the profile has that address in it.
func (vm *VM) DataOf(m *Method) uint64 {
	at := vm.l.method.data
	if !at.ok() || m.Addr == 0 {
		return 0
	}
	data, err := vm.mem.Ptr(m.Addr + uint64(at))
	if err != nil {
		return 0
	}
	return data
}

// IsProfile reports whether an address is that of the profile of any method.
func (vm *VM) IsProfile(data uint64) bool {
	l := &vm.l.profile
	if data == 0 || data%8 != 0 || !l.method.ok() {
		return false
	}
	of, err := vm.mem.Ptr(data + uint64(l.method))
	return err == nil && of != 0 && of%8 == 0 && vm.DataOf(&Method{Addr: of}) == data
}
