// Package snap writes and reads the file of "goprof snap": a zip with what was seen of one JVM, part by part.
//
// Contents (contents.json) names every part. Missing parts are there, too, each with its reason. README.txt says the
// same for people. The names and the meaning of the files stay as they are: viewers find their parts by name.
//
// A file may have been made to do harm. So a Reader bounds the table of the zip, the number of files, and what each
// file unfolds to. It gives each file by its name alone: nothing is unpacked into a folder.
package snap
