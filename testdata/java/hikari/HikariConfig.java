package com.zaxxer.hikari;

/** Stands in for HikariCP's class of that name. */
public class HikariConfig {
    public volatile int maxPoolSize;
}
