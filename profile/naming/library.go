package naming

import "strings"

// OfLibrary reports whether a method belongs to the class library, and not to the program.
func OfLibrary(method string) bool {
	for _, prefix := range []string{"java.", "jdk.", "sun.", "javax.", "com.sun."} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}
