//go:build unix

package ship

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwner refuses a folder to which other users may write: they could read profiles, or send their own as goprof's.
func checkOwner(folder *os.Root, path string) error {
	info, err := folder.Stat(".")
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("spool: %s belongs to user %d, goprof runs as %d: name another folder", path, stat.Uid,
			os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("spool: others may write into %s: chmod 700 it", path)
	}
	return nil
}
