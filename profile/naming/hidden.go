package naming

import (
	"regexp"
	"strings"
)

// chance is a random part of a class's name. form is only tried on names that contain sign.
type chance struct {
	sign string
	form *regexp.Regexp // its first group is kept
}

// These names contain a number that is random, or depends on the order in which the JVM makes them:
//
//   - Hidden classes: the name ends in "+" and the address of its Klass (classfile/classFileParser.cpp,
//     mangle_hidden_class_name; JDK 15 on). jstack and stack traces show "/" for the "+". Up to JDK 14 the classes of
//     lambdas are VM-anonymous: their names have no address inside the JVM.
//   - Lambdas: Outer$$Lambda$12 (InnerClassLambdaMetafactory; JDK 21 leaves the number out).
//   - Classes that reflection generates for a method that is called often (MethodAccessorGenerator, up to JDK 21).
//   - Classes of Byte Buddy's NamingStrategy.SuffixingRandom with its own suffix, Hibernate's and Mockito's.
var chances = []chance{
	{"0x", regexp.MustCompile(`^(.*)[+/]0x[0-9a-f]{1,16}$`)},
	{"$$Lambda$", regexp.MustCompile(`^(.*\$\$Lambda)\$[0-9]+$`)},
	{"reflect.Generated", regexp.MustCompile(`^((?:sun|jdk\.internal)\.reflect\.Generated(?:Method|Constructor|SerializationConstructor)Accessor)[0-9]+$`)},
	{"$ByteBuddy$", regexp.MustCompile(`^(.*\$ByteBuddy)\$[0-9A-Za-z]{8}$`)},
	{"$auxiliary$", regexp.MustCompile(`^(.*\$auxiliary)\$[0-9A-Za-z]{8}$`)},
	{"$Hibernate", regexp.MustCompile(`^(.*\$Hibernate(?:Proxy|BasicProxy|AccessOptimizer))\$[0-9A-Za-z]{8}$`)},
	{"$MockitoMock$", regexp.MustCompile(`^(.*\$MockitoMock)\$(?:[0-9]{1,10}|[0-9A-Za-z]{8})$`)},
}

// hidden removes the parts of a class's name that differ from run to run. $Proxy12 stays: there is one for each set of
// interfaces, and only the number distinguishes them.
func hidden(class string) string {
	for i := range chances {
		if c := &chances[i]; strings.Contains(class, c.sign) {
			class = c.form.ReplaceAllString(class, "$1")
		}
	}
	return class
}
