package io.headwater.streams;

/** Says what {@link InternalTopics#initialize} does if some internal topics exist and others do not (KIP-698). */
public final class InitParameters {
    private final boolean setupIfIncomplete;

    private InitParameters(final boolean setupIfIncomplete) {
        this.setupIfIncomplete = setupIfIncomplete;
    }

    /** Returns the default: an incomplete setup is a {@link MissingInternalTopicsException}. */
    public static InitParameters initParameters() {
        return new InitParameters(false);
    }

    /** Returns parameters that create the missing topics of an incomplete setup. */
    public InitParameters enableSetupInternalTopicsIfIncomplete() {
        return new InitParameters(true);
    }

    /** Returns parameters that refuse an incomplete setup. */
    public InitParameters disableSetupInternalTopicsIfIncomplete() {
        return new InitParameters(false);
    }

    public boolean setupInternalTopicsIfIncompleteEnabled() {
        return setupIfIncomplete;
    }
}
