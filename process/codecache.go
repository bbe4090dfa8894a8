package process

// maxCodes bounds each half of the cache for results of Code.
const maxCodes = 1 << 15

type codeKey struct {
	pc    uint64
	exact bool
}

// codeCache caches the results of Code in two halves. When the young half is full, it becomes the old half. Results of
// the previous old half that were not used again are dropped.
type codeCache struct {
	young, old map[codeKey]Code
}

func (c *codeCache) init() {
	c.young, c.old = map[codeKey]Code{}, map[codeKey]Code{}
}

func (c *codeCache) clear() {
	clear(c.young)
	clear(c.old)
}

func (c *codeCache) get(k codeKey) (Code, bool) {
	if code, ok := c.young[k]; ok {
		return code, true
	}
	code, ok := c.old[k]
	if ok {
		c.put(k, code)
	}
	return code, ok
}

func (c *codeCache) put(k codeKey, code Code) {
	if len(c.young) >= maxCodes {
		c.young, c.old = c.old, c.young
		clear(c.young)
	}
	c.young[k] = code
}
