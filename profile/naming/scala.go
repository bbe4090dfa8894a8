package naming

import (
	"regexp"
	"strings"
)

// scalaOperators are the spellings of operator characters in class files (scala.reflect.NameTransformer). No key is the
// beginning of another.
var scalaOperators = map[string]string{
	"$tilde": "~", "$eq": "=", "$less": "<", "$greater": ">", "$bang": "!", "$hash": "#", "$percent": "%",
	"$up": "^", "$amp": "&", "$bar": "|", "$times": "*", "$div": "/", "$plus": "+", "$minus": "-",
	"$colon": ":", "$qmark": "?", "$at": "@", "$bslash": `\`,
}

// Specialised classes and methods end in the types that they are for (SpecializeTypes.scala): first those of the
// method's own parameters, then those of the class's, one letter each.
var specialised = regexp.MustCompile(`\$m[VZBCSIJFD]*c[VZBCSIJFD]*\$sp$`)

// scala decodes operators, and removes the marks of specialisation and the class name that the compiler puts before a
// private name. The names of lambdas' bodies ($anonfun$main$1) and of static methods of traits (greet$) stay as they
// are. So does the "$" of an object's class: the companion class has the same name without it, and often the same
// methods.
func scala(class, method string) (string, string) {
	method = specialised.ReplaceAllString(method, "")
	method = unexpanded(class, method)
	class = specialised.ReplaceAllString(class, "")
	pkg := strings.LastIndexByte(class, '.') + 1
	return class[:pkg] + decoded(class[pkg:]), decoded(method)
}

// unexpanded converts org$apache$Executor$$run to run, if it is a method of org.apache.Executor.
func unexpanded(class, method string) string {
	prefix := strings.ReplaceAll(strings.TrimSuffix(class, "$"), ".", "$") + "$$"
	if plain := strings.TrimPrefix(method, prefix); plain != "" {
		return plain
	}
	return method
}

// decoded replaces the names of operators with their characters. Such a name is at the beginning of a part or after
// another operator, and no letter follows it: Dir$up is a class "up" in Dir, and not Dir^.
func decoded(name string) string {
	if !strings.Contains(name, "$") {
		return name
	}
	var b strings.Builder
	begins := true
	for i := 0; i < len(name); {
		if code, op := operatorAt(name[i:]); op != "" && begins {
			b.WriteString(op)
			i += len(code)
			continue
		}
		begins = name[i] == '$' || name[i] == '_'
		b.WriteByte(name[i])
		i++
	}
	return b.String()
}

func operatorAt(s string) (code, op string) {
	if s[0] != '$' {
		return "", ""
	}
	end := 1
	for end < len(s) && s[end] >= 'a' && s[end] <= 'z' {
		end++
	}
	if end < len(s) && isWord(s[end]) {
		return "", ""
	}
	return s[:end], scalaOperators[s[:end]]
}

func isWord(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
