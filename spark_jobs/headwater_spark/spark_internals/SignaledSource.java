import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Lets a streaming query wait for a signal before it asks its source for the latest offsets again.
 *
 * Spark asks every 10 ms. `wrap` returns a table with the same methods, whose stream waits in `latestOffset`
 * if the call before has found nothing new. Janino, Spark's own compiler, compiles this file when an
 * application starts (`input_signals.py`); it knows no lambdas.
 */
public final class SignaledSource {
    final Semaphore signals = new Semaphore(0);
    private volatile long maxWaitMs = 0;

    /** Wait at most this long for a signal; 0 = do not wait. The query checks once in any case. */
    public void setMaxWaitMs(long milliseconds) {
        maxWaitMs = milliseconds;
        signals.release();
    }

    public void signal() {
        signals.release();
    }

    public Object wrap(Object target) {
        Set interfaces = new LinkedHashSet();
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            Class[] own = each.getInterfaces();
            for (int i = 0; i < own.length; i++) {
                interfaces.add(own[i]);
            }
        }
        Class[] all = (Class[]) interfaces.toArray(new Class[0]);
        return Proxy.newProxyInstance(target.getClass().getClassLoader(), all, new Handler(this, target));
    }

    void await() {
        try {
            signals.tryAcquire(maxWaitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException stopped) {
            // Spark recognizes the stop of a query by this; a proxy may not throw the checked exception.
            throw new UncheckedIOException(new InterruptedIOException("query stopped"));
        }
    }

    static final class Handler implements InvocationHandler {
        private final SignaledSource source;
        private final Object target;
        private boolean foundNothing = false;

        Handler(SignaledSource source, Object target) {
            this.source = source;
            this.target = target;
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            String name = method.getName();
            int count = arguments == null ? 0 : arguments.length;
            if (name.equals("equals") && count == 1) {
                return Boolean.valueOf(proxy == arguments[0]);
            }
            if (name.equals("latestOffset") && count == 2) {
                if (foundNothing) {
                    source.await();
                }
                source.signals.drainPermits(); // before the call: a later signal is for later records
                Object latest = call(method, arguments);
                foundNothing = latest == null || latest.equals(arguments[0]);
                return latest;
            }
            Object result = call(method, arguments);
            boolean leadsToStream =
                name.equals("newScanBuilder") || name.equals("build") || name.equals("toMicroBatchStream");
            return leadsToStream ? source.wrap(result) : result;
        }

        private Object call(Method method, Object[] arguments) throws Throwable {
            try {
                return method.invoke(target, arguments);
            } catch (InvocationTargetException failure) {
                throw unchecked(failure.getCause());
            }
        }

        /** Return what a proxy may throw: Scala's methods throw checked exceptions that they do not declare. */
        private static Throwable unchecked(Throwable failure) {
            while (failure instanceof ExecutionException && failure.getCause() != null) {
                failure = failure.getCause();
            }
            if (failure instanceof InterruptedException) {
                return new UncheckedIOException(new InterruptedIOException("query stopped"));
            }
            if (failure instanceof RuntimeException || failure instanceof Error) {
                return failure;
            }
            return new RuntimeException(failure);
        }
    }
}
