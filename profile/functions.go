package profile

import "hash/maphash"

const (
	// maxFuncs bounds the different functions in a profile: some 150 bytes each, including the name.
	maxFuncs = 1 << 17
	// maxIdentities bounds caches of Funcs.
	maxIdentities = 1 << 16
)

// functions numbers functions. Different Funcs with the same content are one function, because a walker that drops its
// names and reads them again must not split a tree.
type functions struct {
	list  []*Func
	seed  maphash.Seed
	index []int32         // number + 1, by content: open addressing, at most three quarters full
	byPtr map[*Func]int32 // by identity, a cache
}

// find returns a function's number. If the function is new and there is no room, ok is false.
func (f *functions) find(fn *Func, most int) (id int32, ok bool) {
	if id, ok := f.byPtr[fn]; ok {
		return id, true
	}
	at := f.place(fn)
	for f.index[at] != 0 && *f.list[f.index[at]-1] != *fn {
		at = (at + 1) & (len(f.index) - 1)
	}
	if id = f.index[at] - 1; id < 0 {
		if len(f.list) >= most {
			return 0, false
		}
		id = int32(len(f.list))
		f.list = append(f.list, fn)
		f.index[at] = id + 1
		f.grow()
	}
	if len(f.byPtr) >= maxIdentities {
		clear(f.byPtr)
	}
	f.byPtr[fn] = id
	return id, true
}

func (f *functions) grow() {
	if len(f.list) <= len(f.index)/4*3 {
		return
	}
	f.index = make([]int32, 2*len(f.index))
	for id, fn := range f.list {
		at := f.place(fn)
		for f.index[at] != 0 {
			at = (at + 1) & (len(f.index) - 1)
		}
		f.index[at] = int32(id) + 1
	}
}

func (f *functions) place(fn *Func) int {
	return int(maphash.Comparable(f.seed, *fn)) & (len(f.index) - 1)
}
