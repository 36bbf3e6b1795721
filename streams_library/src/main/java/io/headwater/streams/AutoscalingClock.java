package io.headwater.streams;

/** Measures {@code partition.autoscaling.timeout.ms}: from the first failure; any success resets it (KIP-878). */
final class AutoscalingClock {
    private final long timeoutMs;
    private long firstFailureMs = -1;
    private boolean isReported;
    private String gaveUpOn = "";

    AutoscalingClock(final long timeoutMs) {
        this.timeoutMs = timeoutMs;
    }

    void success() {
        firstFailureMs = -1;
        isReported = false;
        gaveUpOn = "";
    }

    /** Begins again if something else is to be expanded than when the time expired. */
    void begin(final String expansion) {
        if (isReported && !gaveUpOn.equals(expansion)) {
            success();
        }
    }

    void failure(final long nowMs) {
        if (firstFailureMs < 0) {
            firstFailureMs = nowMs;
        }
    }

    boolean isExpired(final long nowMs) {
        return firstFailureMs >= 0 && nowMs - firstFailureMs >= timeoutMs;
    }

    /** Returns whether the time has expired and this was not reported yet: a failure counts once. */
    boolean report(final long nowMs, final String expansion) {
        final boolean isNew = isExpired(nowMs) && !isReported;
        isReported |= isNew;
        gaveUpOn = expansion;
        return isNew;
    }
}
