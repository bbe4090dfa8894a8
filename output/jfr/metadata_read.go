package jfr

// maxElementDepth bounds the depth of a file's metadata. The JDK's has 200 types of some 10 fields, and a depth of 6.
const maxElementDepth = 32

type treeReader struct {
	*cursor
	words []string
}

// readTree reads a metadata event's body after its start time. id is the metadata's number.
func readTree(c *cursor) (root *element, id uint64) {
	c.int() // duration
	id = c.int()
	r := treeReader{cursor: c}
	for range c.count(1) {
		r.words = append(r.words, c.text(false).s)
	}
	return r.element(0), id
}

func (r *treeReader) word() string {
	n := r.int()
	if n >= uint64(len(r.words)) {
		r.fail("word %d of %d", n, len(r.words))
		return ""
	}
	return r.words[n]
}

func (r *treeReader) element(depth int) *element {
	if depth > maxElementDepth {
		r.fail("metadata more than %d deep", maxElementDepth)
	}
	e := &element{name: r.word()}
	for range r.count(2) {
		key := r.word()
		e.attributes = append(e.attributes, key, r.word())
	}
	for range r.count(4) {
		if r.bad != nil {
			break
		}
		e.children = append(e.children, r.element(depth+1))
	}
	return e
}
