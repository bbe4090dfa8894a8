//go:build linux

// Package diagnose tells a user what goprof can do here. Host.JVMs lists the JVMs of the machine, Host.Examine is the
// doctor, Host.Explain turns an error of package session into its cause and the command that mends it, and
// Host.ChooseEngine finds the engine that this machine permits.
//
// It only reads: /proc, and of JVMs what attaching reads. No thread is stopped. What a process says of itself (its
// command line, its cgroup, names of files) may hold any bytes. It is bounded where it is read, and code that prints it
// must make it printable. A fact that cannot be found out is left out, or the check says that it is not known: it is
// never an error.
//
// It stands above package session, which knows nothing of it: a recording needs no diagnosis.
package diagnose
