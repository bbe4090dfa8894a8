package truth;

/**
 * Tells which of a program's own measurements are no truth about it. A hypervisor may take a CPU away for seconds, and the
 * kernel may charge that to the thread that ran there: it cannot tell it from the thread's work.
 */
final class Usual {
    /** A round of the same work never takes so many times as much as those before it. */
    private static final int FAR = 10;

    private double usual;

    /** Whether a round took far more than those before it. */
    boolean isFar(long nanos) {
        return isFar(nanos, 1);
    }

    /** Whether rounds took far more than those before them: more than they should, by what makes one round far. */
    boolean isFar(long nanos, int rounds) {
        double each = (double) nanos / rounds;
        usual = usual == 0 ? each : usual;
        boolean far = nanos > (FAR + rounds - 1) * usual;
        usual += (Math.min(each, 2 * usual) - usual) / 16; // so that one that is far changes little
        return far;
    }
}
