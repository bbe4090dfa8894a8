package ship

import (
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// maxMessage bounds one message. A batch of usual size makes some ten KB.
	maxMessage = 16 << 20
	// maxEntries bounds the messages of a spool, whatever their size.
	maxEntries = 1 << 16
	// maxStranded bounds the messages that are kept in memory because the disk does not take them.
	maxStranded = 8 << 20
)

type spooled struct {
	number uint64
	size   int64
	looks  int64
	at     time.Time
	data   []byte // of a message that is only in memory
	held   bool   // it is being sent
	doubts int    // number of doubtful failures
}

// spool keeps messages in the order in which they came. Files are written and read without the lock, so a disk that
// hangs only blocks the goroutine that uses the disk.
type spool struct {
	folder *os.Root // nil: only memory is used
	max    int64

	mu       sync.Mutex
	entries  []*spooled // the oldest first
	bytes    int64
	stranded int64 // those of bytes that are in memory
	next     uint64
}

// put stores a message. dropped are the oldest messages, which were removed to make room. diskErr is why the message is
// in memory and not on disk.
func (s *spool) put(message []byte, looks int64, at time.Time) (dropped []Amount, diskErr error) {
	s.mu.Lock()
	e := &spooled{number: s.next, size: int64(len(message)), looks: looks, at: at}
	s.next++
	gone := s.makeRoom(e.size, s.max)
	s.mu.Unlock()
	dropped = s.forget(gone)
	if s.folder != nil {
		diskErr = writeMessage(s.folder, e, message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == nil || diskErr != nil {
		e.data = message
		s.stranded += e.size
		if s.folder != nil {
			dropped = append(dropped, s.dropStranded()...)
		}
	}
	s.entries = append(s.entries, e)
	s.bytes += e.size
	return dropped, diskErr
}

// makeRoom removes the oldest entries until a new one fits.
func (s *spool) makeRoom(size, limit int64) (gone []*spooled) {
	for i := 0; i < len(s.entries) && (s.bytes+size > limit || len(s.entries) >= maxEntries); {
		if s.entries[i].held {
			i++
			continue
		}
		gone = append(gone, s.entries[i])
		s.take(i)
	}
	return gone
}

// dropStranded drops messages in memory beyond the bound, if a disk should have them.
func (s *spool) dropStranded() (dropped []Amount) {
	for i := 0; i < len(s.entries) && s.stranded > maxStranded; {
		if e := s.entries[i]; e.data != nil && !e.held {
			dropped = append(dropped, Amount{1, e.looks})
			s.take(i)
			continue
		}
		i++
	}
	return dropped
}

// take removes an entry from the list.
func (s *spool) take(i int) {
	e := s.entries[i]
	s.entries = slices.Delete(s.entries, i, i+1)
	s.bytes -= e.size
	if e.data != nil {
		s.stranded -= e.size
	}
}

// forget deletes the files of removed entries.
func (s *spool) forget(gone []*spooled) (dropped []Amount) {
	for _, e := range gone {
		dropped = append(dropped, Amount{1, e.looks})
		s.removeFile(e)
	}
	return dropped
}

func (s *spool) removeFile(e *spooled) {
	if e.data == nil && s.folder != nil {
		// A file that cannot be deleted is sent again after a restart, which "at least once" permits.
		s.folder.Remove(fileName(e.number))
	}
}

// hold returns the next message to send, or nil. The spool keeps the message until release or drop.
func (s *spool) hold() *spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) == 0 {
		return nil
	}
	s.entries[0].held = true
	return s.entries[0]
}

func (s *spool) release(e *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.held = false
}

func (s *spool) read(e *spooled) ([]byte, error) {
	if e.data != nil {
		return e.data, nil
	}
	return readMessage(s.folder, e.number)
}

// drop removes an entry that was delivered, refused or damaged. Its file was already deleted.
func (s *spool) drop(e *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.entries, e); i >= 0 {
		s.take(i)
	}
}

// dropMemory removes the entries that are only in memory.
func (s *spool) dropMemory() (lost []Amount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(s.entries); {
		if e := s.entries[i]; e.data != nil {
			lost = append(lost, Amount{1, e.looks})
			s.take(i)
			continue
		}
		i++
	}
	return lost
}

func (s *spool) amount() (a Amount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		a.add(e.looks)
	}
	return a
}

func (s *spool) bytesNow() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
