package annotate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const (
	maxSourceFiles = 1 << 18 // examined in a folder
	maxSourceLine  = 1 << 12 // bytes shown of a line
	maxSource      = 64 << 20
	maxHead        = 1 << 16 // bytes searched for the package
	maxFits        = 4       // files named if several fit
)

// ReadSource adds the source text to the lines of a page. dir is a folder with sources: dir/pkg/File.java, or a folder
// below dir that has pkg/File.java. The names of package and file come from the target, so nothing outside of dir is
// read. A note names the file. If several files fit, no text is shown, and the note says so.
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
	found, all, err := findSource(root, wanted)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return fmt.Errorf("there is no %s in which the class can be", wanted)
	case len(found) > 1:
		p.Notes = append(p.Notes, fmt.Sprintf("the source is not shown: several files fit equally: %s",
			strings.Join(found, ", ")))
		return nil
	}
	file, err := openRegular(root, found[0])
	if err != nil {
		return err
	}
	defer file.Close()
	note := "source: " + filepath.Join(dir, found[0])
	if !all {
		note += "; the folder has too many files to look at all, so another may fit, too"
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
	p.Notes = append(p.Notes, note)
	for i := range p.Methods {
		for k := range p.Methods[i].Lines {
			l := &p.Methods[i].Lines[k]
			l.Source = texts[l.Line]
		}
	}
	return nil
}

// findSource lists the files that may hold the source: dir/pkg/File.java if the class can be in it, and otherwise up to
// maxFits files whose path ends with pkg/File.java. all reports whether the whole folder was searched.
func findSource(root *os.Root, wanted string) (found []string, all bool, err error) {
	if mayDeclare(root, wanted, wanted) {
		return []string{wanted}, true, nil
	}
	n := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if n++; n > maxSourceFiles || len(found) == maxFits {
			return fs.SkipAll
		}
		if err != nil {
			return nil // an unreadable folder
		}
		if !d.IsDir() && strings.HasSuffix(name, "/"+wanted) && mayDeclare(root, name, wanted) {
			found = append(found, name)
		}
		return nil
	})
	return found, n <= maxSourceFiles, err
}

// packageLine matches the package declaration of a file in Java, Kotlin or Groovy.
var packageLine = regexp.MustCompile(`(?m)^\x{FEFF}?\s*package\s+([\w.$]+)\s*;?\s*(?://.*)?$`)

// mayDeclare reports whether the file can declare a class of wanted's package. The end of a file's path fits several
// packages: b/Two.java is also the end of a/b/Two.java.
func mayDeclare(root *os.Root, name, wanted string) bool {
	file, err := openRegular(root, name)
	if err != nil {
		return false
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, maxHead))
	if err != nil {
		return false
	}
	declared := packageLine.FindAllSubmatch(head, 2)
	of := strings.ReplaceAll(strings.TrimPrefix(path.Dir(wanted), "."), "/", ".")
	return len(declared) != 1 || string(declared[0][1]) == of
}

// openRegular opens a file unless it is a pipe or a device: opening a pipe waits for its writer.
func openRegular(root *os.Root, name string) (*os.File, error) {
	if st, err := root.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // the file may have been replaced since
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return file, nil
}

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
