package truth;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Sick: threads keep what they make for a while, so that each collection has much to copy, and make it as fast as they
 * can. (The heap has room: it is not full.)
 * Well: they make a thousandth of it.
 * Argument: megabytes to keep.
 */
public final class Garbage {
    static final class Node {
        final Node left, right;

        Node(int depth) {
            left = depth == 0 ? null : new Node(depth - 1);
            right = depth == 0 ? null : new Node(depth - 1);
        }
    }

    private static final int DEPTH = 12; // of a tree: 8191 nodes of 24 bytes or less

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        int trees = Integer.parseInt(args[1]) * 5;
        Deque<Node> kept = new ArrayDeque<>();
        Ward.forever("maker", () -> {
            synchronized (kept) {
                kept.addLast(new Node(DEPTH));
                if (kept.size() > trees) kept.removeFirst();
            }
            if (!sick) Thread.sleep(20);
        });
        Ward.serve();
    }
}
