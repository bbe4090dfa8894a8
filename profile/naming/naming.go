// Package naming makes the JVM's names readable. It removes the parts of a name that a compiler or the JVM added, so
// that the same piece of code has the same name in every run.
//
// The rule. A name is changed only if two signs agree that no programmer wrote it. The first sign is the spelling. The
// second is the origin: the name has a form that only the JVM makes, or the class's source file is in the language
// whose compiler makes such names. Parts that distinguish two pieces of code stay, except numbers that depend on the
// order in which the JVM met them. Everything else is spelt as in the language's own stack traces.
//
// The package also knows which frames only pass calls on (plumbing.go), and which threads are one pool (threads.go).
// Names come from the target and may contain any bytes: nothing panics, and no name becomes longer. Package output
// replaces characters that a format cannot hold.
package naming

import "path"

// Method returns the readable name of a Java method, with its class. The class has dots. file is the class's own entry
// for its source file, "" if there is none.
func Method(class, method, file string) string {
	class = hidden(class)
	switch path.Ext(file) {
	case ".kt", ".kts":
		class, method = kotlin(class, method, file)
	case ".scala":
		class, method = scala(class, method)
	case ".rb":
		class, method = ruby(class, method)
	}
	return class + "." + method
}
