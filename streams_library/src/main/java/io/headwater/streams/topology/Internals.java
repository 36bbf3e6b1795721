package io.headwater.streams.topology;

import org.apache.kafka.streams.Topology;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads fields and methods of Kafka Streams that are not public, by their names since 3.7. */
final class Internals {
    static final String OLDEST = "3.7";
    static final String NEWEST = "4.3";
    private static final int OLDEST_MAJOR = 3;
    private static final int OLDEST_MINOR = 7;
    private static final int LAST_BEFORE_CONFLUENT = 4;
    private static final Pattern RELEASE = Pattern.compile("^(\\d{1,3})\\.(\\d{1,3})");
    private static final String VERSIONS = "/kafka/kafka-streams-version.properties";

    private Internals() {
    }

    /** Returns the version of the Kafka Streams library as it logs it, such as {@code 4.1.1} or {@code 7.6.0-ccs}. */
    static String version() {
        final String given = System.getProperty("headwater.kafka.streams.version");
        if (given != null) {
            return given;
        }
        try (InputStream stream = Topology.class.getResourceAsStream(VERSIONS)) {
            if (stream != null) {
                final Properties properties = new Properties();
                properties.load(stream);
                final String found = properties.getProperty("version");
                if (found != null && !found.isBlank()) {
                    return found.trim();
                }
            }
        } catch (final IOException error) {
            throw new UnsupportedKafkaStreamsException("The version of Kafka Streams cannot be read.", error);
        }
        final String ofJar = Topology.class.getPackage().getImplementationVersion();
        if (ofJar != null) {
            return ofJar;
        }
        throw new UnsupportedKafkaStreamsException(
            "The version of Kafka Streams is not known: the class path has no kafka/kafka-streams-version.properties."
                + " Set the system property headwater.kafka.streams.version.", null);
    }

    /** Throws if this version of Kafka Streams is older than the oldest one whose internals are known. */
    static void checkVersion() {
        final String version = version();
        final Matcher release = RELEASE.matcher(version);
        if (!release.find()) {
            return;
        }
        int major = Integer.parseInt(release.group(1));
        if (version.contains("-c") && major > LAST_BEFORE_CONFLUENT) {
            major -= LAST_BEFORE_CONFLUENT; // Confluent Platform 7.6 contains Kafka 3.6
        }
        final int minor = Integer.parseInt(release.group(2));
        if (major < OLDEST_MAJOR || major == OLDEST_MAJOR && minor < OLDEST_MINOR) {
            throw new UnsupportedKafkaStreamsException(
                "Kafka Streams " + version + " is not supported. This library supports Kafka Streams " + OLDEST + " to " + NEWEST + ".", null);
        }
    }

    /** Returns the value of a field of an object, also of one that its superclasses declare. */
    static Object field(final Object owner, final String name) {
        for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
            try {
                final Field field = type.getDeclaredField(name);
                open(field);
                return field.get(owner);
            } catch (final NoSuchFieldException error) {
                continue;
            } catch (final IllegalAccessException error) {
                throw changed(owner, name, error);
            }
        }
        throw changed(owner, name, null);
    }

    /** Returns the result of a method without parameters that has one of the names. */
    static Object call(final Object owner, final String... names) {
        for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
            for (final String name : names) {
                try {
                    final Method method = type.getDeclaredMethod(name);
                    open(method);
                    return method.invoke(owner);
                } catch (final NoSuchMethodException error) {
                    continue;
                } catch (final IllegalAccessException error) {
                    throw changed(owner, name, error);
                } catch (final InvocationTargetException error) {
                    throw new IllegalStateException(owner.getClass().getName() + "#" + name + " failed", error.getCause());
                }
            }
        }
        throw changed(owner, names[0], null);
    }

    private static void open(final AccessibleObject member) {
        try {
            member.setAccessible(true);
        } catch (final RuntimeException error) {
            throw new UnsupportedKafkaStreamsException(
                "Kafka Streams is a module that does not open its packages. Put it on the class path.", error);
        }
    }

    private static UnsupportedKafkaStreamsException changed(final Object owner, final String name, final Throwable cause) {
        return new UnsupportedKafkaStreamsException(
            "Kafka Streams " + version() + " has no " + owner.getClass().getName() + "#" + name
                + ". This library supports Kafka Streams " + OLDEST + " to " + NEWEST + ".", cause);
    }
}
