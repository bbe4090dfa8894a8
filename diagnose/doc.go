//go:build linux

// Package diagnose tells a user what goprof can do here. Host.JVMs lists the JVMs of the machine, Host.Examine is the
// doctor, Host.Explain turns an error of package session into its cause and the command that mends it, and
// Host.ChooseEngine finds the engine that this machine permits.
//
// It only reads /proc, and the same memory of JVMs as attaching does. No thread is stopped. Texts that a process
// chooses (its command line, its cgroup, names of files) may hold any bytes. They are bounded where they are read, and
// code that prints them must make them printable. If a fact cannot be found out, it is left out, or the check says that
// it is not known. That is never an error.
//
// It imports package session, which does not depend on it: a recording needs no diagnosis.
package diagnose
