package truth;

/**
 * Sick: a thread finds out by exceptions whether texts are numbers, and most of them are none.
 * Well: it looks at the characters.
 */
public final class Throws {
    static volatile int numbers;

    static boolean isNumber(String text, boolean sick) {
        if (!sick) {
            for (int i = 0; i < text.length(); i++) {
                if (!Character.isDigit(text.charAt(i))) return false;
            }
            return true;
        }
        try {
            Integer.parseInt(text);
            return true;
        } catch (NumberFormatException no) {
            return false;
        }
    }

    static boolean deeper(int levels, String text, boolean sick) {
        return levels == 0 ? isNumber(text, sick) : deeper(levels - 1, text, sick);
    }

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        String[] texts = {"17", "seven", "x", "four", "2 ", "nine"};
        Ward.forever("parser", () -> {
            for (int i = 0; i < 20_000; i++) {
                if (deeper(30, texts[i % texts.length], sick)) numbers++;
            }
            Thread.sleep(5);
        });
        Ward.serve();
    }
}
