package jfr

// numberTable finds numbers by hashes of 128 bits, with open addressing, at most half full. A number is not 0.
type numberTable struct {
	slots []numbered
	used  int
}

type numbered struct {
	hash   [2]uint64
	number uint64 // 0 in an empty entry
}

// find returns a pointer to the number of a hash. The number of a new hash is 0, and the caller must set it.
func (t *numberTable) find(hash [2]uint64) *uint64 {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	at := t.slot(hash)
	if at.number == 0 {
		at.hash = hash
		t.used++
	}
	return &at.number
}

// get returns the number of a hash, or 0 if the table does not have the hash.
func (t *numberTable) get(hash [2]uint64) uint64 {
	if t.used == 0 {
		return 0
	}
	return t.slot(hash).number
}

// slot returns the slot of a hash, or an empty slot for it. Some hashes are consecutive numbers, so they are mixed
// first.
func (t *numberTable) slot(hash [2]uint64) *numbered {
	h := (hash[0] ^ hash[1]) * 0x9e3779b97f4a7c15
	most := len(t.slots) - 1
	for i := int(h>>32) & most; ; i = (i + 1) & most {
		if at := &t.slots[i]; at.number == 0 || at.hash == hash {
			return at
		}
	}
}

func (t *numberTable) grow() {
	old := t.slots
	t.slots = make([]numbered, max(2*len(old), firstSlots))
	for i := range old {
		if old[i].number != 0 {
			*t.slot(old[i].hash) = old[i]
		}
	}
}

func (t *numberTable) reset() {
	clear(t.slots)
	t.used = 0
}
