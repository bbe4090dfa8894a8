// Package outfile holds the files that goprof writes its results to. A file has its name only when it is whole, and no
// link in another user's folder leads goprof elsewhere. Standard output, pipes and devices are written once. If their
// reader stalls for too long, writing ends with an error.
package outfile
