package naming

import (
	"regexp"
	"strings"
)

// Compiled Ruby has a method for each scope (JRuby's JavaNameMangler, encodeScopeForBacktrace; a number follows). Call
// sites are also methods: invokeOther3:each.
var (
	rubyScope = regexp.MustCompile(`^RUBY\$(method|block|class|module)\$([^$]+)\$[0-9]+$`)
	rubyBody  = regexp.MustCompile(`^RUBY\$(script|metaclass)(?:\$[0-9]+)?$`)
	rubySite  = regexp.MustCompile(`^(invoke[A-Za-z]*[0-9]+:)(.+)$`)
	// JRuby 1.7 has a class for each method, named after a hash of its source.
	rubyJIT   = regexp.MustCompile(`^rubyjit\.(.+)\$\$(.+)_[0-9A-Fa-f]{40}[0-9]*$`)
	rubyBlock = regexp.MustCompile(`^block_[0-9]+\$RUBY\$`)
)

// ruby returns the names that Ruby's backtraces have: the method, "block in" it, "<class:Name>", "<top>". The class is
// that of the script, because compiled Ruby does not have the Ruby class of a method.
func ruby(class, method string) (string, string) {
	if m := rubyJIT.FindStringSubmatch(class); m != nil {
		return rubyJITted(m[1], m[2], method)
	}
	if m := rubyBody.FindStringSubmatch(method); m != nil {
		return class, rubyBodies[m[1]]
	}
	if m := rubySite.FindStringSubmatch(method); m != nil {
		return class, m[1] + rubyName(m[2])
	}
	m := rubyScope.FindStringSubmatch(method)
	if m == nil {
		return class, method
	}
	switch name := rubyName(m[2]); m[1] {
	case "method":
		return class, name
	case "block":
		return class, "block in " + name
	default:
		return class, "<" + m[1] + ":" + name + ">"
	}
}

var rubyBodies = map[string]string{"script": "<top>", "metaclass": "singleton class"}

func rubyJITted(class, name, method string) (string, string) {
	switch {
	case method == "__file__":
		return class, name
	case rubyBlock.MatchString(method):
		return class, "block in " + name
	}
	return class + "$$" + name, method
}

// rubyEscapes are the escapes of characters that a JVM does not allow in names (JVM specification, 4.2.2; John Rose,
// Symbolic Freedom in the VM).
var rubyEscapes = strings.NewReplacer(`\-`, `\`, `\|`, "/", `\,`, ".", `\?`, ";", `\!`, ":", `\%`, "$", `\{`, "[", `\}`,
	"]",
	`\^`, "<", `\_`, ">")

// rubyName undoes the escapes. A name has escapes only if it begins with the escape for nothing.
func rubyName(name string) string {
	if plain, ok := strings.CutPrefix(name, `\=`); ok && plain != "" {
		return rubyEscapes.Replace(plain)
	}
	return name
}
