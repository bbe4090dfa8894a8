package diff

import (
	"maps"
	"slices"

	"goprof/output"
)

// items are what is compared: each key of the report by its self and by its total, and each path. They are numbered in
// this order: self, total, nodes.
type items struct {
	tree  *tree
	keys  []int32 // of nodes
	names []string

	list  []item  // the compared ones
	place []int32 // the index of an item in list, -1 if it is not there
	seen  []int32 // by key: the last walk that found it
	walk  int32
}

type item struct {
	number  int32
	sum     [sides]int64
	squares [sides]float64 // of standings
	blocks  [sides][levels]products
	guesses moved
	prints  uint64 // a fingerprint of the nodes with its samples: items with equal prints have the same samples
}

// maxItems roughly bounds the compared items. The items with the fewest samples are left out first.
const maxItems = 1 << 18

func newItems(t *tree, by string, key func(output.Name) string) *items {
	it := &items{tree: t, keys: make([]int32, len(t.nodes))}
	byName := make(map[string]int32)
	ofLabel := make([]int32, len(t.labels))
	for i, l := range t.labels {
		name := key(l)
		id, ok := byName[name]
		if !ok {
			id = int32(len(it.names))
			byName[name] = id
			it.names = append(it.names, name)
		}
		ofLabel[i] = id
	}
	owners := output.Owners(by, t.labels, len(t.nodes), func(n int32) (parent, label int32) {
		return t.nodes[n].parent, t.nodes[n].label
	})
	for n := 1; n < len(t.nodes); n++ {
		it.keys[n] = ofLabel[t.nodes[owners[n]].label]
	}
	it.seen = make([]int32, len(it.names))
	it.choose()
	it.guesses()
	return it
}

// each calls visit for all items that contain a node's own samples.
func (it *items) each(n int32, visit func(number int32)) {
	keys := int32(len(it.names))
	visit(it.keys[n])
	it.walk++
	for at := n; at != 0; at = it.tree.nodes[at].parent {
		if key := it.keys[at]; it.seen[key] != it.walk {
			it.seen[key] = it.walk
			visit(keys + key)
		}
		visit(2*keys + at)
	}
}

// name returns the key of an item; for a path, the key of its last frame.
func (it *items) name(number int32) string {
	keys := int32(len(it.names))
	if number < 2*keys {
		return it.names[number%keys]
	}
	return it.names[it.keys[number-2*keys]]
}

// choose lists the items that have enough samples, with their sums.
func (it *items) choose() {
	counts := make([]int64, 2*len(it.names)+len(it.tree.nodes))
	it.eachNode(func(n int32, nd *node) {
		it.each(n, func(number int32) { counts[number] += nd.self[Before] + nd.self[After] })
	})
	least := int64(1)
	for atLeast(counts, least) > maxItems {
		least *= 2
	}
	it.place = make([]int32, len(counts))
	for number, count := range counts {
		it.place[number] = -1
		if count >= least {
			it.place[number] = int32(len(it.list))
			it.list = append(it.list, item{number: int32(number)})
		}
	}
	it.eachNode(func(n int32, nd *node) {
		mark := fingerprint(uint64(n))
		it.each(n, func(number int32) {
			if p := it.place[number]; p >= 0 {
				i := &it.list[p]
				i.prints += mark
				for s := range sides {
					i.sum[s] += nd.self[s]
					i.squares[s] += nd.squares[s]
				}
			}
		})
	})
}

func (it *items) eachNode(visit func(n int32, nd *node)) {
	for n := 1; n < len(it.tree.nodes); n++ {
		if nd := &it.tree.nodes[n]; nd.self[Before]+nd.self[After] > 0 {
			visit(int32(n), nd)
		}
	}
}

func atLeast(counts []int64, least int64) (n int) {
	for _, c := range counts {
		if c >= least {
			n++
		}
	}
	return n
}

// fingerprint is splitmix64. Two different sets practically never have equal sums of fingerprints.
func fingerprint(n uint64) uint64 {
	n = (n + 1) * 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// blocks is the number of parts that the time of a recording is cut into. Each further level has half as many.
const (
	blocks = 64
	levels = 5
)

// shifts are how many times the number of blocks is halved at each level. At the last level a block is a recording.
var shifts = [levels]int{0, 1, 2, 3, 6}

const wholeRuns = levels - 1

// products are sums over blocks: of the item's squared count, and of its count times the count of all items.
type products struct{ squares, withAll float64 }

// addBlocks sums up the items' counts in the blocks of one recording.
func (it *items) addBlocks(of Side, s *side) (all [levels]float64) {
	cells := slices.Sorted(maps.Keys(s.cells))
	for level := range levels {
		part := partSums{it: it, of: of, level: level, sums: make([]float64, len(it.list))}
		for _, c := range cells {
			part.add(int32(c>>32)>>shifts[level], int32(c), float64(s.cells[c]))
		}
		part.end()
		all[level] = part.squares
	}
	return all
}

type partSums struct {
	it      *items
	of      Side
	level   int
	at      int32
	all     float64
	sums    []float64 // of items
	touched []int32   // the items whose sum is not 0
	squares float64   // of the counts of all items
}

func (p *partSums) add(block, node int32, count float64) {
	if block != p.at {
		p.end()
		p.at = block
	}
	p.all += count
	p.it.each(node, func(number int32) {
		if i := p.it.place[number]; i >= 0 {
			if p.sums[i] == 0 {
				p.touched = append(p.touched, i)
			}
			p.sums[i] += count
		}
	})
}

func (p *partSums) end() {
	for _, i := range p.touched {
		sum, to := p.sums[i], &p.it.list[i].blocks[p.of][p.level]
		to.squares += sum * sum
		to.withAll += sum * p.all
		p.sums[i] = 0
	}
	p.squares += p.all * p.all
	p.all, p.touched = 0, p.touched[:0]
}
