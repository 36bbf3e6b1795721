package headwater.oracle;

import org.apache.kafka.clients.ClientDnsLookup;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.Heartbeat;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.HostInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;

/** Kafka's tables of configs of Kafka Streams and its clients, and the checks when an application starts. */
final class Configs {
    private static final Logger LOG = LoggerFactory.getLogger(Configs.class);
    private static final String PUSH = "enable.metrics.push";
    private static final Set<String> TYPED = Set.of("main.consumer." + PUSH, "consumer." + PUSH, "admin." + PUSH);

    private Configs() {
    }

    /** For each client a row for each config: its type, the default as text, the validator, whether it is deprecated. */
    static Map<String, Object> tables() {
        return Map.of(
            "streams", table(StreamsConfig.configDef(), StreamsConfig.class),
            "consumer", table(ConsumerConfig.configDef(), ConsumerConfig.class),
            "producer", table(ProducerConfig.configDef(), ProducerConfig.class),
            "admin", table(AdminClientConfig.configDef(), AdminClientConfig.class),
            "rules", rules());
    }

    /** What StreamsConfig sets for its clients, and which configs of them it ignores. A value that is no text is null. */
    private static Map<String, Object> rules() {
        return Map.of(
            "ignored", names(StreamsConfig.class, "NON_CONFIGURABLE_CONSUMER_DEFAULT_CONFIGS"),
            "ignored by exactly once", names(StreamsConfig.class, "NON_CONFIGURABLE_CONSUMER_EOS_CONFIGS"),
            "ignored for producers by exactly once", names(StreamsConfig.class, "NON_CONFIGURABLE_PRODUCER_EOS_CONFIGS"),
            "set", texts("CONSUMER_DEFAULT_OVERRIDES"),
            "set by exactly once", texts("CONSUMER_EOS_OVERRIDES"),
            "set for producers", texts("PRODUCER_DEFAULT_OVERRIDES"),
            "set for producers by exactly once", texts("PRODUCER_EOS_OVERRIDES"),
            "unsupported by the classic protocol", unsupportedByClassic(),
            "unsupported by the consumer protocol", names(ConsumerConfig.class, "CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS"));
    }

    /** Kafka 3.9 has a method for its only one, later versions have a list. */
    private static Object unsupportedByClassic() {
        for (final Method method : ConsumerConfig.class.getDeclaredMethods()) {
            if (method.getName().equals("checkGroupRemoteAssignor")) {
                return List.of(ConsumerConfig.GROUP_REMOTE_ASSIGNOR_CONFIG);
            }
        }
        return names(ConsumerConfig.class, "CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS");
    }

    private static Map<String, String> texts(final String name) {
        final Map<String, String> texts = new TreeMap<>();
        ((Map<?, ?>) constant(StreamsConfig.class, name)).forEach((key, value) -> texts.put((String) key, value instanceof String text ? text : null));
        return texts;
    }

    private static Object names(final Class<?> owner, final String name) {
        final Object names = constant(owner, name);
        return names == null ? List.of() : names;
    }

    private static Object constant(final Class<?> owner, final String name) {
        try {
            return get(owner.getDeclaredField(name), null);
        } catch (final NoSuchFieldException error) {
            return null;
        }
    }

    private static Map<String, Object> table(final ConfigDef definition, final Class<?> owner) {
        final Set<String> deprecated = deprecated(owner);
        final Map<String, Object> table = new TreeMap<>();
        for (final ConfigDef.ConfigKey key : definition.configKeys().values()) {
            final Map<String, Object> row = new TreeMap<>();
            row.put("type", key.type.name());
            if (!key.hasDefault()) {
                row.put("required", true);
            } else if (!key.name.equals(StreamsConfig.STATE_DIR_CONFIG)) {
                row.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
            }
            row.put("validator", shown(key.validator));
            row.put("internal", key.internalConfig);
            row.put("deprecated", deprecated.contains(key.name));
            table.put(key.name, row);
        }
        return table;
    }

    private static Set<String> deprecated(final Class<?> owner) {
        final Set<String> deprecated = new HashSet<>();
        final Set<String> others = new HashSet<>();
        for (final Field field : owner.getFields()) {
            if (field.getType() == String.class) {
                (field.isAnnotationPresent(Deprecated.class) ? deprecated : others).add((String) get(field, null));
            }
        }
        deprecated.removeAll(others); // only another name of the constant is deprecated
        return deprecated;
    }

    /** Class and fields of a validator; functions are null. */
    static Object shown(final Object validator) {
        if (validator == null) {
            return null;
        }
        final Map<String, Object> shown = new TreeMap<>();
        shown.put("class", validator.getClass().getSimpleName());
        shown.put("text", validator.toString());
        for (final Field field : validator.getClass().getDeclaredFields()) {
            // a static field may hold the validator itself
            final boolean isSkipped = field.getName().contains("$") || Modifier.isStatic(field.getModifiers());
            final Object value = isSkipped ? null : get(field, validator);
            if (value instanceof ConfigDef.Validator) {
                shown.put(field.getName(), shown(value));
            } else if (value instanceof Iterable<?> all) {
                final List<Object> items = new ArrayList<>();
                all.forEach(item -> items.add(item instanceof ConfigDef.Validator ? shown(item) : item));
                shown.put(field.getName(), items);
            } else if (value instanceof Number || value instanceof Boolean || value instanceof String) {
                shown.put(field.getName(), value);
            }
        }
        return shown;
    }

    private static Object get(final Field field, final Object owner) {
        try {
            field.setAccessible(true);
            return field.get(owner);
        } catch (final IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    /** For each mapping of configs the class and the message of the exception, null if an application starts. */
    static List<Object> refusals(final List<Object> all) {
        final List<Object> refusals = new ArrayList<>();
        for (final Object configs : all) {
            try {
                start(Call.mapping(configs));
                refusals.add(null);
            } catch (final Exception | NoClassDefFoundError error) {
                refusals.add(Arrays.asList(error.getClass().getSimpleName(), error.getMessage()));
            }
        }
        return refusals;
    }

    /** Create the configs of all clients as KafkaStreams does, and check what their constructors check. */
    private static void start(final Map<String, Object> configs) throws Exception {
        final Map<String, Object> properties = new HashMap<>(configs);
        properties.putIfAbsent(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        properties.putIfAbsent(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        // Kafka Streams casts them to Boolean, so they cannot be in a properties file.
        properties.replaceAll((key, value) -> TYPED.contains(key) ? ConfigDef.parseType(key, value, ConfigDef.Type.BOOLEAN) : value);
        final StreamsConfig streams = new StreamsConfig(properties);
        final Properties ofBuilder = new Properties();
        ofBuilder.putAll(configs);
        new StreamsBuilder().build(ofBuilder);
        HostInfo.buildFromEndpoint(streams.getString(StreamsConfig.APPLICATION_SERVER_CONFIG));
        ClientUtils.parseAndValidateAddresses(streams.getList(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG), ClientDnsLookup.USE_ALL_DNS_IPS);
        final ConsumerConfig main = consumer(streams.getMainConsumerConfigs("application", "main", 0));
        consumer(streams.getRestoreConsumerConfigs("restore"));
        consumer(streams.getGlobalConsumerConfigs("global"));
        new AdminClientConfig(streams.getAdminConfigs("admin"));
        final Map<String, Object> producer = streams.getProducerConfigs("producer");
        if (streams.getString(StreamsConfig.PROCESSING_GUARANTEE_CONFIG).startsWith("exactly")) {
            producer.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "application-0");
        }
        final Constructor<ProducerConfig> ofProducer = ProducerConfig.class.getConstructor(Map.class);
        final Method deliveryTimeout = KafkaProducer.class.getDeclaredMethod("configureDeliveryTimeout", ProducerConfig.class, Logger.class);
        deliveryTimeout.setAccessible(true);
        producer.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        producer.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        try {
            deliveryTimeout.invoke(null, ofProducer.newInstance(producer), LOG);
        } catch (final InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
        final boolean ofStreams = streams.values().containsKey("group.protocol") && "streams".equalsIgnoreCase(streams.getString("group.protocol"));
        if (!ofStreams) {
            final GroupRebalanceConfig group = new GroupRebalanceConfig(main, GroupRebalanceConfig.ProtocolType.CONSUMER);
            if ("classic".equalsIgnoreCase(main.getString("group.protocol"))) {
                new Heartbeat(group, Time.SYSTEM);
            }
        }
    }

    private static ConsumerConfig consumer(final Map<String, Object> configs) {
        return new ConsumerConfig(ConsumerConfig.appendDeserializerToConfig(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    }
}
