package naming

import (
	"slices"
	"strings"
)

// OfLibrary reports whether a method belongs to the class library, and not to the program.
func OfLibrary(method string) bool {
	return BeginsWith(method, "java.", "jdk.", "sun.", "javax.", "com.sun.")
}

// BeginsWith reports whether a name begins with one of the prefixes.
func BeginsWith(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
