/*
 * Running a batch: wait for its fences, run its nodes in order, signal; or poison what it would
 * have signalled, with one sentence that names tag, command and cause.
 */
#define _GNU_SOURCE
#include "backend.h"
#include "futex.h"
#include "pool.h"
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often a queue that waits for a fence looks whether it was cancelled. */
#define LOOK_NS 2000000ull

typedef struct launch_context {
    const bp_native_launch *launch;
    bp_native_entry entry;
    bp_shared *shared;
} launch_context;

typedef struct op_context {
    const bp_cpu_run *run;
} op_context;

static int32_t run_blocks(void *argument, uint32_t worker, uint64_t first, uint64_t count) {
    const launch_context *context = argument;
    bp_native_launch launch = *context->launch;
    launch.worker = worker;
    if (launch.dynamic_shared_bytes)
        launch.shared = context->shared[worker].data;
    return context->entry(&launch, first, count);
}

static int32_t run_op_blocks(void *argument, uint32_t worker, uint64_t first, uint64_t count) {
    const op_context *context = argument;
    bp_cpu_run run = *context->run;
    run.worker = worker;
    return run.plan->op->run(&run, first, count);
}

/* Gives every worker that may join its scratch. */
static int32_t provide_shared(bp_device *device, bp_queue_object *queue, uint32_t bytes) {
    for (uint32_t i = 0; i < device->threads; i++) {
        bp_shared *shared = &queue->shared[i];
        if (shared->bytes >= bytes)
            continue;
        free(shared->data);
        shared->bytes = 0;
        uint32_t whole = (bytes + 63u) & ~63u;
        shared->data = aligned_alloc(64, whole);
        if (!shared->data)
            return bp_native_fail(&queue->fault, BP_OUT_OF_MEMORY, 0, bytes,
                                  "no host memory for %u bytes of shared memory per worker", whole);
        shared->bytes = whole;
    }
    return BP_OK;
}

static int32_t run_launch(bp_device *device, bp_queue_object *queue, const bp_launch_node *node) {
    bp_native_launch launch = {
        .head = {1, sizeof(launch)},
        .parameters = node->parameters,
        .parameters_bytes = node->parameters_bytes,
        .grid = {node->grid[0], node->grid[1], node->grid[2]},
        .block = {node->block[0], node->block[1], node->block[2]},
        .dynamic_shared_bytes = node->shared_bytes,
        .cancel = (const uint32_t *)(const void *)&queue->cancel,
        .fault = &queue->fault,
    };
    if (node->shared_bytes) {
        int32_t status = provide_shared(device, queue, node->shared_bytes);
        if (status)
            return status;
    }
    launch_context context = {&launch, node->entry, queue->shared};
    return bp_pool_run(device->pool, run_blocks, &context, node->blocks);
}

static int32_t run_op(bp_device *device, bp_queue_object *queue, const bp_op_node *node) {
    bp_cpu_tensor tensors[BP_MAX_OP_TENSORS];
    memcpy(tensors, node->plan->tensors, node->plan->count * sizeof(tensors[0]));
    for (uint32_t i = 0; i < node->plan->count; i++)
        tensors[i].data = node->addresses[i];
    bp_cpu_run run = {.plan = node->plan,
                      .tensors = tensors,
                      .workspace = node->workspace,
                      .fault = &queue->fault,
                      .workers = device->threads};
    op_context context = {&run};
    return bp_pool_run(device->pool, run_op_blocks, &context, node->plan->op->blocks(&run));
}

static void run_fill(const bp_span_node *node) {
    if (node->pattern_bytes == 1) {
        memset(node->to, (int)(node->pattern & 0xffu), node->bytes);
        return;
    }
    for (uint64_t at = 0; at < node->bytes; at += node->pattern_bytes)
        memcpy(node->to + at, &node->pattern, node->pattern_bytes);
}

static int32_t run_node(bp_device *device, bp_queue_object *queue, const bp_node *node) {
    switch (node->kind) {
    case BP_COMMAND_COPY:
        memcpy(node->span.to, node->span.from, node->span.bytes);
        return BP_OK;
    case BP_COMMAND_FILL:
        run_fill(&node->span);
        return BP_OK;
    case BP_COMMAND_LAUNCH:
        return run_launch(device, queue, &node->launch);
    case BP_COMMAND_OP:
        return run_op(device, queue, &node->op);
    default: {
        uint64_t now = bp_now_ns();
        memcpy(node->span.to, &now, sizeof(now));
        return BP_OK;
    }
    }
}

static int cancelled(bp_queue_object *queue) {
    return atomic_load_explicit(&queue->cancel, memory_order_relaxed) != 0;
}

/* Writes the sentence of a failed node into `text`. */
static void describe(const bp_queue_object *queue, const bp_work *work, const bp_node *node,
                     int32_t status, char *text, size_t room) {
    const char *op = "";
    bp_text name = {"", 0};
    if (node->kind == BP_COMMAND_LAUNCH) {
        op = "launch ";
        name = node->launch.name;
    } else if (node->kind == BP_COMMAND_OP) {
        op = "op ";
        name = (bp_text){node->op.plan->op->name, strlen(node->op.plan->op->name)};
    }
    int told = queue->fault.claimed && queue->fault.text[0];
    char plain[32];
    snprintf(plain, sizeof(plain), "it returned status %d", status);
    snprintf(text, room, "batch %llu, command %u (%s%.*s): %s", (unsigned long long)work->tag,
             node->index, op, (int)(name.length < 80 ? name.length : 80), name.data,
             told ? queue->fault.text : plain);
}

static int32_t wait_one(bp_device *device, bp_queue_object *queue, const bp_point *point,
                        char *text, size_t room) {
    for (;;) {
        int32_t status = bp_timeline_await(point->timeline, point->value, bp_now_ns() + LOOK_NS);
        if (status == BP_OK)
            return BP_OK;
        if (status != BP_DEADLINE) {
            snprintf(text, room, "a fence it waited for failed: %.450s", point->timeline->text);
            return status;
        }
        status = atomic_load_explicit(&device->lost, memory_order_acquire);
        if (status || cancelled(queue)) {
            snprintf(text, room, "%s", status ? "the device is lost" : "the queue was destroyed");
            return status ? status : BP_CANCELLED;
        }
    }
}

static int32_t run_nodes(bp_device *device, bp_queue_object *queue, const bp_work *work, char *text,
                         size_t room) {
    for (uint32_t i = 0; i < work->node_count; i++) {
        const bp_node *node = &work->nodes[i];
        int32_t status = atomic_load_explicit(&device->lost, memory_order_relaxed);
        if (status || cancelled(queue)) {
            snprintf(text, room, "batch %llu stopped before command %u: %s",
                     (unsigned long long)work->tag, i,
                     status ? "the device is lost" : "the queue was destroyed");
            return status ? status : BP_CANCELLED;
        }
        status = run_node(device, queue, node);
        if (status) {
            /* A kernel's own numbers are not statuses of ours: positive ones are faults too. */
            status = status < 0 ? status : BP_LAUNCH_FAULT;
            describe(queue, work, node, status, text, room);
            return status;
        }
    }
    return BP_OK;
}

static int32_t run_all(bp_device *device, bp_queue_object *queue, const bp_work *work, char *text,
                       size_t room) {
    if (queue->fault.head.struct_size == 0 || queue->fault.claimed) {
        memset(&queue->fault, 0, sizeof(queue->fault));
        queue->fault.head = (bp_head){1, sizeof(queue->fault)};
    }
    if (cancelled(queue) && (work->node_count || work->wait_count)) {
        snprintf(text, room, "the queue was destroyed");
        return BP_CANCELLED;
    }
    for (uint32_t i = 0; i < work->wait_count; i++) {
        int32_t status = wait_one(device, queue, &work->waits[i], text, room);
        if (status)
            return status;
    }
    return run_nodes(device, queue, work, text, room);
}

void bp_work_execute(bp_device *device, bp_queue_object *queue, bp_work *work) {
    char text[BP_ERROR_BYTES] = "";
    int32_t status = run_all(device, queue, work, text, sizeof(text));
    if (status) {
        bp_backend_log(BP_LOG_ERROR, text);
        /* Before anyone can learn of it from a signal: whoever knows finds the device lost. */
        if (status == BP_DEVICE_LOST)
            bp_device_lose(device, text);
        for (uint32_t i = 0; i < work->signal_count; i++)
            bp_timeline_poison(work->signals[i].timeline, status, text);
        return;
    }
    for (uint32_t i = 0; i < work->signal_count; i++) {
        const bp_point *point = &work->signals[i];
        status = bp_timeline_advance(point->timeline, point->value);
        if (status)
            bp_timeline_poison(point->timeline, status, bp_error_text());
    }
}
