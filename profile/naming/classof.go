package naming

import "strings"

// ClassOf returns the name of a class as users know it. The text comes from the JVM: it has slashes, and for arrays it
// is a descriptor (JVMS 4.3.2).
func ClassOf(class string) string {
	dims := len(class) - len(strings.TrimLeft(class, "["))
	if dims > 0 {
		class = elementName(class[dims:])
	}
	return Class(strings.ReplaceAll(class, "/", ".")) + strings.Repeat("[]", dims)
}

func elementName(descriptor string) string {
	switch descriptor {
	case "Z":
		return "boolean"
	case "B":
		return "byte"
	case "C":
		return "char"
	case "S":
		return "short"
	case "I":
		return "int"
	case "J":
		return "long"
	case "F":
		return "float"
	case "D":
		return "double"
	}
	return strings.TrimSuffix(strings.TrimPrefix(descriptor, "L"), ";")
}
