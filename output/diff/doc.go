// Package diff compares two recordings and separates changes of the program from noise.
//
// # The test
//
// A recording is a random sample, and two recordings of the same program differ. How much depends on the number of
// independent samples. That number is smaller than the number of samples: threads work in bursts, a program has phases,
// and a second wall-clock look at a thread that has not moved adds nothing. So diff measures the variance of each share
// and does not assume it:
//
//   - The time of a recording is cut into 64 blocks. The variance of the share between blocks gives the variance of the
//     whole (a ratio estimator with blocks as clusters). A phase that is longer than a block shows as variance between
//     32, 16 or 8 longer blocks, which has fewer degrees of freedom: see noise. Both sides are taken together, and the
//     estimate of an item's variance is moved towards that of all items.
//   - A run of looks that find one thread in the same stack is a standing. The variance is at least that of independent
//     standings, and at least that of independent looks.
//   - Blocks do not show changes that are slower than a recording. If each side has one recording, diff assumes a
//     variance for them: see drift.
//   - The variance divided by that of independent looks is the inflation. A recording without times takes the other
//     recording's inflation of the same item. If neither has times, the inflation is Assumed, and the result says so.
//
// An item's p is the larger p of two tests. The first is a t test of the change over this variance (the degrees of
// freedom are those of the blocks). The second is an exact binomial test of counts with this variance. The t test is
// wrong for few samples, and the binomial test is wrong if the variance is uncertain. So both must agree.
//
// Holm's correction is applied to all items together: methods by self and by total, and paths. Of all comparisons in
// which nothing has changed, at most the share Risk reports any significant change. If something has changed, the same
// holds for all other items; Benjamini and Hochberg's correction does not promise that. Items that consist of the same
// samples count as one hypothesis. Items that consist of nearly the same samples count as little more than one
// (Hunter's inequality: see nested.go). Items with too few samples to become significant in any case are not hypotheses
// (Tarone).
//
// A leaf that is a guess counts for its compiled method, and a change that guesses alone may explain is not reported:
// see guesses.
//
// A single recording cannot show how much runs of a program differ because of the compiler's decisions or the layout of
// memory. With three or more recordings of several runs, diff measures this difference (see between). With fewer, it
// assumes one (see assume).
package diff
