// Package ship delivers profiles to servers, at least once and without making its caller wait.
//
// A Shipper takes batches for several destinations. Each destination has a lane: the lane makes a message from a batch,
// keeps the message in a bounded spool on disk, and sends the oldest message first. A message that a destination does
// not take now is sent again later, at growing intervals. A message that it refuses for good is dropped and counted. If
// the spool is full, the oldest message is dropped and counted. Offer never waits, neither for the network nor for the
// disk.
//
// A spool is not trusted: a message that is incomplete, or that another program or another version of goprof has
// written, is skipped and counted.
package ship
