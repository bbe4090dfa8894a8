// Package redact removes the names of a program from goprof's output.
//
// It takes a Policy. A Redactor made from it replaces names, thread names, files and free text. Names that the policy
// allows stay readable: the JDK's packages, those of named open-source projects, the JVM's own code. Everything else is
// cut into words. Each word becomes a pseudonym: a letter for its kind, and a keyed hash of the word (HMAC-SHA-256).
// Dots, '$' and small numbers stay, so the shape of a name stays: the depth of a package, inner classes, lambdas, the
// place of a thread in its pool. Equal words have equal pseudonyms everywhere, in all recordings with one key.
// docs/decisions/0014 has the reasons.
//
// The rule is to deny by default: a word that no list allows never stays, in any place. The package reads no files and
// knows no formats. A Redactor is not safe for concurrent use.
package redact
