package truth;

/** One thread, "work", does the same round again and again; each must give the same result as the first. */
final class Rounds {
    private static volatile long rounds;
    private static volatile Throwable wrong;

    /** One round of work. */
    interface Round {
        long run() throws Exception;
    }

    private Rounds() {}

    /** Works until the test ends it. The command "rounds" prints how many rounds are done. */
    static void serve(Round round) throws Exception {
        Thread thread = new Thread(() -> work(round), "work");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            Control.check(command.equals("rounds"), "no such command: " + command);
            Control.check(wrong == null, String.valueOf(wrong));
            out.println(rounds);
        }, () -> Control.check(wrong == null, String.valueOf(wrong)));
    }

    private static void work(Round round) {
        try {
            long first = round.run();
            while (true) {
                long result = round.run();
                Control.check(result == first, result + " in round " + rounds + ", " + first + " in the first");
                rounds++;
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }
}
