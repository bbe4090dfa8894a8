package com.zaxxer.hikari.util;

import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** Stands in for HikariCP's class of that name. */
public class ConcurrentBag<T> {
    public final CopyOnWriteArrayList<T> sharedList = new CopyOnWriteArrayList<>();
    public final AtomicInteger waiters = new AtomicInteger();
}
