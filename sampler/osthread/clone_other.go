//go:build linux && !amd64 && !arm64

package osthread

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// On a CPU that goprof does not know there are no Runners, and no signal handlers but Go's.

func clone(*control, uintptr, *atomic.Uint32) int { return -int(unix.ENOSYS) }

func cloneOnto(*threadControl, uintptr, *atomic.Uint32, uintptr) int { return -int(unix.ENOSYS) }

func handlerPC() uintptr { return 0 }
