// Package naming makes the JVM's names readable. It removes the parts of a name that a compiler or the JVM added, so
// that the same piece of code has the same name in every run.
//
// The rule. A name is changed only where two signs agree that no programmer wrote it so. The first sign is the
// spelling. The second is its author: the JVM, by a form that no source can have, or the compiler of the language that
// the class's source file is written in. Parts that distinguish two pieces of code stay, except numbers that depend on
// the order in which the JVM met them. Everything else is spelt as the language's own stack traces spell it.
//
// It also knows which frames only pass calls on (plumbing.go), and which threads are one pool (threads.go). Names come
// from the target and are only text here: whatever bytes they hold, nothing panics, and no name grows. Package output
// replaces what a format cannot hold.
package naming

import "path"

// Method is the readable name of a Java method, with its class. The class has dots. File is the name of
// its source file as the class says, "" if it does not.
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
