// Package batch sums the samples of one process in a span of time. A Batch is what servers are sent, and what a folder
// of recordings is written from: each different stack of a thread once, with every look that found it. A Gatherer makes
// batches. It is bounded in stacks, frames and looks, and what has no room is counted under one name.
package batch
