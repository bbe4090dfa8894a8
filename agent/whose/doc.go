// Package whose finds out to which service, container and pod a process belongs, as far as that can be read from
// outside: the context that OpenTelemetry's SDKs publish in memory (OTEP 4719), two variables of its environment, and
// its control groups.
//
// All of this may hold lies of the target, so it is bounded and cleaned. Nothing is stopped. Nothing else of the
// environment is kept, because it holds passwords.
package whose
