/* Timelines; see timeline.h for the contract. */
#include "timeline.h"

#include "../chassis/futex.h"
#include "../chassis/retire.h"
#include "queue.h"
#include "word.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void drop(bp_cuda_timeline *timeline) {
    bp_cuda_pending *oldest = timeline->first;
    timeline->first = oldest->next;
    bp_cuda_event_give(timeline->device, oldest);
}

uint64_t bp_cuda_timeline_look(bp_cuda_timeline *timeline) {
    uint64_t value = atomic_load_explicit(&timeline->value, memory_order_acquire);
    if (timeline->word) {
        uint64_t word = atomic_load_explicit(timeline->word, memory_order_acquire);
        return word > value ? word : value;
    }
    while (timeline->first) {
        bp_cu_result result = bp_cu.event_query(timeline->first->event);
        if (result != BP_CU_SUCCESS) {
            bp_cuda_notice(timeline->device, result);
            break;
        }
        if (timeline->first->value > value)
            value = timeline->first->value;
        atomic_store_explicit(&timeline->value, value, memory_order_release);
        drop(timeline);
    }
    return value;
}

/* The same from anywhere. */
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

static bp_cu_result record(bp_cuda_timeline *timeline, const bp_cuda_queue *queue, uint64_t value) {
    bp_cuda_pending *pending = bp_cuda_event_take(timeline->device);
    if (!pending)
        return BP_CU_OUT_OF_MEMORY;
    bp_cu_result result = bp_cu.event_record(pending->event, queue->stream);
    if (result) {
        bp_cuda_event_give(timeline->device, pending);
        return result;
    }
    pending->value = value;
    if (timeline->first)
        timeline->last->next = pending;
    else
        timeline->first = pending;
    timeline->last = pending;
    return result;
}

static bp_cu_result write_word(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                               uint64_t value) {
    bp_cu_result result = bp_cu.stream_write_value(queue->stream, timeline->address, value,
                                                   BP_CU_STREAM_WRITE_VALUE_DEFAULT);
    /* A second queue may come to wait for it. */
    if (result || !timeline->device->queues->next)
        return result;
    uint64_t reached = bp_cuda_timeline_look(timeline);
    while (timeline->first && timeline->first->value <= reached)
        drop(timeline);
    return record(timeline, queue, value);
}

bp_cu_result bp_cuda_timeline_issue(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                                    uint64_t value) {
    bp_cu_result result =
        timeline->word ? write_word(timeline, queue, value) : record(timeline, queue, value);
    if (result == BP_CU_SUCCESS) {
        timeline->issuer = queue->object.handle;
        atomic_store_explicit(&timeline->issued, value, memory_order_release);
    }
    return result;
}

/* A signal without an event, given before there was a second queue: everything that its queue has
 * by now is waited for. */
static bp_cu_result hold_tail(bp_cuda_timeline *timeline, const bp_cuda_queue *queue) {
    const bp_cuda_queue *issuer = timeline->device->queues;
    while (issuer && issuer->object.handle != timeline->issuer)
        issuer = issuer->next;
    /* It is being destroyed, and its stream runs empty. */
    if (!issuer)
        return bp_cu.context_synchronize();
    bp_cuda_pending *pending = bp_cuda_event_take(timeline->device);
    if (!pending)
        return BP_CU_OUT_OF_MEMORY;
    bp_cu_result result = bp_cu.event_record(pending->event, issuer->stream);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.stream_wait_event(queue->stream, pending->event, 0);
    bp_cuda_event_give(timeline->device, pending);
    return result;
}

bp_cu_result bp_cuda_timeline_hold(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                                   uint64_t value) {
    for (const bp_cuda_pending *one = timeline->first; one; one = one->next)
        if (one->value >= value)
            return bp_cu.stream_wait_event(queue->stream, one->event, 0);
    return hold_tail(timeline, queue);
}

static void changed(bp_cuda_timeline *timeline) {
    atomic_fetch_add_explicit(&timeline->sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&timeline->sleepers, memory_order_seq_cst))
        bp_futex_wake(&timeline->sequence, INT_MAX);
}

void bp_cuda_timeline_poison(bp_object *object, int32_t status, const char *text) {
    bp_cuda_timeline *timeline = (bp_cuda_timeline *)object;
    if (atomic_load_explicit(&timeline->error, memory_order_relaxed))
        return;
    snprintf(timeline->text, sizeof(timeline->text), "%s", text);
    atomic_store_explicit(&timeline->error, status, memory_order_release);
    changed(timeline);
    bp_cuda_pump(timeline->device);
}

int bp_cuda_timeline_waited(const bp_object *timeline) {
    return ((const bp_cuda_timeline *)timeline)->waited != 0;
}

void bp_cuda_timeline_free(bp_cuda_timeline *timeline) {
    if (timeline->word)
        bp_cuda_word_give(timeline->device, timeline);
    while (timeline->first)
        drop(timeline);
    free(timeline);
}

/* BP_OK, the poison, or BP_DEADLINE for "not yet". No sentence. */
static int32_t state(bp_cuda_timeline *timeline, uint64_t value) {
    int32_t error = atomic_load_explicit(&timeline->error, memory_order_acquire);
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
    bp_futex_wait(&timeline->sequence, seen, until);
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
    atomic_fetch_add_explicit(&timeline->sleepers, 1, memory_order_seq_cst);
    /* The kernel may wake a sleeper 50 us late unless asked not to. */
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (;;) {
        uint32_t seen = atomic_load_explicit(&timeline->sequence, memory_order_seq_cst);
        bp_cuda_health(timeline->device);
        status = state(timeline, value);
        uint64_t now = bp_now_ns();
        if (status != BP_DEADLINE || now >= deadline_ns)
            break;
        doze(timeline, seen, now - start, now, deadline_ns);
    }
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0ul);
    atomic_fetch_sub_explicit(&timeline->sleepers, 1, memory_order_seq_cst);
    return status;
}

static int32_t create_on(bp_cuda_device *device, uint64_t initial, uint64_t *out) {
    bp_cuda_timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a timeline");
    timeline->device = device;
    atomic_init(&timeline->value, initial);
    atomic_init(&timeline->issued, initial);
    pthread_mutex_lock(&device->base.lock);
    int32_t status = device->words ? bp_cuda_word_take(device, timeline) : BP_OK;
    if (status == BP_OK) {
        if (timeline->word)
            atomic_store_explicit(timeline->word, initial, memory_order_release);
        status = bp_device_add(&device->base, &timeline->object, BP_KIND_TIMELINE);
    }
    if (status == BP_OK)
        *out = timeline->object.handle;
    else
        bp_cuda_timeline_free(timeline);
    pthread_mutex_unlock(&device->base.lock);
    return status;
}

static int32_t create(uint64_t handle, uint64_t initial, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.create got no place for its result");
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK)
        status = create_on(device, initial, out);
    bp_cuda_settle(device);
    bp_device_leave(&device->base);
    return status;
}

/* Looks it up and holds it against release; null with a sentence. Pair with let_go. */
static bp_cuda_timeline *hold(bp_cuda_device *device, uint64_t handle) {
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(handle, BP_KIND_TIMELINE, device);
    if (timeline)
        timeline->waited++;
    pthread_mutex_unlock(&device->base.lock);
    return timeline;
}

static void let_go(bp_cuda_device *device, bp_cuda_timeline *timeline) {
    pthread_mutex_lock(&device->base.lock);
    if (--timeline->waited == 0 && device->base.retired)
        bp_retire_sweep(&device->base);
    pthread_mutex_unlock(&device->base.lock);
}

/* The sentence for what state() or await found. */
static int32_t tell(bp_cuda_timeline *timeline, int32_t status, uint64_t value) {
    if (status == BP_OK)
        return status;
    if (atomic_load_explicit(&timeline->error, memory_order_acquire))
        return bp_fail(status, "%s", timeline->text);
    return bp_fail(status, "a timeline is at %llu and did not reach %llu before the deadline",
                   (unsigned long long)look(timeline), (unsigned long long)value);
}

/* Under the lock. */
static int32_t advance(bp_cuda_timeline *timeline, uint64_t value) {
    uint64_t now = bp_cuda_timeline_look(timeline);
    uint64_t issued = atomic_load_explicit(&timeline->issued, memory_order_relaxed);
    if (issued > now)
        now = issued;
    if (value <= now)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a timeline at %llu cannot be signalled to %llu: it must grow",
                       (unsigned long long)now, (unsigned long long)value);
    atomic_store_explicit(&timeline->value, value, memory_order_release);
    atomic_store_explicit(&timeline->issued, value, memory_order_release);
    changed(timeline);
    bp_cuda_pump(timeline->device);
    return BP_OK;
}

static int32_t signal_host(uint64_t handle, uint64_t timeline_handle, uint64_t value) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(timeline_handle, BP_KIND_TIMELINE, device);
    if (timeline) {
        status = atomic_load_explicit(&timeline->error, memory_order_acquire);
        status = status ? bp_fail(status, "%s", timeline->text) : advance(timeline, value);
    }
    pthread_mutex_unlock(&device->base.lock);
    bp_cuda_settle(device);
    bp_device_leave(&device->base);
    return status;
}

static int32_t query(uint64_t handle, uint64_t timeline_handle, uint64_t *value) {
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
        status = atomic_load_explicit(&timeline->error, memory_order_acquire);
        tell(timeline, status, *value);
        let_go(device, timeline);
    }
    bp_device_leave(&device->base);
    return status;
}

static int32_t wait_host(uint64_t handle, uint64_t timeline_handle, uint64_t value,
                         uint64_t deadline_ns) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_cuda_timeline *timeline = hold(device, timeline_handle);
    if (timeline) {
        status = await(timeline, value, deadline_ns);
        tell(timeline, status, value);
        let_go(device, timeline);
    }
    bp_device_leave(&device->base);
    return status;
}

static int32_t destroy(uint64_t handle, uint64_t timeline_handle) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(timeline_handle, BP_KIND_TIMELINE, device);
    if (timeline) {
        bp_cuda_timeline_poison(&timeline->object, BP_CANCELLED, "the timeline was destroyed");
        bp_retire(&device->base, &timeline->object);
    }
    pthread_mutex_unlock(&device->base.lock);
    bp_device_leave(&device->base);
    return timeline ? BP_OK : BP_INVALID_ARGUMENT;
}

const bp_timeline bp_cuda_timeline_table = {
    .head = {1, sizeof(bp_timeline)},
    .create = create,
    .signal = signal_host,
    .query = query,
    .wait_host = wait_host,
    .destroy = destroy,
};
