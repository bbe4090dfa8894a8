// Package diff compares two recordings and separates changes of the program from noise.
//
// # The test
//
// A recording is a random sample. Two recordings of the same thing differ, and how much depends on how many samples are
// independent of each other. These are fewer than all samples: threads work in bursts, a phase lasts, a second
// wall-clock look at a thread that stands still adds nothing. So the variance of each share is measured, not assumed:
//
//   - The time of a recording is cut into 64 blocks. The variance of the share between blocks gives the variance of the
//     whole (a ratio estimator with blocks as clusters). What lasts longer than a block shows between 32, 16 and 8
//     longer ones, which estimate it with fewer degrees of freedom: see noise. Both sides are taken together, and an
//     item's variance is drawn towards that of all items.
//   - A run of looks at one thread that find the same stack is a standing. The variance is never less than if standings
//     were drawn independently, nor than that of independent looks.
//   - What changes more slowly than a recording is in no block. If each side has one recording, it is assumed: see
//     drift.
//   - A recording without times takes the inflation over independent looks that the other one has for the same item. If
//     neither has times, it is Assumed, and the result says so.
//
// An item's p is the larger one of two: of a t test of the change over this variance (the degrees of freedom are those
// of the blocks), and of an exact binomial test of counts that vary as much. The t test is wrong for few samples, the
// binomial one for a variance that is itself uncertain; so both must agree.
//
// Holm's correction is for all items together: methods by self and by total, and paths. Of all comparisons in which
// nothing has changed, at most Risk have any change that is called significant. If something has changed, the same
// holds for the rest; Benjamini and Hochberg's correction does not promise that. Items that are the same samples are
// one hypothesis. Items that are nearly the same samples are nearly one (Hunter's inequality: see nested.go). Items
// that have too few samples to become significant, however these fall, are none (Tarone).
//
// A leaf that is a guess counts for its compiled method, and a change that guesses may have made is none: see guesses.
//
// No single recording can show how one run of a program differs from the next: what the compiler decides, where memory
// lies. Three recordings of several runs measure that (see between); with fewer it is assumed (see assume).
package diff
