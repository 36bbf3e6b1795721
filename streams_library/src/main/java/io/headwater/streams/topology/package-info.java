/**
 * Writes the topology of an application as a topology document of Headwater, and compares a document with it.
 *
 * <p>{@link io.headwater.streams.topology.TopologyDocument} is for tests of the application,
 * {@link io.headwater.streams.topology.ExportProgram} is the program that {@code headwater import --jar} runs.
 */
package io.headwater.streams.topology;
