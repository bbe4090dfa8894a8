// Package identity finds out to which service, container and pod a process belongs, as far as that can be read from
// outside: the context that OpenTelemetry's SDKs publish in memory (OTEP 4719), two variables of its environment, and
// its control groups.
//
// The target may lie in all of these, so texts are bounded and cleaned. No thread is stopped. No other variables of the
// environment are kept, because they may hold passwords.
package identity
