package profile

// Counts has the numbers of looks by outcome:
//
//	Attempted = Whole + all Truncated + all Lost
type Counts struct {
	Attempted int64
	Whole     int64
	Truncated [NumReasons]int64
	Lost      [NumReasons]int64
}

func (c *Counts) add(why Reason, n int64) {
	c.Attempted += n
	switch {
	case why == Whole:
		c.Whole += n
	case why < NumReasons:
		c.Truncated[why] += n
	default:
		c.Truncated[Other] += n
	}
}

func (c *Counts) lose(why Reason, n int64) {
	if !why.Lost() || why >= NumReasons {
		why = Other
	}
	c.Attempted += n
	c.Lost[why] += n
}

// TruncatedSum returns how many stacks do not reach their thread's root.
func (c *Counts) TruncatedSum() int64 { return sum(&c.Truncated) }

// LostSum returns how many looks gave no stack.
func (c *Counts) LostSum() int64 { return sum(&c.Lost) }

func (c *Counts) Samples() int64 { return c.Whole + c.TruncatedSum() }

func sum(by *[NumReasons]int64) (total int64) {
	for _, n := range by {
		total += n
	}
	return total
}

// byName returns the numbers that are not zero, by the names of their reasons.
func byName(by *[NumReasons]int64) map[string]int64 {
	names := make(map[string]int64)
	for r, n := range by {
		if n != 0 {
			names[Reason(r).String()] += n
		}
	}
	return names
}
