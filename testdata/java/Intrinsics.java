package truth;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Methods for which HotSpot has code of its own, in the middle of compiled methods or as stubs: code that
 * no compiler made, with stack frames as their authors liked them. Each work runs on a thread of its
 * own, in rounds, and must give the same number in every round.
 *
 * Arguments: the groups to run (strings, text, arrays, numbers, crypto, polls); none means all.
 */
public final class Intrinsics implements Runnable {
    /** One round of a work; gives back a number that is the same in every round. */
    interface Round {
        long run() throws Exception;
    }

    private static final Map<String, List<Intrinsics>> GROUPS = new LinkedHashMap<>();

    private final String name;
    private final Round round;
    private volatile long rounds;
    private volatile boolean stop;
    private volatile Throwable wrong;
    private Thread thread;

    private Intrinsics(String name, Round round) {
        this.name = name;
        this.round = round;
    }

    private static void add(String group, String name, Round round) {
        GROUPS.computeIfAbsent(group, g -> new ArrayList<>()).add(new Intrinsics(name, round));
    }

    @Override
    public void run() {
        try {
            long first = round.run();
            while (!stop) {
                long result = round.run();
                Control.check(result == first, name + ": " + result + " after " + first);
                rounds++;
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    public static void main(String[] args) throws Exception {
        List<Intrinsics> works = new ArrayList<>();
        for (Map.Entry<String, List<Intrinsics>> group : GROUPS.entrySet()) {
            if (args.length == 0 || Arrays.asList(args).contains(group.getKey())) {
                works.addAll(group.getValue());
            }
        }
        for (Intrinsics work : works) {
            work.thread = new Thread(work, work.name);
            work.thread.setDaemon(true);
            work.thread.start();
        }
        for (Intrinsics work : works) {
            while (work.rounds < 2) {
                Control.check(work.wrong == null, work.name + ": " + work.wrong);
                Thread.sleep(2);
            }
        }
        Control.serve((command, out) -> Control.check(false, "no such command: " + command), () -> {
            for (Intrinsics work : works) {
                work.stop = true;
            }
            for (Intrinsics work : works) {
                work.thread.join(60_000);
                Control.check(work.wrong == null, work.name + ": " + work.wrong);
                Control.check(!work.thread.isAlive(), work.name + " hangs");
            }
        });
    }

    private static final byte[] DATA = Spinning.bytes(1 << 14);
    /** The end of a page is met by texts of all lengths at all places. */
    private static final String[] LATIN1 = texts('a');
    private static final String[] UTF16 = texts('\u0430');
    private static final String[] NEEDLES = {"bc", "zzz", "cdefg", "yzabcdefghi", "cdefghijklmnopqr", "efghijklmnopqrstuvwxyzabcdefghijklm",
        "uvwxyzabcdefghijklmnopqrstuvwxyz!"};
    private static final String[] WIDE_NEEDLES = wide(NEEDLES);

    static {
        // C2's string_indexof and string_indexofC8: needles known and unknown, short and long, in
        // texts of one and of two bytes a character, which may end at the end of a page.
        add("strings", "indexof-constant-latin1", () -> indexOfConstant(LATIN1));
        add("strings", "indexof-constant-utf16", () -> indexOfConstantWide(UTF16));
        add("strings", "indexof-constant-mixed", () -> indexOfConstant(UTF16));
        add("strings", "indexof-latin1", () -> indexOf(LATIN1, NEEDLES));
        add("strings", "indexof-utf16", () -> indexOf(UTF16, WIDE_NEEDLES));
        add("strings", "indexof-mixed", () -> indexOf(UTF16, NEEDLES));
        add("strings", "indexof-builder", Intrinsics::indexOfBuilder);
        add("strings", "contains-replace", Intrinsics::containsReplace);

        add("text", "indexof-char", Intrinsics::indexOfChar);
        add("text", "compareto-latin1", () -> compareTo(LATIN1, LATIN1));
        add("text", "compareto-utf16", () -> compareTo(UTF16, UTF16));
        add("text", "compareto-mixed", () -> compareTo(LATIN1, UTF16));
        add("text", "equals", Intrinsics::equalTexts);
        add("text", "hashcode", Intrinsics::hashCodes);
        add("text", "compress", Intrinsics::compress);
        add("text", "inflate", Intrinsics::inflate);
        add("text", "encode-latin1", () -> encode(StandardCharsets.ISO_8859_1));
        add("text", "encode-ascii", () -> encode(StandardCharsets.US_ASCII));
        add("text", "encode-utf8", () -> encode(StandardCharsets.UTF_8));
        add("text", "decode-utf8", Intrinsics::decode);
        add("text", "base64", Intrinsics::base64);

        add("arrays", "copy", Intrinsics::copies);
        add("arrays", "copy-checked", Intrinsics::checkedCopies);
        add("arrays", "clone", Intrinsics::clones);
        add("arrays", "fill", Intrinsics::fills);
        add("arrays", "sort-int", () -> sortInts(4_000));
        add("arrays", "sort-small", () -> sortInts(60));
        add("arrays", "sort-long", Intrinsics::sortLongs);
        add("arrays", "sort-double", Intrinsics::sortDoubles);
        add("arrays", "mismatch", Intrinsics::mismatch);
        add("arrays", "equals", Intrinsics::equalArrays);
        add("arrays", "direct-buffers", Intrinsics::directBuffers);

        add("numbers", "trigonometry", Intrinsics::trigonometry);
        add("numbers", "powers", Intrinsics::powers);
        add("numbers", "rounding", Intrinsics::rounding);
        add("numbers", "multiply-small", () -> multiply(300));
        add("numbers", "multiply-large", () -> multiply(2_000));
        add("numbers", "square", Intrinsics::square);
        add("numbers", "montgomery", Intrinsics::montgomery);
        add("numbers", "shift", Intrinsics::shift);
        add("numbers", "divide", Intrinsics::divide);
        add("numbers", "crc32", Intrinsics::crc32);
        add("numbers", "adler32", Intrinsics::adler32);

        add("crypto", "aes-ecb", () -> cipher("AES/ECB/NoPadding", 16, 0));
        add("crypto", "aes-cbc", () -> cipher("AES/CBC/NoPadding", 32, 16));
        add("crypto", "aes-ctr", () -> cipher("AES/CTR/NoPadding", 24, 16));
        add("crypto", "aes-gcm", () -> cipher("AES/GCM/NoPadding", 16, 12));
        add("crypto", "chacha20", () -> cipher("ChaCha20-Poly1305", 32, 12));
        for (String digest : new String[] {"MD5", "SHA-1", "SHA-256", "SHA-512", "SHA3-256"}) {
            add("crypto", digest, () -> digest(digest));
        }
        add("crypto", "hmac", Intrinsics::hmac);
        add("crypto", "elliptic-curve", () -> keyPairs("EC", 1));
        add("crypto", "ml-kem", () -> keyPairs("ML-KEM", 20));
        add("crypto", "ml-dsa", () -> keyPairs("ML-DSA", 20));

        // Loops that poll for safepoints, and a thread that asks for one after the other.
        add("polls", "loop", () -> pollingLoop(20_000_000));
        add("polls", "loop-of-calls", () -> pollingCalls(3_000_000));
        add("polls", "safepoints", Intrinsics::safepoints);
    }

    /** Texts of 1 to 160 letters of an alphabet that begins with first, and Latin letters in between. */
    private static String[] texts(char first) {
        String[] texts = new String[1_600];
        for (int i = 0; i < texts.length; i++) {
            char[] letters = new char[1 + i % 160];
            for (int k = 0; k < letters.length; k++) {
                letters[k] = (char) ((k % 64 < 40 ? 'a' : first) + (i + k) % 26);
            }
            letters[letters.length - 1] = first;
            texts[i] = new String(letters);
        }
        return texts;
    }

    private static String[] wide(String[] texts) {
        String[] wide = new String[texts.length];
        for (int i = 0; i < texts.length; i++) {
            wide[i] = texts[i].substring(0, texts[i].length() - 1) + '\u0437';
        }
        return wide;
    }

    private static long indexOfConstant(String[] texts) {
        long sum = 0;
        for (String text : texts) {
            sum += text.indexOf("c") + text.indexOf("mn") + text.indexOf("xya") + text.indexOf("lmno", 3) + text.indexOf("zabce")
                + text.indexOf("ghijklmop") + text.indexOf("abcdefghijklmnop") + text.indexOf("ghijklmnopqrstuvwxyzabcdeg");
        }
        return sum;
    }

    private static long indexOfConstantWide(String[] texts) {
        long sum = 0;
        for (String text : texts) {
            sum += text.indexOf("\u0430") + text.indexOf("b\u0432") + text.indexOf("\u0432\u0433\u0434") + text.indexOf("lmn\u0430")
                + text.indexOf("\u0432\u0433\u0434\u0435\u0436") + text.indexOf("mnopqrs\u0430")
                + text.indexOf("\u0430\u0431\u0432\u0433\u0434\u0435\u0436\u0437\u0438\u0439\u043a\u043b\u043c\u043d");
        }
        return sum;
    }

    private static long indexOf(String[] texts, String[] needles) {
        long sum = 0;
        for (String needle : needles) {
            for (String text : texts) {
                sum += text.indexOf(needle);
            }
        }
        return sum;
    }

    private static long indexOfBuilder() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 40; i++) {
            text.append(LATIN1[i * 31]).append(UTF16[i * 7]);
        }
        long sum = 0;
        for (String needle : NEEDLES) {
            sum += text.indexOf(needle) + text.indexOf(needle, 700) + text.lastIndexOf(needle);
        }
        return sum;
    }

    private static long containsReplace() {
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            for (String needle : NEEDLES) {
                sum += LATIN1[i * 7].contains(needle) ? i : 1;
            }
            sum += UTF16[i * 7].replace("bcd", "\u0437").length();
        }
        return sum;
    }

    private static long indexOfChar() {
        long sum = 0;
        for (int i = 0; i < LATIN1.length; i++) {
            sum += LATIN1[i].indexOf('z') + UTF16[i].indexOf('\u0437') + UTF16[i].indexOf('z', 9) + LATIN1[i].lastIndexOf('#');
        }
        return sum;
    }

    private static long compareTo(String[] a, String[] b) {
        long sum = 0;
        for (int i = 160; i < a.length; i++) {
            sum += a[i].compareTo(b[i]) + a[i].compareTo(b[i - 26]) + a[i].substring(1).compareTo(b[i]);
        }
        return sum;
    }

    private static long equalTexts() {
        long sum = 0;
        for (int i = 0; i < LATIN1.length; i++) {
            sum += LATIN1[i].equals(LATIN1[(i + 160 * 13) % 1_600]) ? i : 1;
            sum += UTF16[i].equals(UTF16[(i + 160) % 1_600]) ? i : 2;
            sum += UTF16[i].regionMatches(true, 1, LATIN1[i], 1, 12) ? i : 3;
        }
        return sum;
    }

    private static long hashCodes() {
        long sum = 0;
        int[] ints = new int[100];
        for (int i = 0; i < LATIN1.length; i++) {
            // A text keeps its hash code: another one is asked.
            sum += LATIN1[i].concat("a").hashCode() + UTF16[i].concat("b").hashCode();
            ints[i % 100] = i;
            sum += Arrays.hashCode(ints);
        }
        return sum + Arrays.hashCode(DATA);
    }

    private static long compress() {
        long sum = 0;
        char[] letters = new char[3_000];
        for (int i = 0; i < 100; i++) {
            Arrays.fill(letters, (char) ('a' + i));
            letters[2_999 - i] = (i & 3) == 0 ? '\u0430' : 'b';
            sum += new String(letters).hashCode() + String.valueOf(letters, 3, 40 + i).length();
        }
        return sum;
    }

    private static long inflate() {
        long sum = 0;
        for (int i = 0; i < LATIN1.length; i++) {
            char[] letters = LATIN1[i].toCharArray();
            sum += letters[letters.length / 2] + (LATIN1[i] + UTF16[i] + i).length();
        }
        return sum;
    }

    private static long encode(Charset charset) {
        long sum = 0;
        for (int i = 0; i < LATIN1.length; i++) {
            sum += LATIN1[i].getBytes(charset).length + UTF16[i].getBytes(charset).length;
        }
        return sum;
    }

    private static long decode() {
        byte[] plain = new byte[5_000];
        Arrays.fill(plain, (byte) 'x');
        byte[] other = plain.clone();
        other[4_000] = (byte) 0xd0;
        other[4_001] = (byte) 0xb0;
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += new String(plain, i, 4_000, StandardCharsets.UTF_8).length() + new String(other, i, 4_500, StandardCharsets.UTF_8).length();
        }
        return sum;
    }

    private static long base64() {
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            byte[] text = Base64.getEncoder().encode(Arrays.copyOf(DATA, 10_000 + i));
            sum += text.length + Base64.getDecoder().decode(text)[9_999];
            sum += Base64.getMimeDecoder().decode(Base64.getMimeEncoder().encode(DATA)).length;
        }
        return sum;
    }

    private static long copies() {
        long sum = 0;
        byte[] bytes = DATA.clone();
        char[] chars = new char[500];
        int[] ints = new int[500];
        long[] longs = new long[500];
        Object[] objects = new Object[500];
        for (int i = 0; i < 500; i++) {
            int n = i % 300;
            System.arraycopy(bytes, i, bytes, i + 7, n);
            System.arraycopy(bytes, i + 9, bytes, i, 3_000 + n);
            System.arraycopy(chars, 1, chars, 0, n);
            System.arraycopy(ints, 0, ints, 5, n);
            System.arraycopy(longs, 3, longs, 1, n);
            objects[i] = bytes;
            System.arraycopy(objects, 0, objects, 8, n);
            sum += bytes[i] + ints[i] + longs[n];
        }
        return sum;
    }

    private static long checkedCopies() {
        Object[] texts = new Object[300];
        Arrays.fill(texts, "text");
        long sum = 0;
        for (int i = 0; i < 300; i++) {
            String[] to = new String[301];
            System.arraycopy(texts, i, to, 1, 300 - i);
            texts[i] = i % 50 == 0 ? (Object) DATA : "text";
            try {
                System.arraycopy(texts, 0, to, 0, i);
                sum += to.length;
            } catch (ArrayStoreException asMeant) {
                sum++;
            }
        }
        return sum;
    }

    private static long clones() {
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += DATA.clone().length + NEEDLES.clone().length + Arrays.copyOfRange(DATA, i, 4_000).length
                + Arrays.copyOf(LATIN1, 700 + i, Object[].class).length;
        }
        return sum;
    }

    private static long fills() {
        byte[] bytes = new byte[5_000];
        short[] shorts = new short[3_000];
        int[] ints = new int[3_000];
        long[] longs = new long[100];
        for (int i = 0; i < 200; i++) {
            Arrays.fill(bytes, i, 4_000 + i, (byte) i);
            Arrays.fill(shorts, i % 9, 2_000, (short) i);
            Arrays.fill(ints, i);
            Arrays.fill(longs, i);
        }
        return bytes[2_000] + shorts[99] + ints[5] + longs[7];
    }

    private static long sortInts(int n) {
        int[] numbers = new Random(5).ints(n).toArray();
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            int[] sorted = numbers.clone();
            Arrays.sort(sorted);
            sum += sorted[i] + sorted[n - 1 - i];
        }
        return sum;
    }

    private static long sortLongs() {
        long[] numbers = new Random(6).longs(3_000).toArray();
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            long[] sorted = numbers.clone();
            Arrays.sort(sorted, i, 3_000);
            sum += sorted[1_000];
        }
        return sum;
    }

    private static long sortDoubles() {
        double[] numbers = new Random(7).doubles(3_000).toArray();
        float[] floats = new float[2_000];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) numbers[i];
        }
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            double[] sorted = numbers.clone();
            Arrays.sort(sorted);
            float[] sortedFloats = floats.clone();
            Arrays.sort(sortedFloats);
            sum += Math.round(sorted[1_000] * 1e6) + Math.round(sortedFloats[500] * 1e3);
        }
        return sum;
    }

    private static long mismatch() {
        // Since JDK 9 these compare by ArraysSupport.vectorizedMismatch.
        double[] a = new double[2_000];
        double[] b = new double[2_000];
        float[] c = new float[900];
        float[] d = new float[900];
        ByteBuffer left = ByteBuffer.wrap(DATA);
        ByteBuffer right = ByteBuffer.wrap(DATA.clone());
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            b[1_000 + i * 9] = i & 1;
            d[i * 9] = i & 2;
            sum += (Arrays.equals(a, b) ? 1 : 2) + (Arrays.equals(c, d) ? 3 : 4) + (left.equals(right) ? 5 : 6) + left.compareTo(right);
            b[1_000 + i * 9] = 0;
            d[i * 9] = 0;
        }
        return sum;
    }

    private static long equalArrays() {
        byte[] bytes = DATA.clone();
        char[] chars = new char[1_000];
        int[] ints = new int[1_000];
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            bytes[16_000 - i * 7]++;
            sum += (Arrays.equals(DATA, bytes) ? 1 : 2) + (Arrays.equals(chars, new char[1_000]) ? 3 : 4)
                + (Arrays.equals(ints, new int[1_000]) ? 5 : 6);
            bytes[16_000 - i * 7]--;
        }
        return sum;
    }

    private static long directBuffers() {
        ByteBuffer direct = ByteBuffer.allocateDirect(DATA.length);
        byte[] out = new byte[DATA.length];
        long sum = 0;
        for (int i = 0; i < 50; i++) {
            direct.clear();
            direct.put(DATA, i, 16_000);
            direct.flip();
            direct.get(out, i & 7, 16_000);
            sum += out[i] + direct.getLong(i * 9);
        }
        return sum;
    }

    private static long trigonometry() {
        double sum = 0;
        for (int i = 1; i < 2_000; i++) {
            double x = i * 0.7;
            sum += Math.sin(x) + Math.cos(x) + Math.tan(x * 1e5) + Math.tanh(x) + Math.sinh(1 / x) + Math.atan2(x, 3);
        }
        // The last bits may differ between the interpreter's way and the compiled one.
        return Math.round(sum);
    }

    private static long powers() {
        double sum = 0;
        for (int i = 1; i < 2_000; i++) {
            sum += Math.pow(i, 0.3) + Math.exp(-i * 0.001) + Math.log(i) + Math.log10(i) + Math.cbrt(i) + Math.sqrt(i) + i * 17.5 % 3.25;
        }
        return Math.round(sum);
    }

    private static long rounding() {
        long sum = 0;
        for (int i = 1; i < 5_000; i++) {
            double x = (i - 2_500) * 1234.567e15;
            sum += (long) x + (int) x + Math.round(i * 0.37) + (long) Math.rint(x / 1e15) + (long) Math.floor(i / 3.0) + (int) (float) x
                + Math.multiplyExact(i, 3L) + Long.bitCount(i * 77L) + Long.numberOfTrailingZeros(i) + Integer.reverse(i)
                + Long.divideUnsigned(-i, 12_345);
        }
        return sum;
    }

    private static BigInteger number(int bits, int seed) {
        return new BigInteger(bits, new Random(seed)).setBit(0).setBit(bits - 1);
    }

    private static long multiply(int bits) {
        BigInteger product = number(bits, 1);
        BigInteger factor = number(bits, 2);
        for (int i = 0; i < 300; i++) {
            product = product.multiply(factor).mod(factor.add(BigInteger.valueOf(i + 2))).setBit(bits - 1);
        }
        return product.hashCode();
    }

    private static long square() {
        BigInteger n = number(1_800, 3);
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            sum += n.add(BigInteger.valueOf(i)).pow(2).hashCode();
        }
        return sum;
    }

    private static long montgomery() {
        // RSA with keys of 512 and 2,048 bits.
        return number(500, 1).modPow(number(400, 2), number(512, 3)).hashCode()
            + number(2_000, 4).modPow(number(64, 5), number(2_048, 6)).hashCode();
    }

    private static long shift() {
        BigInteger n = number(5_000, 8);
        long sum = 0;
        for (int i = 1; i < 200; i++) {
            sum += n.shiftLeft(i).hashCode() + n.shiftRight(i * 3).hashCode();
        }
        return sum;
    }

    private static long divide() {
        BigInteger n = number(4_000, 9);
        long sum = 0;
        for (int i = 1; i < 100; i++) {
            sum += n.divide(number(1_000 + i, i)).hashCode() + Long.remainderUnsigned(-i * 123L, 77);
        }
        return sum + n.toString().length();
    }

    private static long crc32() {
        CRC32 crc = new CRC32();
        ByteBuffer direct = ByteBuffer.allocateDirect(4_000);
        for (int i = 0; i < 100; i++) {
            crc.update(DATA, i, 16_000);
            crc.update(DATA, 5, i);
            crc.update(i);
            direct.clear();
            crc.update(direct);
        }
        return crc.getValue();
    }

    private static long adler32() {
        Adler32 adler = new Adler32();
        for (int i = 0; i < 100; i++) {
            adler.update(DATA, i, 16_000);
        }
        return adler.getValue();
    }

    /** A loop over a long is left with its poll: no compiler knows how long it takes. */
    private static long pollingLoop(long n) {
        long sum = 0;
        for (long i = 0; i < n; i += 1 + (sum & 1)) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    private static long pollingCalls(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) {
            sum += fibonacci((int) (i & 3));
        }
        return sum;
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    private static long safepoints() {
        long running = 0;
        for (int i = 0; i < 20; i++) {
            // Asking for all threads at once stops all of them.
            running += Thread.getAllStackTraces().isEmpty() ? 1 : 0;
        }
        return running;
    }

    private static long cipher(String name, int keyLength, int ivLength) throws GeneralSecurityException {
        Cipher encrypt;
        Cipher decrypt;
        try {
            encrypt = Cipher.getInstance(name);
            decrypt = Cipher.getInstance(name);
        } catch (GeneralSecurityException older) {
            return idle();
        }
        String algorithm = name.substring(0, name.indexOf(name.contains("/") ? '/' : '-'));
        SecretKeySpec key = new SecretKeySpec(Arrays.copyOf(DATA, keyLength), algorithm);
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            // Some ciphers refuse to begin with the same key and vector again.
            byte[] iv = Arrays.copyOfRange(DATA, i, i + ivLength);
            initialise(encrypt, Cipher.ENCRYPT_MODE, key, iv, name);
            byte[] secret = encrypt.doFinal(DATA);
            initialise(decrypt, Cipher.DECRYPT_MODE, key, iv, name);
            sum += secret[i] + (Arrays.equals(decrypt.doFinal(secret), DATA) ? 1_000 : 0);
        }
        return sum;
    }

    private static void initialise(Cipher cipher, int mode, SecretKeySpec key, byte[] iv, String name) throws GeneralSecurityException {
        if (iv.length == 0) {
            cipher.init(mode, key);
        } else if (name.contains("GCM")) {
            cipher.init(mode, key, new GCMParameterSpec(128, iv));
        } else {
            cipher.init(mode, key, new IvParameterSpec(iv));
        }
    }

    private static long digest(String name) {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance(name);
        } catch (GeneralSecurityException older) {
            return idle();
        }
        long sum = 0;
        for (int i = 0; i < 5; i++) {
            sum += digest.digest(DATA)[i];
            digest.update(DATA, 0, 20 + i);
        }
        return sum;
    }

    private static long hmac() throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(DATA, 0, 32, "HmacSHA256"));
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            mac.update(DATA, i, 100);
            sum += mac.doFinal()[3];
        }
        return sum;
    }

    private static long keyPairs(String algorithm, int count) {
        java.security.KeyPairGenerator generator;
        try {
            generator = java.security.KeyPairGenerator.getInstance(algorithm);
        } catch (GeneralSecurityException older) {
            return idle();
        }
        long sum = 0;
        for (int i = 0; i < count; i++) {
            sum += generator.generateKeyPair().getPublic().getAlgorithm().length();
        }
        return sum;
    }

    /** Instead of a round, where this JDK does not know the algorithm. */
    private static long idle() {
        try {
            Thread.sleep(10);
        } catch (InterruptedException asked) {
            Thread.currentThread().interrupt();
        }
        return 0;
    }
}
