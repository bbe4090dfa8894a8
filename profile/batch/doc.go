// Package batch sums up the samples of one process in a span of time. The result is a Batch: each different stack of a
// thread once, with every look that found it. goprof sends batches to servers, or writes them to a folder of
// recordings. A Gatherer makes batches. It is bounded in stacks, frames and looks. Samples without room are counted
// under one name.
package batch
