package naming

import "strings"

// OfLibrary reports whether a method is of the class library, and not the program's own.
func OfLibrary(method string) bool {
	for _, prefix := range []string{"java.", "jdk.", "sun.", "javax.", "com.sun."} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}
