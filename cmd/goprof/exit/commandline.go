package main

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// commandLine returns how goprof was called, as a shell reads it.
func commandLine(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; !plainWord.MatchString(a) {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
