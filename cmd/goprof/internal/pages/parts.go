package pages

import (
	"io/fs"
	"os"
	"sync"
	"time"

	"goprof/output/recording"
)

// partsOf caches the parts of recordings: CPU time, waits, allocations. It reads a recording once to find them.
type partsOf struct {
	mu    sync.Mutex
	known map[string]knownParts // by path
}

type knownParts struct {
	size    int64
	written time.Time
	names   []string // empty: there is only one part
}

// maxLooked is the largest recording that the list reads by itself. The parts of larger ones are listed once a page of
// them was made.
const maxLooked = 32 << 20

func (p *partsOf) listed(path string, now fs.FileInfo) []string {
	if now.Size() > maxLooked {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.known[path].names
	}
	return p.read(path)
}

// read returns the parts of a recording. An unreadable file has none, and its pages say why.
func (p *partsOf) read(path string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	was, ok := p.known[path]
	if ok && was.size == info.Size() && was.written.Equal(info.ModTime()) {
		return was.names
	}
	now := knownParts{size: info.Size(), written: info.ModTime()}
	if file, err := recording.Open(path, recording.Options{Regular: true}); err == nil {
		if parts := file.Info().Parts; len(parts) > 1 {
			for i := range parts {
				now.names = append(now.names, parts[i].Name)
			}
		}
		file.Close()
	}
	if p.known == nil || len(p.known) >= mostServed {
		p.known = map[string]knownParts{}
	}
	p.known[path] = now
	return now.names
}
