/*
 * The wall clock of a host, shifted by the nanoseconds in the file that HEADWATER_CLOCK names.
 *
 * Linux has no namespace for this clock. Programs that are started with this library (LD_PRELOAD) read the
 * shifted time. Deadlines that they compute from it are shifted back for the kernel. A condition variable may
 * have a deadline of the monotonic clock: such a number is small.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000LL
#define SMALLEST_WALL_SECONDS 1000000000LL

static const volatile long long *shift;
static int (*next_gettime)(clockid_t, struct timespec *);
static int (*next_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*next_cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);

static void __attribute__((constructor)) open_shift(void) {
    const char *name = getenv("HEADWATER_CLOCK");
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        void *found = mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
        shift = found == MAP_FAILED ? NULL : found;
        close(file);
    }
    *(void **)&next_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&next_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    *(void **)&next_cnd_timedwait = dlsym(RTLD_NEXT, "cnd_timedwait");
}

static void add(struct timespec *time, long long nanoseconds) {
    long long sum = time->tv_sec * NANOSECONDS + time->tv_nsec + nanoseconds;
    time->tv_sec = sum / NANOSECONDS;
    time->tv_nsec = sum % NANOSECONDS;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = next_gettime != NULL ? next_gettime(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        add(time, *shift);
    }
    return failed;
}

int timespec_get(struct timespec *time, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec time;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &time)) {
        return -1;
    }
    found->tv_sec = time.tv_sec;
    found->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) {
        return -1;
    }
    if (found != NULL) {
        *found = now.tv_sec;
    }
    return now.tv_sec;
}

static struct timespec real_deadline(const struct timespec *deadline) {
    struct timespec real = *deadline;
    if (shift != NULL && real.tv_sec > SMALLEST_WALL_SECONDS) {
        add(&real, -*shift);
    }
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
    struct timespec real = real_deadline(deadline);
    return next_timedwait(cond, mutex, &real);
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict deadline) {
    struct timespec real = real_deadline(deadline);
    return next_cnd_timedwait(cond, mutex, &real);
}
