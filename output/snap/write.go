package snap

import (
	"archive/zip"
	"io"
	"time"

	"goprof/output"
)

// Writer writes the file, one part after another.
type Writer struct{ zip *zip.Writer }

func NewWriter(to io.Writer) *Writer { return &Writer{zip.NewWriter(to)} }

// Add adds a file. All its errors are from writing: other possible failures of write must be excluded before.
func (w *Writer) Add(name string, write func(io.Writer) error) error {
	to, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now().UTC()})
	if err != nil {
		return err
	}
	return write(to)
}

// Close adds the tables of contents, and ends the file.
func (w *Writer) Close(c *Contents) error {
	if err := w.Add(ReadmeFile, c.writeReadme); err != nil {
		return err
	}
	if err := w.Add(ContentsFile, func(to io.Writer) error { return output.WriteJSON(to, c) }); err != nil {
		return err
	}
	return w.zip.Close()
}
