package com.zaxxer.hikari.pool;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.util.ConcurrentBag;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Stands in for HikariCP's class of that name: the fields that goprof reads, as HikariCP 4 and 6 have them. */
public final class HikariPool extends PoolBase {
    private final ConcurrentBag<PoolEntry> connectionBag = new ConcurrentBag<>();

    /** Of so many connections some are lent. The first has been for a minute. */
    public HikariPool(String name, int most, int all, int lent, int waiting) {
        super(name, most);
        for (int i = 0; i < all; i++) {
            PoolEntry e = new PoolEntry();
            e.state = i < lent ? 1 : 0;
            e.lastAccessed = 1000 + i;
            e.lastBorrowed = System.nanoTime() - (i == 0 ? 60_000_000_000L : 0);
            connectionBag.sharedList.add(e);
        }
        connectionBag.waiters.set(waiting);
    }

    /** What stands for a connection until it is given back. A closed one stands for nothing. */
    public Object proxy(int i, boolean open) {
        PoolEntry e = connectionBag.sharedList.get(i);
        HikariProxyConnection p = new HikariProxyConnection();
        p.poolEntry = e;
        p.delegate = open ? e.connection : "closed";
        return p;
    }

    /** Starts its house-keeping, in a thread of its own. */
    public void keepHouse() {
        ScheduledThreadPoolExecutor e = new ScheduledThreadPoolExecutor(1, r -> {
            Thread t = new Thread(r, poolName + ":housekeeper");
            t.setDaemon(true);
            return t;
        });
        e.scheduleWithFixedDelay(new HouseKeeper(), 1, 3600, TimeUnit.HOURS);
    }

    private final class HouseKeeper implements Runnable {
        @Override
        public void run() {
            connectionBag.waiters.get();
        }
    }
}

class PoolBase {
    public final HikariConfig config = new HikariConfig();
    protected final String poolName;

    PoolBase(String name, int most) {
        poolName = name;
        config.maxPoolSize = most;
    }
}

class ProxyConnection {
    PoolEntry poolEntry;
    Object delegate;
}

final class HikariProxyConnection extends ProxyConnection {}

final class PoolEntry {
    final Object connection = new Object();
    long lastAccessed;
    long lastBorrowed;
    volatile int state;
}
