/** Computes, so that a recording of it has samples. */
public final class Busy {
    public static void main(String[] args) {
        double sum = 0;
        for (long i = 0; ; i++) {
            sum += Math.sqrt(i);
            if (sum < 0) {
                System.out.println(sum);
            }
        }
    }
}
