// Package wire sends messages to servers: by an HTTP POST, or by a unary gRPC call, which is an HTTP/2 POST with frames
// and a status after the answer. Both use net/http, so grpc-go is not needed.
//
// Every failure becomes a *ship.Failure, from which the Shipper knows what to do with the message:
//
//   - The failure is temporary: the message is sent again. No connection, a reset, a deadline, 408, 429, 502, 503, 504,
//     UNAVAILABLE ... If the server asks for a wait (Retry-After, RetryInfo), the Shipper waits.
//   - A token, an address or a certificate is wrong: the message is sent again, too, so that nothing is lost until an
//     operator corrects that. 401, 403, 404, redirects, UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED, TLS.
//   - The message is wrong: it is not sent again. 400, 413, 415, 422, INVALID_ARGUMENT.
//   - The cause is not clear: the message is sent again a few times. 500, INTERNAL, RESOURCE_EXHAUSTED without a wait.
//
// Answers are not trusted: their sizes are bounded, and their texts are shortened and cleaned.
package wire
