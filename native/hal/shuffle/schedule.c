/* The one thread that serves all queues; see shuffle.h. */
#include "../chassis/host.h"
#include "../chassis/retire.h"
#include "../chassis/thread.h"
#include "shuffle.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How long it sleeps when every queue waits: fences are looked at, nobody tells. */
#define LOOK_NS 100000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER, passed = PTHREAD_COND_INITIALIZER;
static bp_shuffle_queue *queues;
static int running;
static uint64_t seed, state;

uint32_t bp_shuffle_random(uint32_t most) {
    /* xorshift64*, Vigna 2016. */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return most ? (uint32_t)((state * 2685821657736338717ull) >> 33) % most : 0;
}

/* Steps to wait: mostly none. */
static uint32_t delay(void) {
    return bp_shuffle_random(4) ? 0 : 1 + bp_shuffle_random(5);
}

static bp_breach breach_of(const bp_shuffle_queue *queue) {
    return (bp_breach)queue->queue->device->index;
}

static void fail(bp_flight *flight, int32_t status, const char *text) {
    flight->status = status;
    snprintf(flight->text, sizeof(flight->text), "%s", text);
}

/* Whether all fences are reached; one that failed fails the batch, which is then ready too. */
static int fences_reached(const bp_shuffle_queue *queue, bp_flight *flight) {
    const bp_work *work = flight->work;
    uint32_t count = work->wait_count;
    if (breach_of(queue) == BP_BREACH_FORGOTTEN_FENCE && count > 1)
        count--;
    for (uint32_t i = 0; i < count; i++) {
        bp_timeline_object *timeline = (bp_timeline_object *)work->waits[i].timeline;
        int32_t status = bp_timeline_await(timeline, work->waits[i].value, 0);
        if (status == BP_DEADLINE)
            return 0;
        if (status) {
            char text[BP_ERROR_BYTES];
            snprintf(text, sizeof(text), "a fence it waited for failed: %.450s",
                     timeline->sticky.text);
            fail(flight, status, text);
            return 1;
        }
    }
    return 1;
}

/* What ends a batch early: its queue or its device. */
static void look_around(const bp_shuffle_queue *queue, bp_flight *flight) {
    const bp_work *work = flight->work;
    int pending = flight->nodes_left || (!flight->begun && work->wait_count);
    char text[BP_ERROR_BYTES];
    if (atomic_load_explicit(&queue->queue->device->lost, memory_order_acquire)) {
        fail(flight, BP_DEVICE_LOST, "the device is lost");
    } else if (bp_queue_cancelled(queue->queue) && pending) {
        snprintf(text, sizeof(text), "batch %llu stopped: the queue was destroyed",
                 (unsigned long long)work->tag);
        fail(flight, BP_CANCELLED, text);
    }
}

/* Whether a flight can make a step now. */
static int ready(bp_shuffle_queue *queue, bp_flight *flight) {
    if (!flight->status)
        look_around(queue, flight);
    if (flight->status)
        return 1;
    if (!flight->begun) {
        if (!fences_reached(queue, flight))
            return 0;
        flight->begun = 1;
        flight->patience = delay();
    }
    return flight->patience == 0 || flight->patience-- == 0;
}

/* Two of three seeds favour: the newest batch, or the queue that came last. One step in eight is
 * anybody's, so that nobody starves. */
static uint64_t favour(const bp_shuffle_queue *queue, const bp_flight *flight) {
    switch (seed % 3) {
    case 1:
        return flight->work->ticket;
    case 2:
        return queue->queue->object.handle;
    default:
        return 0;
    }
}

static bp_flight *choose(bp_shuffle_queue **from, int *any) {
    bp_flight *chosen = NULL;
    uint32_t count = 0;
    int fair = bp_shuffle_random(8) == 0;
    *any = 0;
    for (bp_shuffle_queue *queue = queues; queue; queue = queue->next) {
        int head = 1;
        for (bp_flight *flight = queue->first; flight; flight = flight->next) {
            *any = 1;
            int allowed = head || breach_of(queue) == BP_BREACH_OVERTAKING_BATCH;
            head = 0;
            if (!allowed || !ready(queue, flight))
                continue;
            int better = !chosen || bp_shuffle_random(++count + 1) == 0;
            if (chosen && !fair && favour(queue, flight) != favour(*from, chosen))
                better = favour(queue, flight) > favour(*from, chosen);
            if (better) {
                chosen = flight;
                *from = queue;
            }
        }
    }
    return chosen;
}

/* Runs one command; the lock is not held meanwhile. */
static void run(bp_shuffle_queue *queue, bp_flight *flight) {
    uint32_t index = bp_shuffle_node(flight, breach_of(queue));
    const bp_node *node = &flight->work->nodes[index];
    bp_cause cause = {.node = node};
    pthread_mutex_unlock(&lock);
    int32_t status = bp_executor_own.run(queue->queue, node, &cause);
    pthread_mutex_lock(&lock);
    flight->ran[index] = 1;
    flight->nodes_left--;
    while (flight->front < flight->work->node_count && flight->ran[flight->front])
        flight->front++;
    if (status) {
        flight->status = status < 0 ? status : BP_LAUNCH_FAULT;
        bp_work_describe(flight->work, node, flight->status, cause.text, flight->text,
                         sizeof(flight->text));
    }
    if (!flight->nodes_left)
        flight->patience = delay();
}

static void give(bp_flight *flight) {
    uint32_t index = bp_shuffle_signal(flight);
    const bp_point *point = &flight->work->signals[index];
    int32_t status = bp_timeline_advance((bp_timeline_object *)point->timeline, point->value);
    if (status)
        bp_timeline_poison(point->timeline, status, bp_error_text());
    flight->given[index] = 1;
    flight->signals_left--;
}

/* Poisons what is not yet given. The lock is not held meanwhile: losing takes the device's. */
static void end_badly(bp_shuffle_queue *queue, bp_flight *flight) {
    pthread_mutex_unlock(&lock);
    bp_host_log(BP_LOG_ERROR, flight->text);
    if (flight->status == BP_DEVICE_LOST)
        bp_device_lose(queue->queue->device, flight->text);
    for (uint32_t i = 0; i < flight->work->signal_count; i++)
        if (!flight->given[i])
            bp_timeline_poison(flight->work->signals[i].timeline, flight->status, flight->text);
    pthread_mutex_lock(&lock);
}

/* The batch is over: takes it off its queue; others may now free what it knew. */
static void finish(bp_shuffle_queue *queue, bp_flight *flight) {
    bp_device *device = queue->queue->device;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&device->lock);
    pthread_mutex_lock(&lock);
    bp_flight **place = &queue->first, *before = NULL;
    while (*place != flight) {
        before = *place;
        place = &before->next;
    }
    *place = flight->next;
    if (queue->last == flight)
        queue->last = before;
    queue->queue->oldest = queue->first ? queue->first->work->ticket : UINT64_MAX;
    bp_retire_sweep(device);
    queue->busy = 0;
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&device->lock);
    free(flight->work);
    free(flight);
}

/* One step of a flight: one command, one signal, or its end. */
static void step(bp_shuffle_queue *queue, bp_flight *flight) {
    int early = breach_of(queue) == BP_BREACH_SIGNAL_BEFORE_WORK;
    queue->busy = 1;
    if (flight->status) {
        end_badly(queue, flight);
        finish(queue, flight);
        return;
    }
    if (flight->nodes_left && !(early && flight->signals_left))
        run(queue, flight);
    else if (flight->signals_left)
        give(flight);
    if (!flight->status && !flight->nodes_left && !flight->signals_left)
        finish(queue, flight);
    else
        queue->busy = 0;
}

static void rest(int any) {
    struct timespec until;
    if (!any) {
        pthread_cond_wait(&posted, &lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&posted, &lock, &until);
}

static void *serve(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        bp_shuffle_queue *queue = NULL;
        int any;
        bp_flight *flight = choose(&queue, &any);
        if (flight)
            step(queue, flight);
        else
            rest(any);
    }
    return NULL;
}

/* Holds the lock. */
static int32_t start(void) {
    pthread_t thread;
    const char *text = getenv("BEDPLATE_HAL_SHUFFLE_SEED");
    if (running)
        return BP_OK;
    seed = text ? strtoull(text, NULL, 10) : 1;
    state = seed * 6364136223846793005ull + 1442695040888963407ull;
    state = state ? state : 1;
    if (bp_thread_start(&thread, "bp-shuffle", serve, NULL))
        return bp_fail(BP_OUT_OF_MEMORY, "the system has no thread for the shuffler");
    pthread_detach(thread);
    running = 1;
    return BP_OK;
}

int32_t bp_shuffle_enter(bp_shuffle_queue *queue) {
    pthread_mutex_lock(&lock);
    int32_t status = start();
    if (status == BP_OK) {
        queue->next = queues;
        queues = queue;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void bp_shuffle_append(bp_shuffle_queue *queue, bp_flight *flight) {
    pthread_mutex_lock(&lock);
    if (queue->last)
        queue->last->next = flight;
    else
        queue->first = flight;
    queue->last = flight;
    if (queue->queue->oldest == UINT64_MAX)
        queue->queue->oldest = flight->work->ticket;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}

void bp_shuffle_leave(bp_shuffle_queue *queue) {
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&posted);
    while (queue->first || queue->busy)
        pthread_cond_wait(&passed, &lock);
    bp_shuffle_queue **place = &queues;
    while (*place && *place != queue)
        place = &(*place)->next;
    if (*place)
        *place = queue->next;
    pthread_mutex_unlock(&lock);
}
