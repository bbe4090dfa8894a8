// Package redaction rewrites recordings and other output of goprof, without the names that package profile/redact
// removes.
//
// Source is a recording.Source around another one: nothing that is made from it has such names. File rewrites a file in
// its own format, with all that the format holds: JFR chunk by chunk, pprof with all its values, collapsed stacks, and
// the JSON of dumps, locks, triage, reports and summaries. Search looks for words in a file's unpacked bytes.
package redaction
