package org.apache.kafka.streams;

import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;

/** Gives access to protected members of {@link Topology}. */
public final class TopologyInsides {
    private TopologyInsides() {
    }

    public static InternalTopologyBuilder builderOf(final Topology topology) {
        return topology.internalTopologyBuilder;
    }
}
