package org.apache.kafka.streams;

import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;

/** Opens what {@link Topology} keeps protected. */
public final class TopologyInsides {
    private TopologyInsides() {
    }

    public static InternalTopologyBuilder builderOf(final Topology topology) {
        return topology.internalTopologyBuilder;
    }
}
