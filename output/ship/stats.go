package ship

// Amount is a number of batches, and of the looks in them.
type Amount struct {
	Batches, Looks int64
}

func (a *Amount) add(looks int64) {
	a.Batches++
	a.Looks += looks
}

// Stats counts what became of the batches of one destination. While no batch is on its way from one count to another,
//
//	Offered + Recovered = Sent + Refused + Dropped + Damaged + Queued
type Stats struct {
	Name      string
	Offered   Amount // by Offer
	Recovered Amount // found in the spool at the start
	Sent      Amount // the server has them
	Refused   Amount // the server will never take them, or no message could be made of them
	Dropped   Amount // the oldest, to make room; and messages in memory at the end
	Damaged   Amount // files of the spool that are not whole; their looks are not known
	Queued    Amount // not delivered yet

	QueuedBytes int64 // bytes of messages, in the spool and in memory
	SentBytes   int64
	Rejected    int64  // profiles that the server left out of messages that it took
	Retries     int64  // attempts that failed and are made again
	SpoolErrors int64  // messages that the disk did not take: they are kept in memory
	LastError   string // empty after a delivery
}
