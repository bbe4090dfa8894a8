package vmstructs

import "goprof/process/maybe"

// A HikariPool has a ScheduledThreadPoolExecutor with one thread for its maintenance. The tasks in the executor's queue
// refer to the pool: HikariPool$HouseKeeper, MaxLifetimeTask, KeepaliveTask. While one of these runs and no other is
// scheduled, the pool is not found.
const (
	classHikari      = "com/zaxxer/hikari/pool/HikariPool"
	classHikariBase  = "com/zaxxer/hikari/pool/PoolBase"
	classHikariEntry = "com/zaxxer/hikari/pool/PoolEntry"
	classHikariBag   = "com/zaxxer/hikari/util/ConcurrentBag"
	classHikariConf  = "com/zaxxer/hikari/HikariConfig"
	classCopyOnWrite = "java/util/concurrent/CopyOnWriteArrayList"
)

// hikariInUse is ConcurrentBag.IConcurrentBagEntry.STATE_IN_USE.
const hikariInUse = 1

// connectionsOf finds the pool of connections that an executor maintains. It returns nil if there is none or it cannot
// be read.
func (p *Pools) connectionsOf(executor poolObject) *Connections {
	queue, ok := p.follow(&executor, classThreadPool, "workQueue")
	if !ok || !queue.is(classDelayed) {
		return nil
	}
	tasks, _ := p.elements(p.ref(&queue, classDelayed, "queue"), 0, maxScheduled)
	for _, at := range tasks {
		o, ok := p.read(at)
		for n := 0; ok && n < maxWrapped; n++ {
			if o.is(classHikari) {
				return p.readConnections(o)
			}
			var next uint64
			for _, name := range []string{"callable", "task", "this$0"} {
				if next = p.ref(&o, "", name); next != 0 {
					break
				}
			}
			o, ok = p.read(next)
		}
	}
	return nil
}

// readConnections reads a HikariPool: its name, its limits, and how many connections are lent.
func (p *Pools) readConnections(pool poolObject) *Connections {
	name, ok1 := p.text(p.ref(&pool, classHikariBase, "poolName"))
	bag, ok2 := p.follow(&pool, classHikari, "connectionBag")
	list, ok3 := p.follow(&bag, classHikariBag, "sharedList")
	entries, ok4 := p.elements(p.ref(&list, classCopyOnWrite, "array"), 0, maxPoolArray)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil
	}
	config, _ := p.follow(&pool, classHikariBase, "config")
	waiters, _ := p.follow(&bag, classHikariBag, "waiters")
	c := &Connections{Name: name, All: int64(len(entries)), Most: config.number(classHikariConf, "maxPoolSize"),
		Waiting: waiters.number(classAtomicInt, "value")}
	for _, at := range entries {
		entry, ok := p.read(at)
		state, known := entry.number(classHikariEntry, "state").Get()
		if !ok || !known {
			return nil
		}
		if state != hikariInUse {
			continue
		}
		c.entries = append(c.entries, poolEntry{object: entry, connection: p.ref(&entry, classHikariEntry, "connection")})
		back := entry.long(classHikariEntry, "lastAccessed").Or(0)
		c.Lent = append(c.Lent, back)
		// A connection that is being tested before a loan still has the time of the previous loan (HikariPool.getConnection).
		at := entry.long(classHikariEntry, "lastBorrowed").Or(0)
		if at != 0 && at-back >= 0 && at <= c.Borrowed.Or(at) {
			c.Borrowed = maybe.Known(at)
		}
	}
	return c
}

func (p *Pools) text(at uint64) (string, bool) {
	s, ok := p.read(at)
	if !ok || !s.is("java/lang/String") {
		return "", false
	}
	chars := p.ref(&s, "java/lang/String", "value")
	if chars == 0 {
		return "", false
	}
	text, err := p.k.vm.charsOf(s.at, chars)
	return text, err == nil
}
