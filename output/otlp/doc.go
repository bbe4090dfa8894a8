// Package otlp writes batches as OpenTelemetry's profiles (OTLP, v1development), and sends them to a collector by HTTP
// or by gRPC.
//
// A batch is one ResourceProfiles. Its first Profile counts samples, with the time of each look if that is known. Its
// second Profile has the sum of CPU time, or of the batch's other weight. Both share the dictionary. A physical frame
// is a Location, whose first Lines are the methods that a compiler inlined into it. Native code without a name, in an
// image with a known build id, is a Location without Lines: a backend with the image's symbols names it.
//
// The fields are those of opentelemetry-proto 1.11.
package otlp
