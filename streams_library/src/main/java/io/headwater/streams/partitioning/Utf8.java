package io.headwater.streams.partitioning;

import java.util.Arrays;

/** Decodes keys as Headwater's runtime does: bytes that are not UTF-8 become the code points U+DC80 to U+DCFF. */
final class Utf8 {
    private static final int ESCAPED = 0xDC00;

    private Utf8() {
    }

    static int[] codePoints(final byte[] bytes) {
        final int[] points = new int[bytes.length];
        int count = 0;
        int position = 0;
        while (position < bytes.length) {
            final int length = length(bytes, position);
            points[count++] = length == 0 ? ESCAPED + (bytes[position] & 0xFF) : decoded(bytes, position, length);
            position += Math.max(1, length);
        }
        return Arrays.copyOf(points, count);
    }

    /** Returns the length of the valid sequence at a position; 0 if there is none. */
    private static int length(final byte[] bytes, final int position) {
        final int first = bytes[position] & 0xFF;
        final int length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
        if (length == 0 || position + length > bytes.length) {
            return 0;
        }
        for (int index = 1; index < length; index++) {
            if ((bytes[position + index] & 0xC0) != 0x80) {
                return 0;
            }
        }
        final int point = decoded(bytes, position, length);
        final boolean isOverlong = length == 3 && point < 0x800 || length == 4 && point < 0x10000;
        final boolean isSurrogate = point >= 0xD800 && point < 0xE000;
        return isOverlong || isSurrogate || point > 0x10FFFF ? 0 : length;
    }

    private static int decoded(final byte[] bytes, final int position, final int length) {
        if (length == 1) {
            return bytes[position];
        }
        int point = bytes[position] & (0xFF >> (length + 1));
        for (int index = 1; index < length; index++) {
            point = point << 6 | bytes[position + index] & 0x3F;
        }
        return point;
    }
}
