/*
 * Running batches: the executor starts commands in an in-order OpenCL queue and waits at the end of
 * the batch, or when the host must step in between (timestamps, work on pinned memory alone).
 *
 * A batch of one command is signalled by that command's end, on a thread of the platform's.
 *
 * Each command has an event, so that a failure is told of the command that failed. In an in-order
 * queue OpenCL may run what is behind a failed command; only what was not yet started is not run.
 */
#include "../chassis/queue.h"
#include "device.h"
#include "launch.h"
#include "memory.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Commands in flight before the executor waits for them; bounds the events that are held. */
#define MOST_STARTED 1024u

typedef struct started {
    cl_event event;
    const bp_node *node;
} started;

typedef struct bp_cl_queue {
    bp_queue_object queue;
    cl_command_queue id;
    /* Executor's own: what runs, and the sub-buffers that it needs. */
    started running[MOST_STARTED];
    uint32_t running_count;
    cl_mem *parts;
    uint32_t part_count, part_room;
    /* The batch that `ended` signals, null when none; and whether it was called. */
    const bp_work *announced;
    _Atomic uint32_t ended;
} bp_cl_queue;

static int32_t tell(bp_cause *cause, cl_int code, const char *what) {
    snprintf(cause->text, sizeof(cause->text), "%s: %s (%d)", what, bp_cl_name(code), code);
    return bp_cl_status(code);
}

static int keep_part(void *context, cl_mem part) {
    bp_cl_queue *own = context;
    if (own->part_count == own->part_room) {
        uint32_t room = own->part_room ? 2 * own->part_room : 16;
        cl_mem *wider = realloc(own->parts, room * sizeof(*wider));
        if (!wider)
            return 0;
        own->parts = wider;
        own->part_room = room;
    }
    own->parts[own->part_count++] = part;
    return 1;
}

/* On a thread of the platform's; the queue is not touched after the last line. */
static void ended(cl_event event, cl_int state, void *user) {
    bp_cl_queue *own = user;
    (void)event;
    if (state == CL_COMPLETE)
        bp_work_signal(own->announced);
    atomic_store_explicit(&own->ended, 1, memory_order_release);
}

/* The one command of a batch signals for itself, so that one thread is woken between its end and
 * the waiter, not two. With several, the last one's end says nothing of those before it. */
static int announce(bp_queue_object *queue, const bp_work *work) {
    bp_cl_queue *own = (bp_cl_queue *)queue;
    if (own->running_count != 1 || work->signal_count == 0 ||
        bp_cl_device_of(queue->device)->facts->serial)
        return 0;
    own->announced = work;
    atomic_store_explicit(&own->ended, 0, memory_order_relaxed);
    if (cl.clSetEventCallback(own->running[0].event, CL_COMPLETE, ended, own))
        own->announced = NULL;
    return own->announced != NULL;
}

/* Until `ended` is over: it is called for every event that ends, in whatever way. */
static void await_ended(bp_cl_queue *own) {
    while (own->announced && !atomic_load_explicit(&own->ended, memory_order_acquire))
        sched_yield();
    own->announced = NULL;
}

/* Waits for all that runs; the first that failed is the cause. */
static int32_t drain(bp_cl_queue *own, bp_cause *cause) {
    int32_t status = BP_OK;
    cl_int code = own->running_count ? cl.clFinish(own->id) : CL_SUCCESS;
    await_ended(own);
    for (uint32_t i = 0; i < own->running_count; i++) {
        cl_int state = CL_SUCCESS;
        cl_int asked = cl.clGetEventInfo(own->running[i].event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                         sizeof(state), &state, NULL);
        if (status == BP_OK && (asked || state < 0)) {
            cause->node = own->running[i].node;
            status = tell(cause, asked ? asked : state, "it ended with");
        }
        cl.clReleaseEvent(own->running[i].event);
    }
    own->running_count = 0;
    for (uint32_t i = 0; i < own->part_count; i++)
        cl.clReleaseMemObject(own->parts[i]);
    own->part_count = 0;
    if (status == BP_OK && code)
        status = tell(cause, code, "clFinish");
    return status;
}

/* Fills memory that no command in flight uses any more. */
static void fill_host(unsigned char *to, const bp_span_node *node) {
    for (uint64_t at = 0; at < node->to.bytes; at += node->pattern_bytes)
        memcpy(to + at, &node->pattern, node->pattern_bytes);
}

static cl_int start_copy(bp_cl_queue *own, const bp_span_node *node, cl_event *event,
                         const char **what) {
    const bp_span *to = &node->to, *from = &node->from;
    cl_mem target = bp_cl_memory_of(to)->buffer, source = bp_cl_memory_of(from)->buffer;
    if (target && source) {
        *what = "clEnqueueCopyBuffer";
        return cl.clEnqueueCopyBuffer(own->id, source, target, from->offset, to->offset, to->bytes,
                                      0, NULL, event);
    }
    if (target) {
        *what = "clEnqueueWriteBuffer";
        return cl.clEnqueueWriteBuffer(own->id, target, 0, to->offset, to->bytes, bp_cl_bytes(from),
                                       0, NULL, event);
    }
    if (source) {
        *what = "clEnqueueReadBuffer";
        return cl.clEnqueueReadBuffer(own->id, source, 0, from->offset, to->bytes, bp_cl_bytes(to),
                                      0, NULL, event);
    }
    *what = "clEnqueueSVMMemcpy";
    return cl.clEnqueueSVMMemcpy(own->id, 0, bp_cl_bytes(to), bp_cl_bytes(from), to->bytes, 0, NULL,
                                 event);
}

static cl_int start_fill(bp_cl_queue *own, const bp_span_node *node, cl_event *event,
                         const char **what) {
    const bp_span *to = &node->to;
    cl_mem target = bp_cl_memory_of(to)->buffer;
    if (target) {
        *what = "clEnqueueFillBuffer";
        return cl.clEnqueueFillBuffer(own->id, target, &node->pattern, node->pattern_bytes,
                                      to->offset, to->bytes, 0, NULL, event);
    }
    *what = "clEnqueueSVMMemFill";
    return cl.clEnqueueSVMMemFill(own->id, bp_cl_bytes(to), &node->pattern, node->pattern_bytes,
                                  to->bytes, 0, NULL, event);
}

/* Both sides are the caller's memory: OpenCL 1.2 has no command for it. */
static int on_host(const bp_node *node) {
    const bp_span_node *span = &node->span;
    if (node->kind == BP_COMMAND_FILL)
        return span->to.memory->pinned;
    return node->kind == BP_COMMAND_COPY && span->to.memory->pinned && span->from.memory->pinned;
}

static int32_t run_on_host(bp_cl_queue *own, const bp_node *node, bp_cause *cause) {
    const bp_span_node *span = &node->span;
    int32_t status = drain(own, cause);
    if (status)
        return status;
    if (node->kind == BP_COMMAND_FILL)
        fill_host(bp_cl_bytes(&span->to), span);
    else
        memcpy(bp_cl_bytes(&span->to), bp_cl_bytes(&span->from), span->to.bytes);
    return BP_OK;
}

/* The device's clock at a marker behind everything before; then it is written like any bytes. */
static int32_t run_timestamp(bp_cl_queue *own, const bp_span *to, bp_cause *cause) {
    cl_event event = NULL;
    uint64_t now = 0;
    int32_t status = drain(own, cause);
    if (status)
        return status;
    cl_int code = cl.clEnqueueMarkerWithWaitList(own->id, 0, NULL, &event);
    if (!code)
        code = cl.clWaitForEvents(1, &event);
    if (!code)
        code = cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(now), &now, NULL);
    if (event)
        cl.clReleaseEvent(event);
    if (code)
        return tell(cause, code, "reading the device's clock");
    cl_mem target = bp_cl_memory_of(to)->buffer;
    if (!target)
        memcpy(bp_cl_bytes(to), &now, sizeof(now));
    else
        code = cl.clEnqueueWriteBuffer(own->id, target, 1, to->offset, sizeof(now), &now, 0, NULL,
                                       NULL);
    return code ? tell(cause, code, "clEnqueueWriteBuffer") : BP_OK;
}

static int32_t start(bp_cl_queue *own, const bp_node *node, bp_cause *cause) {
    const char *what = "";
    cl_event event = NULL;
    cl_int code;
    if (node->kind == BP_COMMAND_TIMESTAMP)
        return run_timestamp(own, &node->span.to, cause);
    if (node->kind != BP_COMMAND_LAUNCH && node->span.to.bytes == 0)
        return BP_OK;
    if (node->kind != BP_COMMAND_LAUNCH && on_host(node))
        return run_on_host(own, node, cause);
    if (own->running_count == MOST_STARTED) {
        int32_t status = drain(own, cause);
        if (status)
            return status;
    }
    if (node->kind == BP_COMMAND_LAUNCH)
        code = bp_cl_launch(own->id, &node->launch, keep_part, own, &event, &what);
    else if (node->kind == BP_COMMAND_COPY)
        code = start_copy(own, &node->span, &event, &what);
    else
        code = start_fill(own, &node->span, &event, &what);
    if (code)
        return tell(cause, code, what);
    own->running[own->running_count++] = (started){event, node};
    return BP_OK;
}

static const bp_cl_facts *facts_of(const bp_queue_object *queue) {
    return bp_cl_device_of(queue->device)->facts;
}

static int32_t run(bp_queue_object *queue, const bp_node *node, bp_cause *cause) {
    bp_cl_enter(facts_of(queue));
    int32_t status = start((bp_cl_queue *)queue, node, cause);
    bp_cl_leave(facts_of(queue));
    return status;
}

static int32_t finish(bp_queue_object *queue, bp_cause *cause) {
    bp_cl_enter(facts_of(queue));
    int32_t status = drain((bp_cl_queue *)queue, cause);
    bp_cl_leave(facts_of(queue));
    return status;
}

static int32_t open_queue(bp_queue_object *queue) {
    bp_cl_queue *own = (bp_cl_queue *)queue;
    const bp_cl_device *device = bp_cl_device_of(queue->device);
    cl_int code = CL_SUCCESS;
    cl_flags flags = device->facts->profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    bp_cl_enter(device->facts);
    own->id = cl.clCreateCommandQueue(device->context, device->facts->id, flags, &code);
    bp_cl_leave(device->facts);
    return code ? bp_cl_fail(code, "clCreateCommandQueue") : BP_OK;
}

static void close_queue(bp_queue_object *queue) {
    bp_cl_queue *own = (bp_cl_queue *)queue;
    bp_cl_enter(facts_of(queue));
    if (own->id)
        cl.clReleaseCommandQueue(own->id);
    bp_cl_leave(facts_of(queue));
    free(own->parts);
}

const bp_executor bp_executor_own = {
    .queue_bytes = sizeof(bp_cl_queue),
    .thread_name = "bp-cl-queue",
    .open = open_queue,
    .close = close_queue,
    .run = run,
    .finish = finish,
    .announce = announce,
};
