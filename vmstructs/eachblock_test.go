package vmstructs

import "fmt"

// eachBlock calls f with every block of the code cache that is in use. Tests need all of them. If the JVM compiles
// during the walk, eachBlock may end with an error.
func (vm *VM) eachBlock(f func(h *codeHeap, b block) error) error {
	buf := make([]byte, vm.l.code.blockSpan())
	for i := range vm.heaps {
		h := &vm.heaps[i]
		for addr := h.low; addr < h.high; {
			if err := vm.mem.Bytes(addr, buf); err != nil {
				return err
			}
			b := vm.parseBlock(h, addr, buf)
			if b.size == 0 {
				break // this block and all blocks after it were never used
			}
			if b.size > h.high-addr {
				return fmt.Errorf("%w: block at %#x of %#x bytes", ErrBadBlob, addr, b.size)
			}
			if b.used {
				if err := f(h, b); err != nil {
					return err
				}
			}
			addr += b.size
		}
	}
	return nil
}
