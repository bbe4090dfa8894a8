// Package otlp writes batches as OpenTelemetry's profiles (OTLP, v1development), and sends them to a collector by HTTP
// or by gRPC.
//
// A batch is one ResourceProfiles. Its first Profile counts samples, with the time of each look if that is known. Its
// second Profile has the sum of CPU time, or of whatever else the batch counts. Both share the dictionary. A physical
// frame is a Location, methods that a compiler inlined into it are its first Lines. Native code without a name, of an
// image whose build id is known, is a Location without Lines: a backend that has the image's symbols names it.
//
// The fields are those of opentelemetry-proto 1.11.
package otlp
