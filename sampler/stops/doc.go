// Package stops runs an engine that stops threads. It does what these engines have in common: it decides when to look,
// limits the cost of pauses, and collects the stops that come late. It owns the Tracer's OS threads, which end when
// goprof is suspended, and it ends the run. The engine decides which threads to look at, and keeps the account of each
// look.
package stops
