package vmstructs

import "fmt"

// injectedIn lists the offsets of the fields that the VM has added to a class for itself. They follow those of Java
// (oops/fieldInfo.inline.hpp). Their names are numbers that differ between builds. Up to 20 there is no stream of
// fields, and injected fields cannot be found.
func (vm *VM) injectedIn(klass uint64) (offsets []uint64, err error) {
	l := &vm.l.method
	if !l.fieldStream.ok() || !l.arrayU1.ok() || !l.arrayLen.ok() {
		return nil, ErrMissing
	}
	b, err := vm.array(klass+uint64(l.fieldStream), l.arrayU1, 1)
	if err != nil {
		return nil, err
	}
	s := stream{b: b, x: l.unsigned5X}
	n, injected := s.u5(), s.u5()
	if s.bad || n > maxFields || injected > maxFields {
		return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, n)
	}
	for range n + injected {
		f, flags := s.nextField(&l.fieldFlags)
		if s.bad {
			return nil, fmt.Errorf("%w: field stream ends early", ErrBadMethod)
		}
		if flags&l.fieldFlags.injected != 0 && f.offset < maxFieldOffset {
			offsets = append(offsets, uint64(f.offset))
		}
	}
	return offsets, nil
}
