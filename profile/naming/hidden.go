package naming

import (
	"regexp"
	"strings"
)

// A hidden class's name ends in "+" and the address of its Klass (classfile/classFileParser.cpp,
// mangle_hidden_class_name; JDK 15 on). jstack and stack traces show "/" for the "+". Up to JDK 14
// the classes of lambdas are VM-anonymous: their names have no address inside the JVM.
var hiddenAddress = regexp.MustCompile(`[+/]0x[0-9a-f]{1,16}$`)

// Classes that are numbered, or named by chance, in the order in which they come to be:
//
//   - lambdas: Outer$$Lambda$12 (InnerClassLambdaMetafactory; JDK 21 leaves the number out)
//   - what reflection generates for a method that is called often (MethodAccessorGenerator, up to JDK 21)
//   - Byte Buddy's NamingStrategy.SuffixingRandom with its own suffix, Mockito's and Hibernate's
var (
	lambdaNumber   = regexp.MustCompile(`(\$\$Lambda)\$[0-9]+$`)
	accessorNumber = regexp.MustCompile(`^((?:sun|jdk\.internal)\.reflect\.Generated(?:Method|Constructor|SerializationConstructor)Accessor)[0-9]+$`)
	randomSuffix   = regexp.MustCompile(`(\$(?:ByteBuddy|auxiliary|HibernateProxy|HibernateBasicProxy|HibernateAccessOptimizer))\$[0-9A-Za-z]{8}$`)
	mockNumber     = regexp.MustCompile(`(\$MockitoMock)\$(?:[0-9]{1,10}|[0-9A-Za-z]{8})$`)
)

// hidden takes off a class's name what the next run would name otherwise. $Proxy12 stays: there
// is one for each set of interfaces, and the number is all that tells them apart.
func hidden(class string) string {
	class = hiddenAddress.ReplaceAllString(class, "")
	if !strings.Contains(class, "$") && !strings.Contains(class, "reflect.Generated") {
		return class
	}
	for _, chance := range []*regexp.Regexp{lambdaNumber, accessorNumber, randomSuffix, mockNumber} {
		class = chance.ReplaceAllString(class, "$1")
	}
	return class
}
