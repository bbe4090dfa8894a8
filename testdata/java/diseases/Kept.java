package truth;

/**
 * Memory of malloc, in pieces that are small enough for its arenas.
 * Sick: nearly all of it was given back. What is left of it lies between the free pieces, so that glibc keeps them.
 * Well: all of it is in use.
 */
public final class Kept {
    private static final int PIECE = 64 << 10, PIECES = 5120, ONE_LEFT_OF = 64;

    public static void main(String[] args) throws Exception {
        MemoryTruth.Malloc malloc = new MemoryTruth.Malloc();
        long[] pieces = new long[PIECES];
        for (int i = 0; i < PIECES; i++) {
            pieces[i] = malloc.piece(PIECE);
        }
        for (int i = 0; i < PIECES && Ward.sick(args); i++) {
            if (i % ONE_LEFT_OF != 0) malloc.free(pieces[i]);
        }
        Ward.serve();
    }
}
