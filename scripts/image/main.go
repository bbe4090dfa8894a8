// image makes a container image of the static binaries, without a daemon: a folder in the layout of the Open Container
// Initiative (image-spec, image-layout.md), which skopeo, podman, crane and others push. The image holds /goprof,
// and an empty /tmp for recordings on their way (goprof snap). The same binaries give the same bytes.
//
//	go run ./scripts/image -out build/image -version 1.2 amd64=build/dist/goprof-linux-amd64 arm64=build/dist/goprof-linux-arm64
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "build/image", "`folder` of the image; it must not be there yet")
	version := flag.String("version", "", "`version` that annotations have")
	flag.Parse()
	if err := run(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(out, version string, binaries []string) error {
	if len(binaries) == 0 {
		return fmt.Errorf("no binaries: amd64=build/dist/goprof-linux-amd64")
	}
	l, err := newLayout(out)
	if err != nil {
		return err
	}
	for _, b := range binaries {
		digest, err := l.add(b, version)
		if err != nil {
			return err
		}
		fmt.Printf("%s\t%s\n", digest, b)
	}
	return l.finish()
}
