package profile

import (
	"path"
	"strings"
)

// ProgramName returns the name of a program for users, by its main class or by its jar's path: the class, or the file's
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
