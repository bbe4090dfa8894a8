package profile

// Cached returns the value of a key, and makes it if needed. most bounds the map: if the map is full, Cached empties it
// first.
func Cached[K comparable, V any](m map[K]V, most int, key K, make func() V) V {
	v, ok := m[key]
	if !ok {
		if len(m) >= most {
			clear(m)
		}
		v = make()
		m[key] = v
	}
	return v
}
