package outfile

import (
	"io/fs"
	"os"
)

// Made is a written file that the caller may delete later. It keeps the file's folder open.
type Made struct {
	f    *File
	info fs.FileInfo
}

// Made returns the file as it is now. It is nil if it is not a regular file.
func (f *File) Made() *Made {
	if f.folder == nil {
		return nil
	}
	info, err := f.folder.Lstat(f.base)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return &Made{f, info}
}

func (m *Made) Name() string { return m.f.name }

// Delete deletes the file, unless another file has taken its name.
func (m *Made) Delete() error {
	now, err := m.f.folder.Lstat(m.f.base)
	if err != nil || !os.SameFile(now, m.info) {
		return nil
	}
	return m.f.folder.Remove(m.f.base)
}
