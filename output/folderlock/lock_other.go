//go:build !unix

package folderlock

import "os"

// Lock does not exist on this system.
func Lock(*os.Root, string, string) (unlock func(), err error) { return func() {}, nil }
