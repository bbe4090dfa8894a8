// Package wire makes the calls by which messages reach servers: a POST of HTTP, and a unary call of gRPC, which is a
// POST of HTTP/2 with frames and a status behind the answer. Both go over net/http; nothing of grpc-go is needed.
//
// Every failure becomes a *ship.Failure that says what is to happen with the message:
//
//   - What may pass is sent again: no connection, a reset, a deadline, 408, 429, 502, 503, 504, UNAVAILABLE ... A wait
//     that the server asks for (Retry-After, RetryInfo) is kept.
//   - If the message is not at fault, but a token, an address or a certificate, it is sent again, too, so that nothing
//     is lost while an operator mends that: 401, 403, 404, redirects, UNAUTHENTICATED, PERMISSION_DENIED,
//     UNIMPLEMENTED, TLS.
//   - What is wrong with the message is final: 400, 413, 415, 422, INVALID_ARGUMENT.
//   - What may be the one or the other is doubtful: it is sent again a few times: 500, INTERNAL, RESOURCE_EXHAUSTED
//     without a wait.
//
// Answers are foreign input: their sizes are bounded, and their texts are cut and cleaned.
package wire
