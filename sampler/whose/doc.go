// Package whose finds out to which service, container and pod a process belongs, as far as that can be read from
// outside: the context that OpenTelemetry's SDKs publish in memory (OTEP 4719), two variables of its environment, and
// its control groups.
//
// All of it is the target's word, and is bounded and cleaned. Nobody is stopped, and nothing else of the environment is
// kept: it holds passwords.
package whose
