// Package snap writes and reads the file of "goprof snap": a zip of everything that was read from one JVM, with one or
// more files for each part.
//
// Contents (contents.json) lists every part, including missing ones, each with its reason. README.txt has the same for
// people. The names and the meaning of the files stay as they are: viewers find their parts by name.
//
// A file may be malicious. So a Reader bounds the table of the zip, the number of files, and the unpacked size of each
// file. It returns a file by its name, and unpacks nothing into a folder.
package snap
