package exit

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// CommandLine returns a command in the syntax of a shell.
func CommandLine(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; !plainWord.MatchString(a) {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
