package ship

// Amount is a number of batches, and of the looks in them.
type Amount struct {
	Batches, Looks int64
}

func (a *Amount) add(looks int64) {
	a.Batches++
	a.Looks += looks
}

// Stats counts the batches of one destination by what happened to them. While no batch moves from one count to another,
//
//	Offered + Recovered = Sent + Refused + Dropped + Damaged + Queued
type Stats struct {
	Name      string
	Offered   Amount // by Offer
	Recovered Amount // found in the spool at the start
	Sent      Amount // the server has them
	Refused   Amount // the server will never take them, or they could not be encoded
	Dropped   Amount // the oldest, to make room; and those in memory at the end
	Damaged   Amount // incomplete files of the spool; their looks are not known
	Queued    Amount // not delivered yet

	QueuedBytes int64 // bytes of messages, in the spool and in memory
	SentBytes   int64
	Rejected    int64  // profiles that the server rejected from messages that it took
	Retries     int64  // failed attempts that are repeated
	SpoolErrors int64  // messages that the disk did not take: they are in memory
	LastError   string // empty after a delivery
}
