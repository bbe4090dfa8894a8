package pprof

import (
	"compress/gzip"
	"io"
	"sync"

	pb "github.com/google/pprof/profile"
)

// compressors are idle gzip writers. A new writer allocates and clears a megabyte. For an agent's small files this is
// more work than compressing them.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// write does what p.Write does.
func write(to io.Writer, p *pb.Profile) error {
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	defer z.Reset(io.Discard) // so that it does not keep what was written
	z.Reset(to)
	if err := p.WriteUncompressed(z); err != nil {
		return err
	}
	return z.Close()
}
