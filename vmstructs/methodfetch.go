package vmstructs

// A method is read in steps: the method points to its ConstMethod, this to the constants of the class, and these to
// names. fetchMethods makes each step for several methods with one read. It is only an optimisation: data that it
// leaves out is read later.

const maxFetched = maxWanted / 2

// fetchedMethod is the state of fetchMethods for one method.
type fetchedMethod struct {
	addr, body, pool uint64
	isKnown          bool // its class is cached
}

// fetchMethods reads the memory of the missing methods.
func (vm *VM) fetchMethods(addrs []uint64, found []*Method) {
	var space [maxFetched]fetchedMethod
	list := space[:0]
	for i, addr := range addrs {
		if found[i] == nil && len(list) < maxFetched {
			list = append(list, fetchedMethod{addr: addr})
		}
	}
	for _, step := range [...]func(*fetchedMethod){vm.wantMethod, vm.wantBody, vm.wantPool, vm.wantNames, vm.wantClass} {
		for i := range list {
			step(&list[i])
		}
		vm.nearby.fetch()
	}
}

func (vm *VM) wantMethod(f *fetchedMethod) { vm.nearby.want(f.addr) }

func (vm *VM) wantBody(f *fetchedMethod) {
	f.body, _ = vm.near.Ptr(f.addr + uint64(vm.l.method.constMethod))
	vm.nearby.want(f.body)
}

func (vm *VM) wantPool(f *fetchedMethod) {
	if f.body == 0 {
		return
	}
	l := &vm.l.method
	f.pool, _ = vm.near.Ptr(f.body + uint64(l.constants))
	f.isKnown = vm.methods.pools[f.pool] != nil
	if !f.isKnown {
		vm.nearby.want(f.pool)
	}
	for _, index := range [...]offset{l.nameIndex, l.sigIndex} {
		vm.nearby.want(vm.entryAt(f.pool, f.body+uint64(index)))
	}
}

// entryAt returns the address of an entry of a pool. number is the address of the entry's number. It returns 0 if the
// number cannot be read.
func (vm *VM) entryAt(pool, number uint64) uint64 {
	i, err := vm.near.U16(number)
	if err != nil || pool == 0 {
		return 0
	}
	return pool + vm.l.method.poolSize + 8*uint64(i)
}

// wantNames requests the symbols of a method's name and signature for the next read.
func (vm *VM) wantNames(f *fetchedMethod) {
	if f.pool == 0 {
		return
	}
	l := &vm.l.method
	for _, index := range [...]offset{l.nameIndex, l.sigIndex} {
		vm.wantSymbol(vm.entryAt(f.pool, f.body+uint64(index)))
	}
	if f.isKnown {
		return
	}
	holder, _ := vm.near.Ptr(f.pool + uint64(l.poolHolder))
	if holder != 0 {
		vm.nearby.want(holder + uint64(l.klassName))
	}
	if l.poolFile.ok() {
		vm.nearby.want(vm.entryAt(f.pool, f.pool+uint64(l.poolFile)))
	}
}

// wantSymbol requests the symbol to which an entry points.
func (vm *VM) wantSymbol(entry uint64) {
	if entry == 0 {
		return
	}
	if s, err := vm.near.U64(entry); err == nil {
		vm.nearby.want(s &^ 1)
	}
}

func (vm *VM) wantClass(f *fetchedMethod) {
	if f.pool == 0 || f.isKnown {
		return
	}
	l := &vm.l.method
	if holder, _ := vm.near.Ptr(f.pool + uint64(l.poolHolder)); holder != 0 {
		vm.wantSymbol(holder + uint64(l.klassName))
	}
	if l.poolFile.ok() {
		vm.wantSymbol(vm.entryAt(f.pool, f.pool+uint64(l.poolFile)))
	}
}
