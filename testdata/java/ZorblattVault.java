package com.zorblattcorp.quuxledger;

import java.io.File;
import java.io.FileInputStream;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntSupplier;

/** The same program under another name, for a test that chooses its JVM by that. */
final class ZorblattLedger {
    public static void main(String[] args) throws Exception {
        ZorblattVault.main(args);
    }
}

/**
 * A program full of secrets: in the names of its package, classes, methods, threads and files, in its arguments, its
 * properties and the messages of its exceptions. The tests of redaction know them all (output/redaction). It runs for so
 * many seconds as its first argument says.
 */
public class ZorblattVault {
    static final ReentrantLock grumpkinLock = new ReentrantLock();
    static volatile int sink;

    static class MurgatroydAccount {
        int balance;

        int frobnicateInvoice(int n) {
            int sum = 0;
            for (int i = 0; i < n; i++) {
                sum += snorkelWhistle(() -> ibexTotal(sum(balance)));
                synchronized (this) {
                    balance += sum & 3;
                }
            }
            return sum;
        }

        int sum(int from) {
            int sum = from;
            for (int i = 0; i < 500; i++) {
                sum += i * from;
            }
            return sum;
        }

        int ibexTotal(int n) {
            return n % 7;
        }
    }

    static int snorkelWhistle(IntSupplier supplier) {
        return supplier.getAsInt();
    }

    static void kerfuffleForever() {
        grumpkinLock.lock();
        try {
            Thread.sleep(1_000_000);
        } catch (InterruptedException e) {
            // the end
        } finally {
            grumpkinLock.unlock();
        }
    }

    static void waitForGrumpkin() {
        grumpkinLock.lock();
    }

    static Thread daemon(String name, Runnable what) {
        Thread thread = new Thread(what, name);
        thread.setDaemon(true);
        return thread;
    }

    static void trifleFile(String folder) throws Exception {
        File file = new File(folder, "wobblegong-payroll-2019.txt");
        try (FileInputStream in = new FileInputStream(file)) {
            in.read(new byte[1 << 16]);
        } catch (java.io.FileNotFoundException e) {
            sink++; // the message has the path
        }
        try {
            throw new IllegalStateException("customer Bandersnatch owes 4929123412341234 to jabber@wocky.example");
        } catch (IllegalStateException e) {
            sink++;
        }
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        daemon("kerfuffle-tenant-8675309", ZorblattVault::kerfuffleForever).start();
        Thread.sleep(100);
        daemon("10.11.12.13:5432 flummox", ZorblattVault::waitForGrumpkin).start();
        ExecutorService pool = Executors.newFixedThreadPool(2, task -> daemon("flibbertigibbet-pool-thread-1", task));
        for (int i = 0; i < 2; i++) {
            pool.submit(() -> {
                MurgatroydAccount account = new MurgatroydAccount();
                while (true) {
                    for (int round = 0; round < 100; round++) {
                        sink += account.frobnicateInvoice(100);
                    }
                    Thread.sleep(5); // other tests want the CPU, too
                }
            });
        }
        System.out.println("READY");
        System.out.flush();
        while (System.nanoTime() < end) {
            trifleFile(args.length > 1 ? args[1] : "/nowhere");
            Thread.sleep(20);
        }
        System.exit(0);
    }
}
