package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

import java.util.Collection;

/** Answers the requests that Kafka Streams' assignor sends through its {@link Admin} in one pass. */
interface AdminPass {
    /** Returns the answer to {@code describeTopics} of topic names. */
    Object describeTopics(Admin admin, Collection<String> topics);

    /** Returns the answer to {@code createTopics}. */
    Object createTopics(Admin admin, Collection<NewTopic> topics);

    /** Called before any other request. */
    void otherRequest();
}
