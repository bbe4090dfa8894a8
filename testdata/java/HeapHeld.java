package truth;

import java.util.HashMap;
import java.util.Map;

/**
 * Proves: a heap dump has the values of all fields, and what keeps objects alive.
 *
 * READY: static fields of each type are set, CACHE holds a chain of 5000 nodes and arrays of some types, and a thread
 * "holder" sleeps that alone holds a Node with the number 777777.
 */
public final class HeapHeld {
    private HeapHeld() {}

    static class Node {
        final int number;
        final Node next;
        final long stamp;
        final byte tag;
        final String name;

        Node(int number, Node next) {
            this.number = number;
            this.next = next;
            stamp = number * 1000003L;
            tag = (byte) number;
            name = "node-" + number;
        }
    }

    static final class Sub extends Node {
        final short extra = 77;
        final double weight = 3.5;

        Sub(int number, Node next) {
            super(number, next);
        }
    }

    static final class Holder extends Thread {
        @Override public void run() {
            Node mine = new Node(777777, null);
            try {
                Thread.sleep(1_000_000_000);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            System.out.println(mine.number);
        }
    }

    static final Map<String, Object> CACHE = new HashMap<>();
    static long aLong = 0x1122334455667788L;
    static double aDouble = 2.5;
    static boolean aBoolean = true;
    static char aChar = 'x';
    static short aShort = -7;
    static byte aByte = -3;
    static float aFloat = 1.25f;
    static int anInt = -123456;
    static String secret = "the secret \u4e2d";
    static Node head;
    static int[] big = new int[1_000_000];

    public static void main(String[] args) {
        for (int i = 0; i < 5000; i++) {
            head = i % 2 == 0 ? new Node(i, head) : new Sub(i, head);
        }
        big[999_999] = 42;
        CACHE.put("longs", new long[] {1, 2, 3, -4});
        CACHE.put("matrix", new double[10][20]);
        CACHE.put("mixed", new Object[] {"s", 12, null, new byte[] {9, 8, 7}});
        Holder holder = new Holder();
        holder.setName("holder");
        holder.setDaemon(true);
        holder.start();
        while (holder.getState() != Thread.State.TIMED_WAITING) {
            Thread.yield();
        }
        Control.serve((command, out) -> { throw new IllegalArgumentException(command); },
            () -> Control.check(head.number == 4999 && big[999_999] == 42, "objects are lost"));
    }
}
