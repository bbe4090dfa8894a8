package annotate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	maxSourceFiles = 1 << 18 // that are looked at below a folder
	maxSourceLine  = 1 << 12 // bytes of a line that are shown
	maxSource      = 64 << 20
)

// ReadSource gives the lines of a page their text, from a folder with sources: DIR/pkg/File.java, or a folder below DIR
// that has pkg/File.java. The names of package and file come from the target, so nothing outside of the folder is read.
func (p *Page) ReadSource(dir string) error {
	if p.File == "" {
		return errors.New("the class does not say in which file its source is")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	wanted := p.File
	parts := strings.Split(p.Method, ".")
	if n := len(parts) - 2; n > 0 {
		wanted = path.Join(path.Join(parts[:n]...), p.File)
	}
	if !fs.ValidPath(wanted) {
		return fmt.Errorf("%q is no name of a source file", wanted)
	}
	name, err := findSource(root.FS(), wanted)
	if err != nil {
		return err
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", name)
	}
	texts := map[int32]string{}
	for i := range p.Methods {
		for _, l := range p.Methods[i].Lines {
			texts[l.Line] = ""
		}
		for _, r := range p.Methods[i].Rows {
			texts[r.Line] = ""
		}
	}
	if err := readLines(file, texts); err != nil {
		return err
	}
	p.texts = texts
	for i := range p.Methods {
		for k := range p.Methods[i].Lines {
			l := &p.Methods[i].Lines[k]
			l.Source = texts[l.Line]
		}
	}
	return nil
}

// findSource is the file of that name in a folder, or in the first folder below that has it.
func findSource(in fs.FS, wanted string) (found string, err error) {
	if _, err := fs.Stat(in, wanted); err == nil {
		return wanted, nil
	}
	n := 0
	err = fs.WalkDir(in, ".", func(name string, d fs.DirEntry, err error) error {
		if n++; n > maxSourceFiles {
			return fs.SkipAll
		}
		if err != nil {
			return nil // a folder that may not be read
		}
		if !d.IsDir() && strings.HasSuffix(name, "/"+wanted) {
			found = name
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && found == "" {
		err = fmt.Errorf("there is no %s", wanted)
	}
	return found, err
}

// readLines reads the lines that are wanted.
func readLines(from io.Reader, texts map[int32]string) error {
	in := bufio.NewReader(io.LimitReader(from, maxSource))
	for n := int32(1); ; n++ {
		line, err := in.ReadString('\n')
		if _, wanted := texts[n]; wanted {
			line = strings.TrimSpace(line)
			texts[n] = line[:min(len(line), maxSourceLine)]
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
