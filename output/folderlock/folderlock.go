// Package folderlock makes sure that only one goprof uses a folder, and lets the next one take it over.
//
// It takes a folder, and returns a lock on it, or InUse. The kernel releases the lock when goprof ends, however it
// ends. On systems without such locks, every goprof may use the folder.
//
// A goprof that takes over asks the owner of the lock to end at a given time (handover.go).
package folderlock

// InUse: another goprof uses the folder.
type InUse struct{ Path string }

func (e *InUse) Error() string {
	return "another goprof uses " + e.Path + ": stop it, or name another folder"
}

// LockName is the usual name of the locked file.
const LockName = ".goprof-lock"
