/*
 * Running a batch: wait for its fences, run its nodes in order, signal; or poison what it would
 * have signalled, with one sentence that names tag, command and cause.
 */
#include "futex.h"
#include "host.h"
#include "queue.h"

#include <stdio.h>

/* How often a queue that waits for a fence looks whether it was cancelled. */
#define LOOK_NS 2000000ull

static int32_t wait_one(const bp_queue_object *queue, const bp_point *point, char *text,
                        size_t room) {
    bp_timeline_object *timeline = (bp_timeline_object *)point->timeline;
    for (;;) {
        int32_t status = bp_timeline_await(timeline, point->value, bp_now_ns() + LOOK_NS);
        if (status == BP_OK)
            return BP_OK;
        if (status != BP_DEADLINE) {
            snprintf(text, room, "a fence it waited for failed: %.450s", timeline->sticky.text);
            return status;
        }
        status = atomic_load_explicit(&queue->device->lost, memory_order_acquire);
        if (status || bp_queue_cancelled(queue)) {
            snprintf(text, room, "%s", status ? "the device is lost" : "the queue was destroyed");
            return status ? status : BP_CANCELLED;
        }
    }
}

static int32_t run_nodes(bp_queue_object *queue, const bp_work *work, bp_cause *cause, char *text,
                         size_t room) {
    for (uint32_t i = 0; i < work->node_count; i++) {
        int32_t status = atomic_load_explicit(&queue->device->lost, memory_order_relaxed);
        if (status || bp_queue_cancelled(queue)) {
            snprintf(text, room, "batch %llu stopped before command %u: %s",
                     (unsigned long long)work->tag, i,
                     status ? "the device is lost" : "the queue was destroyed");
            return status ? status : BP_CANCELLED;
        }
        status = bp_executor_own.run(queue, &work->nodes[i], cause);
        if (status) {
            cause->node = &work->nodes[i];
            return status;
        }
    }
    return BP_OK;
}

/* Runs the nodes and waits for them; text is empty on success, and then *signalled tells whether
 * the signals were given too. */
static int32_t run_and_finish(bp_queue_object *queue, const bp_work *work, char *text, size_t room,
                              int *signalled) {
    bp_cause cause, later;
    cause.node = later.node = NULL;
    cause.text[0] = later.text[0] = 0;
    int32_t status = run_nodes(queue, work, &cause, text, room);
    if (status == BP_OK && bp_executor_own.announce)
        *signalled = bp_executor_own.announce(queue, work);
    if (bp_executor_own.finish) {
        int32_t finished = bp_executor_own.finish(queue, &later);
        /* What was started before is what failed first. */
        if (finished) {
            status = finished;
            cause = later;
        }
    }
    if (status && cause.node) {
        /* A kernel's own numbers are not statuses of ours: positive ones are faults too. */
        status = status < 0 ? status : BP_LAUNCH_FAULT;
        bp_work_describe(work, cause.node, status, cause.text, text, room);
    } else if (status && cause.text[0]) {
        snprintf(text, room, "batch %llu: %s", (unsigned long long)work->tag, cause.text);
    }
    return status;
}

static int32_t run_all(bp_queue_object *queue, const bp_work *work, char *text, size_t room,
                       int *signalled) {
    if (bp_queue_cancelled(queue) && (work->node_count || work->wait_count)) {
        snprintf(text, room, "the queue was destroyed");
        return BP_CANCELLED;
    }
    for (uint32_t i = 0; i < work->wait_count; i++) {
        int32_t status = wait_one(queue, &work->waits[i], text, room);
        if (status)
            return status;
    }
    return work->node_count ? run_and_finish(queue, work, text, room, signalled) : BP_OK;
}

void bp_work_signal(const bp_work *work) {
    for (uint32_t i = 0; i < work->signal_count; i++) {
        const bp_point *point = &work->signals[i];
        int32_t status = bp_timeline_advance((bp_timeline_object *)point->timeline, point->value);
        if (status)
            bp_timeline_poison(point->timeline, status, bp_error_text());
    }
}

void bp_work_execute(bp_queue_object *queue, bp_work *work) {
    char text[BP_ERROR_BYTES] = "";
    int signalled = 0;
    int32_t status = run_all(queue, work, text, sizeof(text), &signalled);
    if (status) {
        bp_host_log(BP_LOG_ERROR, text);
        /* Before anyone can learn of it from a signal: whoever knows finds the device lost. */
        if (status == BP_DEVICE_LOST)
            bp_device_lose(queue->device, text);
        for (uint32_t i = 0; i < work->signal_count; i++)
            bp_timeline_poison(work->signals[i].timeline, status, text);
        return;
    }
    if (!signalled)
        bp_work_signal(work);
}
