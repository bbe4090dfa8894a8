//go:build !unix

package sole

import "os"

// Lock cannot be had here.
func Lock(*os.Root, string, string) (unlock func(), err error) { return func() {}, nil }
