// Package redaction writes recordings and what else goprof writes without the names that package profile/redact takes
// out.
//
// Source is a recording.Source around another: whatever is made of it has no such names. File rewrites a file in its
// own format, with all that the format holds: JFR chunk by chunk, pprof with all its values, collapsed stacks, and the
// JSON of dumps, locks, triage, reports and summaries. Search looks for words in a file's bytes, unpacked.
package redaction
