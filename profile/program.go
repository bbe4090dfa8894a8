package profile

import (
	"path"
	"strings"
)

// ProgramName returns the name of a program for users, from its main class or its jar's path: the class, or the file's
// name.
func ProgramName(main string) string {
	switch path.Ext(main) {
	case ".jar", ".war", ".java":
		return path.Base(main)
	}
	if strings.HasPrefix(main, "/") {
		return path.Base(main)
	}
	return main
}
