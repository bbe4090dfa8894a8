// Package snap writes and reads the file of "goprof snap": a zip of everything that was read from one JVM, with a file
// or more for each part.
//
// Contents (contents.json) names every part. Missing parts are there, too, each with its reason. README.txt says the
// same for people. The names and the meaning of the files stay as they are: viewers find their parts by name.
//
// A file may have been made to do harm. So a Reader bounds the table of the zip, the number of files, and the unpacked
// size of each file. It returns a file by its name, and unpacks nothing into a folder.
package snap
