// Package traced is a run of an engine that stops threads: its ticks, its Tracer on OS threads that end when goprof is
// suspended, stops that come late, what pauses may cost, and the end. The engine decides which threads to look at, and
// keeps the account of each look.
package traced
