/*
 * How the host looks at a timeline and waits for one; the device wakes nobody.
 *
 * A waiter looks without sleeping for a while, then sleeps in slices that grow with the time it has
 * waited. In between it asks whether the device is well, because failed work signals nothing.
 */
#include "../chassis/futex.h"
#include "../chassis/retire.h"
#include "timeline.h"

#include <sched.h>
#include <sys/prctl.h>

/* How long a host waiter looks without sleeping. Most batches are over by then, and a sleeper
 * learns of the end 10 to 80 us late: 8 % of a copy of 0.5 ms (measured on an H200 with 60 us
 * here). The driver's own wait never sleeps. */
#define SPIN_NS 1000000ull
/* Between two questions whether the device is well, while looking. */
#define HEALTH_NS 100000ull
/* Between two looks of a sleeper, which the device cannot wake. */
#define LEAST_NAP_NS 20000ull
#define MOST_NAP_NS  1000000ull

/* The value that is reached now, from anywhere. */
static uint64_t look(bp_cuda_timeline *timeline) {
    if (timeline->word)
        return bp_cuda_timeline_look(timeline);
    uint64_t value = atomic_load_explicit(&timeline->value, memory_order_acquire);
    if (value >= atomic_load_explicit(&timeline->issued, memory_order_acquire))
        return value;
    pthread_mutex_lock(&timeline->device->base.lock);
    value = bp_cuda_timeline_look(timeline);
    pthread_mutex_unlock(&timeline->device->base.lock);
    return value;
}

/* BP_OK, the poison, or BP_DEADLINE for "not yet". No sentence. */
static int32_t state(bp_cuda_timeline *timeline, uint64_t value) {
    int32_t error = bp_sticky_error(&timeline->sticky);
    if (error)
        return error;
    return look(timeline) >= value ? BP_OK : BP_DEADLINE;
}

/* Sleeps in slices that grow with the time already waited, because only the host wakes it. */
static void doze(bp_cuda_timeline *timeline, uint32_t seen, uint64_t waited_ns, uint64_t now,
                 uint64_t deadline_ns) {
    uint64_t slice = waited_ns / 64;
    slice = slice < LEAST_NAP_NS ? LEAST_NAP_NS : slice > MOST_NAP_NS ? MOST_NAP_NS : slice;
    uint64_t until = deadline_ns - now < slice ? deadline_ns : now + slice;
    bp_futex_wait(&timeline->sticky.sequence, seen, until);
}

static int32_t await(bp_cuda_timeline *timeline, uint64_t value, uint64_t deadline_ns) {
    int32_t status = state(timeline, value);
    uint64_t start = status == BP_DEADLINE ? bp_now_ns() : 0;
    if (status != BP_DEADLINE || start >= deadline_ns)
        return status;
    uint64_t looked = start;
    for (uint64_t now = start; now - start < SPIN_NS && now < deadline_ns; now = bp_now_ns()) {
        for (int turn = 0; turn < 16 && status == BP_DEADLINE; turn++) {
            bp_pause();
            status = state(timeline, value);
        }
        if (status != BP_DEADLINE)
            return status;
        if (now - looked > HEALTH_NS) {
            bp_cuda_health(timeline->device);
            sched_yield();
            looked = now;
        }
    }
    atomic_fetch_add_explicit(&timeline->sticky.sleepers, 1, memory_order_seq_cst);
    /* The kernel may wake a sleeper 50 us late unless asked not to. */
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (;;) {
        uint32_t seen = atomic_load_explicit(&timeline->sticky.sequence, memory_order_seq_cst);
        bp_cuda_health(timeline->device);
        status = state(timeline, value);
        uint64_t now = bp_now_ns();
        if (status != BP_DEADLINE || now >= deadline_ns)
            break;
        doze(timeline, seen, now - start, now, deadline_ns);
    }
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0ul);
    atomic_fetch_sub_explicit(&timeline->sticky.sleepers, 1, memory_order_seq_cst);
    return status;
}

/* Looks it up and holds it against release; null with a sentence. Pair with let_go. */
static bp_cuda_timeline *hold(bp_cuda_device *device, uint64_t handle) {
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(handle, BP_KIND_TIMELINE, device);
    if (timeline)
        timeline->sticky.waited++;
    pthread_mutex_unlock(&device->base.lock);
    return timeline;
}

static void let_go(bp_cuda_device *device, bp_cuda_timeline *timeline) {
    pthread_mutex_lock(&device->base.lock);
    if (--timeline->sticky.waited == 0 && device->base.retired)
        bp_retire_sweep(&device->base);
    pthread_mutex_unlock(&device->base.lock);
}

int32_t bp_cuda_timeline_query(uint64_t handle, uint64_t timeline_handle, uint64_t *value) {
    if (!value)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.query got no place for its result");
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_cuda_timeline *timeline = hold(device, timeline_handle);
    if (timeline) {
        *value = look(timeline);
        /* Only work in flight can have failed without a word. */
        if (*value < atomic_load_explicit(&timeline->issued, memory_order_acquire))
            bp_cuda_health(device);
        status = bp_sticky_error(&timeline->sticky);
        bp_sticky_tell(&timeline->sticky, status, *value, *value);
        let_go(device, timeline);
    }
    bp_device_leave(&device->base);
    return status;
}

int32_t bp_cuda_timeline_wait(uint64_t handle, uint64_t timeline_handle, uint64_t value,
                              uint64_t deadline_ns) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_cuda_timeline *timeline = hold(device, timeline_handle);
    if (timeline) {
        status = await(timeline, value, deadline_ns);
        if (status)
            bp_sticky_tell(&timeline->sticky, status, look(timeline), value);
        let_go(device, timeline);
    }
    bp_device_leave(&device->base);
    return status;
}
