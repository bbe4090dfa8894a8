// Package redact takes the names of a program out of what goprof writes.
//
// You give a Policy; a Redactor made of it turns names, thread names, files and free text into others. What the policy
// allows stays readable: the JDK's packages, those of named open-source projects, the JVM's own code. Everything else
// is cut into words, and each word becomes a pseudonym: a keyed hash of the word (HMAC-SHA-256) behind a letter for its
// kind. Dots, '$' and small numbers stay, so the shape of a name stays: the depth of a package, inner classes, lambdas,
// the place of a thread in its pool. Equal words have equal pseudonyms wherever they stand, in all recordings with one
// key. docs/decisions/0014 says why that is so.
//
// The rule is to deny by default: a word that no list allows never survives, whatever it stands in. The package is
// pure: it reads no files and knows no formats. A Redactor is not safe for concurrent use.
package redact
