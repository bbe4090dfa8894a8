//go:build linux

// Package diagnose finds out what goprof can do on this machine. Host.JVMs lists the JVMs, Host.Examine is the command
// doctor, Host.Explain turns an error of package session into its cause and the command that mends it, and
// Host.ChooseEngine finds an engine that works here.
//
// It only reads /proc, and the same memory of JVMs as attaching does. No thread is stopped. Texts that a process
// chooses (its command line, its cgroup, names of files) may hold any bytes. They are bounded where they are read, and
// code that prints them must make them printable. A fact that cannot be found out is left out, or the check says that
// it is not known. That is never an error.
//
// It imports package session, which does not import it: a recording needs no diagnosis.
package diagnose
