package vmstructs

import (
	"encoding/binary"
	"fmt"
)

// This file walks the key set of a java.util.concurrent.ConcurrentHashMap, while the program changes the map and
// collectors move it. The census counts everything that could not be read.

const tableStep = 8 << 10

// set walks the elements of a concurrent hash set. Address 0 stands for a set that the JVM has not made yet.
func (s *search) set(set uint64, each func(obj uint64)) {
	if set == 0 || s.seen[set] {
		return
	}
	s.seen[set] = true
	m, err := s.field(set, "map")
	var table uint64
	if err == nil && m != 0 {
		table, err = s.field(m, "table")
	}
	if err == nil && table != 0 {
		err = s.tableOf(table, each)
	}
	if err != nil {
		s.census.fail(err)
	}
}

// tableOf walks the bins of a table (java.util.concurrent.ConcurrentHashMap: Node[]).
func (s *search) tableOf(table uint64, each func(obj uint64)) error {
	if s.seen[table] {
		return nil // each bin of a growing table leads to the next table
	}
	s.seen[table] = true
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	was, at, size, err := s.slotsOf(table)
	if err != nil {
		return err
	}
	if s.slots += int(was.n); s.slots > maxSlots {
		s.spent = true
		return fmt.Errorf("%w: tables of %d", ErrBadThread, s.slots)
	}
	for left := uint64(was.n) * size; left > 0 && !s.spent; {
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
				err = s.bin(node, func(next uint64) error { return s.tableOf(next, each) }, each)
			}
			if err != nil {
				s.census.fail(err)
			}
		}
		at += uint64(len(b))
		left -= uint64(len(b))
	}
	// If a collector has moved the table during the walk, other objects may have its address.
	if now, err := s.arrayAt(table); err != nil || now != was {
		return ErrMoved
	}
	return nil
}

// slotsOf returns the address of a table's slots, and the size of each.
func (s *search) slotsOf(table uint64) (head arrayHead, at, size uint64, err error) {
	h := &s.c.vm.java.heap
	if size = 8; h.narrow {
		size = 4
	}
	head, err = s.arrayAt(table)
	return head, table + alignUp(h.arrayData, size), size, err
}

// arrayHead distinguishes an array from another object.
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

// bin walks one bin: a list of Nodes, or a tree of Nodes, which is a list too. If the bin's elements have moved to the
// next table, bin calls forward.
func (s *search) bin(node uint64, forward func(table uint64) error, each func(obj uint64)) error {
	for node != 0 {
		if s.spent {
			return nil // the census already reports it
		}
		if s.nodes++; s.nodes > maxSetNodes {
			s.spent = true
			return fmt.Errorf("%w: a set without end", ErrBadThread)
		}
		o, err := s.read(node)
		if err != nil {
			return err
		}
		if table, ok, err := o.ref("nextTable"); ok {
			if err != nil || table == 0 {
				return err
			}
			return forward(table)
		}
		if first, ok, err := o.ref("first"); ok {
			if err != nil {
				return err
			}
			node = first
			continue
		}
		obj, ok1, err1 := o.ref("key")
		next, ok2, err2 := o.ref("next")
		if !ok1 || !ok2 {
			return errKind
		}
		if err1 != nil {
			s.census.fail(err1)
		} else if obj != 0 {
			each(obj)
		}
		if err2 != nil {
			return err2
		}
		node = next
	}
	return nil
}
