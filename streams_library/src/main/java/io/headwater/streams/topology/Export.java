package io.headwater.streams.topology;

import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.function.Supplier;

/** Calls the method of an application that builds the topology, or reads the field with it, and writes the document. */
final class Export {
    private static final String SEPARATOR = "::";

    private final String target;
    private final Properties properties;

    private Export(final String target, final Properties properties) {
        this.target = target;
        this.properties = properties;
    }

    static void write(final String target, final Properties properties, final Path document) {
        final Topology topology = new Export(target, properties).topology();
        TopologyDocument.write(topology, properties, document);
    }

    private Topology topology() {
        final int separator = target.indexOf(SEPARATOR);
        final String className = target.substring(0, separator);
        final String member = target.substring(separator + SEPARATOR.length());
        try {
            final Class<?> type = Class.forName(className, true, Thread.currentThread().getContextClassLoader());
            return read(type, member);
        } catch (final ClassNotFoundException error) {
            throw new ExportException("no class", className, null);
        } catch (final ExceptionInInitializerError error) {
            throw new ExportException("threw", String.valueOf(error.getCause()), error.getCause());
        }
    }

    private Topology read(final Class<?> type, final String member) {
        final List<Method> methods = new ArrayList<>();
        for (Class<?> declaring = type; declaring != null && declaring != Object.class; declaring = declaring.getSuperclass()) {
            Arrays.stream(declaring.getDeclaredMethods())
                .filter(method -> method.getName().equals(member) && !method.isBridge() && takes(method.getParameterTypes()))
                .forEach(methods::add);
        }
        // A method that returns a topology is meant rather than another one of the same name.
        methods.sort((one, other) -> Boolean.compare(returnsTopology(other), returnsTopology(one)));
        if (!methods.isEmpty()) {
            return call(type, methods.get(0));
        }
        for (Class<?> declaring = type; declaring != null; declaring = declaring.getSuperclass()) {
            try {
                final Field field = declaring.getDeclaredField(member);
                field.setAccessible(true);
                return resolve(guarded(() -> field.get(Modifier.isStatic(field.getModifiers()) ? null : instance(type))), null);
            } catch (final NoSuchFieldException error) {
                continue;
            }
        }
        throw new ExportException("no member", String.join(", ", candidates(type)), null);
    }

    private static boolean takes(final Class<?>[] parameters) {
        return parameters.length == 0
            || parameters.length == 1 && (parameters[0].isAssignableFrom(Properties.class) || parameters[0] == StreamsBuilder.class);
    }

    private static boolean returnsTopology(final Method method) {
        return Topology.class.isAssignableFrom(method.getReturnType());
    }

    private Topology call(final Class<?> type, final Method method) {
        method.setAccessible(true);
        final Object owner = Modifier.isStatic(method.getModifiers()) ? null : instance(type);
        if (method.getParameterCount() == 0) {
            return resolve(guarded(() -> method.invoke(owner)), null);
        }
        if (method.getParameterTypes()[0] == StreamsBuilder.class) {
            final StreamsBuilder builder = new StreamsBuilder();
            return resolve(guarded(() -> method.invoke(owner, builder)), builder);
        }
        return resolve(guarded(() -> method.invoke(owner, properties)), null);
    }

    /** Returns the object of Kotlin or Scala, or a new one. */
    private static Object instance(final Class<?> type) {
        for (final String singleton : List.of("INSTANCE", "MODULE$")) {
            try {
                final Field field = type.getDeclaredField(singleton);
                field.setAccessible(true);
                return field.get(null);
            } catch (final ReflectiveOperationException error) {
                continue;
            }
        }
        final Constructor<?> constructor;
        try {
            constructor = type.getDeclaredConstructor();
        } catch (final NoSuchMethodException error) {
            throw new ExportException("no constructor", type.getName(), null);
        }
        constructor.setAccessible(true);
        return guarded(constructor::newInstance);
    }

    private Topology resolve(final Object value, final StreamsBuilder filled) {
        if (value instanceof Topology) {
            return (Topology) value;
        }
        if (filled != null) {
            return (Topology) guarded(() -> filled.build(properties));
        }
        if (value instanceof StreamsBuilder) {
            return (Topology) guarded(() -> ((StreamsBuilder) value).build(properties));
        }
        if (value instanceof Supplier) {
            return resolve(guarded(((Supplier<?>) value)::get), null);
        }
        if (value instanceof Callable) {
            return resolve(guarded((Callable<?>) value), null);
        }
        if (value instanceof Function) {
            return resolve(guarded(() -> apply((Function<?, ?>) value)), null);
        }
        throw new ExportException("no topology", value == null ? "null" : value.getClass().getName(), null);
    }

    @SuppressWarnings("unchecked")
    private Object apply(final Function<?, ?> function) {
        return ((Function<Map<Object, Object>, ?>) function).apply(properties);
    }

    private static Object guarded(final Callable<?> call) {
        try {
            return call.call();
        } catch (final InvocationTargetException error) {
            throw thrown(error.getCause());
        } catch (final Exception error) {
            throw thrown(error);
        }
    }

    private static RuntimeException thrown(final Throwable cause) {
        if (cause instanceof ExportException) {
            return (ExportException) cause;
        }
        if (cause instanceof LinkageError && !(cause instanceof ExceptionInInitializerError)) {
            return new ExportException(ExportProgram.outcomeOf((LinkageError) cause), String.valueOf(cause.getMessage()), cause);
        }
        return new ExportException("threw", String.valueOf(cause), cause);
    }

    /** Returns the methods and fields of a class that may be meant. */
    private static TreeSet<String> candidates(final Class<?> type) {
        final TreeSet<String> names = new TreeSet<>();
        for (final Method method : type.getDeclaredMethods()) {
            final boolean isBuilt = method.getReturnType() == StreamsBuilder.class || returnsTopology(method);
            final boolean takesBuilder = Arrays.asList(method.getParameterTypes()).contains(StreamsBuilder.class);
            if (!method.isSynthetic() && takes(method.getParameterTypes()) && (isBuilt || takesBuilder)) {
                names.add(method.getName());
            }
        }
        for (final Field field : type.getDeclaredFields()) {
            if (Topology.class.isAssignableFrom(field.getType()) || Supplier.class.isAssignableFrom(field.getType())) {
                names.add(field.getName());
            }
        }
        return names;
    }
}
