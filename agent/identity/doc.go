// Package identity finds out from outside to which service, container and pod a process belongs. It reads three
// sources: the context that OpenTelemetry's SDKs publish in memory (OTEP 4719), two environment variables, and the
// control groups.
//
// The target may put false data into all of these, so texts are bounded and cleaned. No thread is stopped. Other
// environment variables are not kept, because they may hold passwords.
package identity
