// Package sole makes sure that one goprof alone uses a folder, and lets the next one take it over.
//
// What you give: a folder. What you get: a lock on it, or InUse. The kernel lets go of the lock when goprof ends, however
// it ends. On systems that have no such lock all get one.
//
// A goprof that is to take over asks the one that has the lock to end at a moment that it names (handover.go).
package sole

// InUse says that another goprof uses a folder.
type InUse struct{ Path string }

func (e *InUse) Error() string {
	return "another goprof uses " + e.Path + ": stop it, or name another folder"
}

// LockName is the usual name of the file that is locked.
const LockName = ".goprof-lock"
