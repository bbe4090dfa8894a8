// Package ship delivers profiles to servers, at least once and without making anybody wait.
//
// A Gatherer sums samples up to a Batch. A Shipper takes batches for several destinations. Each destination has a lane:
// it makes a message of a batch, keeps the message in a bounded spool on disk, and sends the oldest message first. What
// a destination does not take now is sent again later, at growing intervals; what it refuses for good is dropped and
// counted. Where the spool is full the oldest message is dropped and counted. Offer never waits: for no network, and
// for no disk.
//
// What a spool holds is read as foreign input: a message that is torn, of another goprof or of somebody else is skipped
// and counted.
package ship
