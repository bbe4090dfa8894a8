//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/profile"
	"goprof/session"
)

// maxNotes limits how many libraries have a note.
const maxNotes = 5

// Notes reports, after a look, that the process is frozen, and which names are missing because files could not be
// opened.
func (h Host) Notes(s *session.Session) []profile.Note {
	notes := h.notes(s.Process)
	if f := s.Frozen(); f != nil {
		notes = append(notes, profile.Note{Name: "frozen", Remedy: f.Thaw(),
			Text: "the process is " + f.Text() + ": no thread runs"})
	}
	return notes
}

func (h Host) notes(p *process.Process) []profile.Note {
	var notes []profile.Note
	for _, u := range p.Unopened() {
		if len(notes) == maxNotes {
			break
		}
		notes = append(notes, h.noteOf(u))
	}
	return notes
}

// noteOf makes the note on a library whose file goprof cannot open. The loader maps the dynamic symbols and the unwind
// rules, but not the full symbol table.
func (h Host) noteOf(u process.Unopened) profile.Note {
	n := profile.Note{Remedy: h.mapFilesRemedy()}
	var why string
	switch {
	case errors.Is(u.Err, process.ErrOtherFile):
		n.Name, why = "library-replaced", "another file has taken its place since it was loaded"
	case errors.Is(u.Err, process.ErrSilent):
		return profile.Note{Name: "library-hangs", Remedy: "mount | grep -E 'fuse|nfs'",
			Text: u.Path + ": its file system does not answer; its functions have no names, and stacks may end there"}
	case errors.Is(u.Err, fs.ErrNotExist):
		n.Name, why = "library-deleted", "its file is not there any more"
	default:
		n.Name, why = "library-unreadable", "its file cannot be opened"
	}
	n.Text = fmt.Sprintf("%s: %s, and only its memory can be read: functions that it does not export have no names, "+
		"stacks are whole", u.Path, why)
	return n
}

// mapFilesRemedy lets goprof open mapped files that have been renamed or deleted (fs/proc/base.c,
// proc_map_files_get_link: this needs capabilities in the first user namespace).
func (h Host) mapFilesRemedy() string {
	self, ok := h.status(0)
	switch {
	case ok && h.nested("user"):
		return "goprof as root of the host"
	case ok && self.EUID == 0:
		return "docker run --cap-add CHECKPOINT_RESTORE --cap-add SYS_PTRACE --pid container:NAME ..., or goprof on the host"
	}
	return h.sudo()
}

func (h Host) opensMapped() bool {
	if h.Proc == "" {
		return opensMappedFile()
	}
	self, _ := h.status(0)
	able := self.Can(unix.CAP_SYS_ADMIN) || self.Can(unix.CAP_CHECKPOINT_RESTORE)
	return able && !h.nested("user")
}
