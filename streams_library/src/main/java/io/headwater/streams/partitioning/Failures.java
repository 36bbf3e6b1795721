package io.headwater.streams.partitioning;

/** Describes what the code of an application throws, without its messages: they may have keys of records, and secrets of configs. */
final class Failures {
    private static final String[] OF_JAVA = {"java.", "javax.", "jdk.", "sun."};

    private Failures() {
    }

    /**
     * Returns the class, the class of the cause, which class is missing if one is, and the first location that is not in Java's own
     * library; of a static partitioner's config, its name and what it must be.
     */
    static String describe(final Throwable error) {
        if (error instanceof UnusablePartitionerException) {
            return error.getMessage();
        }
        Throwable root = error;
        for (int depth = 0; root.getCause() != null && depth < 100; depth++) {
            root = root.getCause();
        }
        if (root instanceof InvalidSettingException) {
            return ((InvalidSettingException) root).rule();
        }
        final String cause = root == error ? "" : ", caused by " + root.getClass().getName();
        final String missing = root.getClass() == NoClassDefFoundError.class || root.getClass() == ClassNotFoundException.class
            ? " (" + root.getMessage() + ")" : "";
        final StackTraceElement[] trace = root.getStackTrace();
        return error.getClass().getName() + cause + missing + (trace.length == 0 ? "" : " at " + location(trace));
    }

    private static StackTraceElement location(final StackTraceElement[] trace) {
        for (final StackTraceElement each : trace) {
            if (!isOfJava(each.getClassName())) {
                return each;
            }
        }
        return trace[0];
    }

    private static boolean isOfJava(final String name) {
        for (final String prefix : OF_JAVA) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }
}
