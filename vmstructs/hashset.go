package vmstructs

import (
	"encoding/binary"
	"fmt"
)

// This file walks a java.util.concurrent.ConcurrentHashMap's key set while the program changes it and
// collectors move it. What could not be read is told in the census.

// tableStep is how much of a table is read at a time.
const tableStep = 8 << 10

// setAt walks the elements of the concurrent hash set that a field at addr refers to.
func (s *search) setAt(addr uint64, each func(obj uint64)) {
	set, err := s.c.vm.oopAt(addr)
	if err == nil && set != 0 && !s.seen[set] {
		s.seen[set] = true
		var m, table uint64
		if m, err = s.field(set, "map"); err == nil && m != 0 {
			if table, err = s.field(m, "table"); err == nil && table != 0 {
				err = s.tableOf(table, each)
			}
		}
	}
	if err != nil {
		s.census.fail(err)
	}
}

// tableOf walks the bins of a table (java.util.concurrent.ConcurrentHashMap: Node[]).
func (s *search) tableOf(table uint64, each func(obj uint64)) error {
	if s.seen[table] {
		return nil // a table that grows leads there from each bin
	}
	s.seen[table] = true
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	h := &s.c.vm.java.heap
	was, err := s.arrayAt(table)
	if err != nil {
		return err
	}
	if was.n > maxTable {
		return fmt.Errorf("%w: a table of %d", ErrBadThread, was.n)
	}
	size := uint64(8)
	if h.narrow {
		size = 4
	}
	at := table + alignUp(h.arrayData, size)
	for left := uint64(was.n) * size; left > 0; {
		b := make([]byte, min(left, tableStep))
		if err := s.c.vm.mem.Bytes(at, b); err != nil {
			return s.c.vm.moved(err)
		}
		for i := uint64(0); i < uint64(len(b)); i += size {
			if isNull(b[i : i+size]) {
				continue
			}
			node, err := s.c.vm.oopIn(b, i)
			if err == nil {
				err = s.bin(node, each)
			}
			if err != nil {
				s.census.fail(err)
			}
		}
		at += uint64(len(b))
		left -= uint64(len(b))
	}
	// Where a collector has moved it meanwhile, other objects may have come to its place.
	if now, err := s.arrayAt(table); err != nil || now != was {
		return ErrMoved
	}
	return nil
}

// arrayHead tells an array from another object.
type arrayHead struct {
	klass uint64 // 0: a collector has moved it away
	n     uint32
}

func (s *search) arrayAt(addr uint64) (a arrayHead, err error) {
	at := s.c.vm.java.heap.arrayLength
	b := make([]byte, max(at+4, klassBytes))
	if err := s.c.vm.mem.Bytes(addr, b); err != nil {
		return a, s.c.vm.moved(err)
	}
	if a.klass = s.c.klasses.klassIn(b); a.klass == 0 {
		return a, ErrMoved
	}
	a.n = binary.LittleEndian.Uint32(b[at:])
	return a, nil
}

func isNull(b []byte) bool {
	if len(b) == 4 {
		return binary.LittleEndian.Uint32(b) == 0
	}
	return word(b) == 0
}

// bin walks one bin: a list of Nodes, a tree of them, which is a list too, or a way to the next table.
func (s *search) bin(node uint64, each func(obj uint64)) error {
	for node != 0 {
		if s.nodes++; s.nodes > maxSetNodes {
			return fmt.Errorf("%w: a set without end", ErrBadThread)
		}
		class, err := s.classOf(node)
		if err != nil {
			return err
		}
		if at, ok := class.fields["nextTable"]; ok {
			table, err := s.c.vm.oopAt(node + at)
			if err != nil || table == 0 {
				return err
			}
			return s.tableOf(table, each)
		}
		if at, ok := class.fields["first"]; ok {
			if node, err = s.c.vm.oopAt(node + at); err != nil {
				return err
			}
			continue
		}
		key, ok1 := class.fields["key"]
		next, ok2 := class.fields["next"]
		if !ok1 || !ok2 {
			return errKind
		}
		obj, err := s.c.vm.oopAt(node + key)
		if err != nil {
			s.census.fail(err)
		} else if obj != 0 {
			each(obj)
		}
		if node, err = s.c.vm.oopAt(node + next); err != nil {
			return err
		}
	}
	return nil
}
