/*
 * Queues of the kit: a batch is checked and copied by submit, and runs in the call that makes it
 * runnable: submit, a signal, or the release of what held it. There is no thread. Include
 * hal_kit.h, not this.
 */
#ifndef BEDPLATE_HAL_KIT_QUEUE_H
#define BEDPLATE_HAL_KIT_QUEUE_H

#include "bedplate/hal_kit_object.h"

#define BP_KIT_BATCH 65536u

typedef union bp_kit_command {
    bp_command prefix;
    bp_copy_command copy;
    bp_fill_command fill;
} bp_kit_command;

typedef struct bp_kit_step {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
    uint32_t pattern, width;
} bp_kit_step;

typedef struct bp_kit_work {
    struct bp_kit_work *next;
    bp_fence *waits, *signals;
    bp_kit_step *steps;
    uint32_t wait_count, signal_count, step_count;
    uint64_t tag;
} bp_kit_work;

/* Signals what a batch promised, or poisons it with the present sentence, and frees the batch. */
static void bp_kit_finish(uint64_t device, bp_kit_work *done, int32_t status) {
    char why[sizeof(bp_kit_said)];
    memcpy(why, bp_kit_said, sizeof(why));
    for (uint32_t i = 0; i < done->signal_count; i++) {
        bp_kit_object *timeline = bp_kit_find(done->signals[i].timeline, BP_KIT_TIMELINE, device);
        if (!timeline || timeline->error)
            continue;
        if (!status && done->signals[i].value > timeline->number) {
            timeline->number = done->signals[i].value;
            continue;
        }
        timeline->error = status ? status : BP_INVALID_ARGUMENT;
        snprintf(timeline->text, sizeof(timeline->text), "batch %llu: %.90s",
                 (unsigned long long)done->tag, status ? why : "its signal would go back");
    }
    free(done->waits);
    free(done->signals);
    free(done->steps);
    free(done);
}

static int32_t bp_kit_run(uint32_t index, const bp_kit_work *one) {
    const bp_kit_driver *driver = bp_kit_device_driver;
    int32_t status = BP_OK;
    for (uint32_t i = 0; !status && i < one->step_count; i++) {
        const bp_kit_step *at = &one->steps[i];
        if (at->from)
            status = driver->copy(index, at->to, at->from, at->bytes);
        else
            status = driver->fill(index, at->to, at->bytes, at->pattern, at->width);
    }
    return status;
}

/* 1 when every fence is reached, 0 when one is not, or the poison of one. */
static int32_t bp_kit_ready(uint64_t device, const bp_kit_work *one) {
    int32_t reached = 1;
    for (uint32_t i = 0; i < one->wait_count; i++) {
        const bp_kit_object *timeline =
            bp_kit_find(one->waits[i].timeline, BP_KIT_TIMELINE, device);
        if (!timeline)
            return bp_kit_refuse(BP_CANCELLED, "a timeline that it waits for is gone");
        if (timeline->error)
            return bp_kit_refuse(timeline->error, "%s", timeline->text);
        if (timeline->number < one->waits[i].value)
            reached = 0;
    }
    return reached;
}

/* Runs what can run on a device until nothing moves, then frees what was waiting to be freed. */
static void bp_kit_progress(uint64_t device) {
    bp_kit_object *owner = bp_kit_find(device, BP_KIT_DEVICE, 0);
    for (int again = 1; again && owner->number;) {
        again = 0;
        for (bp_kit_object *queue = bp_kit_objects; queue < bp_kit_objects + bp_kit_used; queue++) {
            int32_t state = 1;
            while (queue->kind == BP_KIT_QUEUE && queue->owner == device && queue->first && state) {
                bp_kit_work *one = queue->first;
                state = bp_kit_ready(device, one);
                if (!state)
                    break;
                int32_t status = state > 0 ? bp_kit_run(owner->index, one) : state;
                queue->first = one->next;
                if (!queue->first)
                    queue->last = &queue->first;
                owner->number--;
                bp_kit_finish(device, one, status);
                again = 1;
            }
        }
    }
    for (bp_kit_object *one = bp_kit_objects; !owner->number && one < bp_kit_objects + bp_kit_used;
         one++)
        if (one->kind == BP_KIT_RELEASED && one->owner == device)
            bp_kit_drop(one);
    pthread_cond_broadcast(&bp_kit_moved);
}

static int32_t bp_kit_create_queue(uint64_t device, const bp_queue_info *given, uint64_t *out) {
    bp_queue_info info;
    int32_t status = BP_KIT_ADOPT(given, info);
    if (status)
        return status;
    if (!out || info.flags)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "a queue with flags 0x%x", info.flags);
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *one = bp_kit_add(BP_KIT_QUEUE, device);
    if (one)
        *out = bp_kit_handle_of(one);
    status = one                                     ? BP_OK
             : bp_kit_find(device, BP_KIT_DEVICE, 0) ? BP_OUT_OF_MEMORY
                                                     : BP_INVALID_ARGUMENT;
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

/* The bytes of a range, or null with a sentence. */
static unsigned char *bp_kit_resolve(uint64_t device, const bp_range *range) {
    const bp_kit_object *one = bp_kit_find(range->memory, BP_KIT_MEMORY, device);
    if (one && range->offset <= one->number && range->length <= one->number - range->offset)
        return one->data + range->offset;
    bp_kit_refuse(BP_INVALID_ARGUMENT, "a range ends past the end of its memory");
    return NULL;
}

static int32_t bp_kit_check_command(uint64_t device, const bp_command *given, bp_kit_step *out) {
    bp_kit_command own;
    bp_command prefix;
    int32_t status = BP_INVALID_ARGUMENT;
    /* Not bp_struct_head, which the headers of 0.1 lack: the kit builds with those too. */
    if (!given || given->head.struct_version != 1 || given->head.struct_size < sizeof(prefix) ||
        given->head.struct_size > BP_STRUCT_MOST || given->head.struct_size % 8)
        return bp_kit_refuse(status, "a command is null or has no kind");
    prefix = *given;
    if (prefix.kind != BP_COMMAND_COPY && prefix.kind != BP_COMMAND_FILL)
        return bp_kit_refuse(BP_UNSUPPORTED, "command kind %u", prefix.kind);
    if (prefix.flags)
        return bp_kit_refuse(status, "command flags 0x%x", prefix.flags);
    status = prefix.kind == BP_COMMAND_COPY ? BP_KIT_ADOPT(given, own.copy)
                                            : BP_KIT_ADOPT(given, own.fill);
    if (status)
        return status;
    bp_range to = prefix.kind == BP_COMMAND_COPY ? own.copy.destination : own.fill.destination;
    *out = (bp_kit_step){.to = bp_kit_resolve(device, &to), .bytes = to.length};
    if (!out->to)
        return BP_INVALID_ARGUMENT;
    if (prefix.kind == BP_COMMAND_FILL) {
        out->pattern = own.fill.pattern;
        out->width = own.fill.pattern_bytes;
        if ((out->width == 1 || out->width == 2 || out->width == 4) &&
            to.length % out->width == 0 && to.offset % out->width == 0)
            return BP_OK;
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "a fill with a pattern of %u bytes", out->width);
    }
    out->from = bp_kit_resolve(device, &own.copy.source);
    if (!out->from)
        return BP_INVALID_ARGUMENT;
    if (own.copy.source.length != to.length ||
        (out->to < out->from + to.length && out->from < out->to + to.length))
        return bp_kit_refuse(BP_INVALID_ARGUMENT,
                             "the ranges of a copy differ in length or overlap");
    return BP_OK;
}

static int32_t bp_kit_check_fences(uint64_t device, const bp_fence *fences, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!bp_kit_find(fences[i].timeline, BP_KIT_TIMELINE, device))
            return BP_INVALID_ARGUMENT;
    return BP_OK;
}

static int32_t bp_kit_check_batch(uint64_t device, const bp_batch *batch, bp_kit_work *out) {
    int32_t status = bp_kit_check_fences(device, batch->wait, batch->wait_count);
    if (!status)
        status = bp_kit_check_fences(device, batch->signal, batch->signal_count);
    for (uint32_t i = 0; !status && i < batch->command_count; i++) {
        status = bp_kit_check_command(device, batch->commands[i], &out->steps[i]);
        if (status) {
            char why[sizeof(bp_kit_said)];
            memcpy(why, bp_kit_said, sizeof(why));
            bp_kit_refuse(status, "command %u: %.200s", i, why);
        }
    }
    return status;
}

static int32_t bp_kit_submit(uint64_t device, uint64_t queue_handle, const bp_batch *given) {
    bp_batch batch;
    int32_t status = BP_KIT_ADOPT(given, batch);
    if (status)
        return status;
    if (batch.flags || (batch.command_count && !batch.commands) ||
        (batch.wait_count && !batch.wait) || (batch.signal_count && !batch.signal) ||
        batch.command_count > BP_KIT_BATCH || batch.wait_count > BP_KIT_BATCH ||
        batch.signal_count > BP_KIT_BATCH)
        return bp_kit_refuse(BP_INVALID_ARGUMENT,
                             "a batch with flags or a count without its array");
    bp_kit_work *one = calloc(1, sizeof(*one));
    if (!one)
        return bp_kit_refuse(BP_OUT_OF_MEMORY, "the host has no memory left");
    one->waits = calloc(batch.wait_count + 1u, sizeof(bp_fence));
    one->signals = calloc(batch.signal_count + 1u, sizeof(bp_fence));
    one->steps = calloc(batch.command_count + 1u, sizeof(bp_kit_step));
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *owner = bp_kit_find(device, BP_KIT_DEVICE, 0);
    bp_kit_object *queue = owner ? bp_kit_find(queue_handle, BP_KIT_QUEUE, device) : NULL;
    status = queue ? BP_OK : BP_INVALID_ARGUMENT;
    if (!one->waits || !one->signals || !one->steps)
        status = bp_kit_refuse(BP_OUT_OF_MEMORY, "the host has no memory left");
    if (!status)
        status = bp_kit_check_batch(device, &batch, one);
    if (status) {
        bp_kit_finish(device, one, status);
    } else {
        /* All of it is good: from here the batch counts, and nothing of the caller's is read. */
        one->tag = batch.tag;
        one->wait_count = batch.wait_count;
        one->signal_count = batch.signal_count;
        one->step_count = batch.command_count;
        for (uint32_t i = 0; i < batch.wait_count; i++)
            one->waits[i] = batch.wait[i];
        for (uint32_t i = 0; i < batch.signal_count; i++)
            one->signals[i] = batch.signal[i];
        *queue->last = one;
        queue->last = &one->next;
        owner->number++;
        bp_kit_progress(device);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

/* Ends a queue: what waits in it is poisoned. Holds the lock. */
static void bp_kit_cancel(uint64_t device, bp_kit_object *queue) {
    for (bp_kit_work *next, *one = queue->first; one; one = next) {
        next = one->next;
        bp_kit_find(device, BP_KIT_DEVICE, 0)->number--;
        bp_kit_refuse(BP_CANCELLED, "its queue or device was destroyed first");
        bp_kit_finish(device, one, BP_CANCELLED);
    }
    bp_kit_drop(queue);
}

static int32_t bp_kit_flush(uint64_t device, uint64_t queue) {
    pthread_mutex_lock(&bp_kit_lock);
    int found = bp_kit_find(device, BP_KIT_DEVICE, 0) && bp_kit_find(queue, BP_KIT_QUEUE, device);
    pthread_mutex_unlock(&bp_kit_lock);
    return found ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t bp_kit_destroy_queue(uint64_t device, uint64_t queue_handle) {
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *queue = bp_kit_find(device, BP_KIT_DEVICE, 0)
                               ? bp_kit_find(queue_handle, BP_KIT_QUEUE, device)
                               : NULL;
    if (queue) {
        bp_kit_cancel(device, queue);
        bp_kit_progress(device);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return queue ? BP_OK : BP_INVALID_ARGUMENT;
}

#endif /* BEDPLATE_HAL_KIT_QUEUE_H */
