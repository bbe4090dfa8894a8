// Package outfile holds the files that goprof writes its results to. A file gets its name only when it is complete, and
// no link in another user's folder leads goprof elsewhere. Standard output, pipes and devices are written once. If
// their reader stalls for too long, writing ends with an error.
package outfile
