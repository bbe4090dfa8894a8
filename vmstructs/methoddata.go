package vmstructs

// DataOf returns the address of a method's profile (oops/methodData.hpp), 0 if it has none. Code that counts for the
// profile
// contains that address.
func (vm *VM) DataOf(m *Method) uint64 { return vm.pointer(m.Addr, vm.l.method.data) }

// IsProfile reports whether an address is that of the profile of any method.
func (vm *VM) IsProfile(data uint64) bool {
	l := &vm.l.profile
	if data == 0 || data%8 != 0 || !l.method.ok() {
		return false
	}
	of, err := vm.mem.Ptr(data + uint64(l.method))
	return err == nil && of != 0 && of%8 == 0 && vm.DataOf(&Method{Addr: of}) == data
}
