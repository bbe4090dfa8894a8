package ship

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A file of the spool is a header and a message. All numbers are little endian.
//
//	0   8  "goprofS1"
//	8   4  CRC-32C of all that follows
//	12  4  0
//	16  8  bytes of the message
//	24  8  when it was made, ns since 1970
//	32  8  looks in it
const (
	fileMagic  = "goprofS1"
	headerSize = 40
	suffix     = ".msg"
	unfinished = ".new"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func fileName(number uint64) string { return fmt.Sprintf("%016x%s", number, suffix) }

// numberOf is the inverse of fileName.
func numberOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 63)
	return n, err == nil && fileName(n) == name
}

// writeMessage writes a file. The file is complete or does not exist, unless the machine itself stops.
func writeMessage(folder *os.Root, e *spooled, message []byte) error {
	head := make([]byte, headerSize, headerSize+len(message))
	copy(head, fileMagic)
	binary.LittleEndian.PutUint64(head[16:], uint64(len(message)))
	binary.LittleEndian.PutUint64(head[24:], uint64(e.at.UnixNano()))
	binary.LittleEndian.PutUint64(head[32:], uint64(e.looks))
	all := append(head, message...)
	binary.LittleEndian.PutUint32(all[8:], crc32.Checksum(all[12:], castagnoli))
	name := fileName(e.number)
	err := folder.WriteFile(name+unfinished, all, 0o600)
	if err == nil {
		err = folder.Rename(name+unfinished, name)
	}
	if err != nil {
		folder.Remove(name + unfinished)
		return fmt.Errorf("the spool does not take a message: %w", err)
	}
	return nil
}

func readMessage(folder *os.Root, number uint64) ([]byte, error) {
	f, size, err := openMessage(folder, number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make([]byte, size)
	if n, err := io.ReadFull(f, all); err == io.ErrUnexpectedEOF || n < headerSize && err == io.EOF {
		return nil, damagedFile(number, "it is cut off")
	} else if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if crc32.Checksum(all[12:], castagnoli) != binary.LittleEndian.Uint32(all[8:]) {
		return nil, damagedFile(number, "its checksum is wrong")
	}
	return all[headerSize:], nil
}

// openMessage opens a file if its header is valid.
func openMessage(folder *os.Root, number uint64) (f *os.File, size int64, err error) {
	name := fileName(number)
	info, err := folder.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, damagedFile(number, "it was removed")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("spool: %w", err) // the disk may answer later
	}
	if !info.Mode().IsRegular() {
		return nil, 0, damagedFile(number, "it is no regular file")
	}
	// Without O_NONBLOCK a pipe in the file's place would block the sender.
	if f, err = folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, 0, fmt.Errorf("spool: %w", err)
	}
	if info, err = f.Stat(); err == nil {
		err = checkHeader(f, info)
	}
	if err != nil {
		f.Close()
		return nil, 0, damagedFile(number, err.Error())
	}
	return f, info.Size(), nil
}

func checkHeader(f *os.File, info os.FileInfo) error {
	head := make([]byte, headerSize)
	switch n, err := f.ReadAt(head, 0); {
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case n < headerSize:
		return fmt.Errorf("it is cut off: %w", err)
	case string(head[:8]) != fileMagic:
		return errors.New("it is no message of goprof")
	case info.Size() > maxMessage+headerSize:
		return errors.New("it is too long")
	case binary.LittleEndian.Uint64(head[16:]) != uint64(info.Size()-headerSize):
		return errors.New("it is cut off")
	}
	return nil
}

// damage: a file is not a message and will never be one.
type damage struct {
	number  uint64
	problem string
}

func (d *damage) Error() string {
	return fileName(d.number) + " of the spool is left out: " + d.problem
}

func damagedFile(number uint64, problem string) error { return &damage{number, problem} }

// maxLooks bounds the number in a header.
const maxLooks = 1 << 40

// found returns the entry for a file that an earlier goprof has left.
func found(folder *os.Root, number uint64) (*spooled, error) {
	f, size, err := openMessage(folder, number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, damagedFile(number, err.Error())
	}
	looks := binary.LittleEndian.Uint64(head[32:])
	return &spooled{number: number, size: size - headerSize, looks: int64(min(looks, maxLooks)),
		at: time.Unix(0, int64(binary.LittleEndian.Uint64(head[24:])))}, nil
}
