/*
 * A backend's four mandatory tables over the few functions of a bp_kit_driver. Header only: include
 * it in one C file and return bp_kit_query from bedplate_hal_backend_query.
 *
 * The kit keeps every promise of the ABI that is not about the device: handles, the size rule,
 * fences, poison, cancelling, deadlines. What it does not have is speed: commands run under one
 * lock in the caller's thread. A backend that needs threads or launches outgrows it.
 */
#ifndef BEDPLATE_HAL_KIT_H
#define BEDPLATE_HAL_KIT_H

#include "bedplate/hal_kit_queue.h"

#include <time.h>

static int32_t bp_kit_enumerate(uint32_t *count) {
    if (!count)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "enumerate got no place for its result");
    *count = bp_kit_device_driver->device_count;
    return BP_OK;
}

static int32_t bp_kit_past_the_end(uint32_t index) {
    if (index < bp_kit_device_driver->device_count)
        return BP_OK;
    return bp_kit_refuse(BP_NOT_FOUND, "there is no device %u; this backend has %u", index,
                         bp_kit_device_driver->device_count);
}

static int32_t bp_kit_open_device(uint32_t index, uint64_t *device) {
    if (!device)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "open got no place for its result");
    if (bp_kit_past_the_end(index))
        return BP_NOT_FOUND;
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *one = bp_kit_add(BP_KIT_DEVICE, 0);
    if (one) {
        one->index = index;
        *device = bp_kit_handle_of(one);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return one ? BP_OK : BP_OUT_OF_MEMORY;
}

static int32_t bp_kit_close_device(uint64_t device) {
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *owner = bp_kit_find(device, BP_KIT_DEVICE, 0);
    for (bp_kit_object *one = bp_kit_objects; owner && one < bp_kit_objects + bp_kit_used; one++)
        if (one->kind == BP_KIT_QUEUE && one->owner == device)
            bp_kit_cancel(device, one);
    for (bp_kit_object *one = bp_kit_objects; owner && one < bp_kit_objects + bp_kit_used; one++)
        if (one->kind != BP_KIT_FREE && (one->owner == device || one == owner))
            bp_kit_drop(one);
    pthread_cond_broadcast(&bp_kit_moved);
    pthread_mutex_unlock(&bp_kit_lock);
    return owner ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t bp_kit_properties(uint32_t index, bp_device_properties *out) {
    bp_device_properties own = {.head = {1, sizeof(own)}};
    int32_t status = bp_kit_past_the_end(index);
    if (!status)
        status = bp_kit_device_driver->describe(index, &own);
    if (!status && bp_struct_write(out, &own, sizeof(own)))
        status = bp_kit_refuse(BP_INVALID_ARGUMENT, "properties got no place for its result");
    return status;
}

static int32_t bp_kit_capabilities(uint32_t index, bp_capability *out, uint32_t room,
                                   uint32_t *count) {
    if (bp_kit_past_the_end(index))
        return BP_NOT_FOUND;
    if (!count || (room && !out))
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "capabilities got no place for its result");
    *count = bp_kit_device_driver->claim_count;
    for (uint32_t i = 0; i < *count && i < room; i++)
        out[i] = bp_kit_device_driver->claims[i];
    return BP_OK;
}

static int32_t bp_kit_last_error(char *buffer, uint64_t capacity, uint64_t *length) {
    uint64_t bytes = strlen(bp_kit_said);
    if (length)
        *length = bytes;
    if (buffer && capacity)
        snprintf(buffer, capacity < sizeof(bp_kit_said) ? capacity : sizeof(bp_kit_said), "%s",
                 bp_kit_said);
    return BP_OK;
}

/* Finds room, a slot and the driver's memory. Holds the lock. */
static int32_t bp_kit_place(uint64_t device, uint64_t bytes, uint64_t alignment, uint64_t *out) {
    bp_device_properties facts = {.head = {1, sizeof(facts)}};
    bp_kit_object *owner = bp_kit_find(device, BP_KIT_DEVICE, 0);
    int32_t status = owner ? bp_kit_device_driver->describe(owner->index, &facts) : BP_OK;
    if (!owner || status)
        return owner ? status : BP_INVALID_ARGUMENT;
    if (bytes > facts.memory_bytes - owner->used)
        return bp_kit_refuse(BP_OUT_OF_MEMORY, "%llu bytes were asked for, %llu are left",
                             (unsigned long long)bytes,
                             (unsigned long long)(facts.memory_bytes - owner->used));
    bp_kit_object *one = bp_kit_add(BP_KIT_MEMORY, device);
    if (!one)
        return BP_OUT_OF_MEMORY;
    one->data = bp_kit_device_driver->allocate(owner->index, bytes, alignment);
    if (!one->data) {
        bp_kit_drop(one);
        return bp_kit_refuse(BP_OUT_OF_MEMORY, "the device refused %llu bytes",
                             (unsigned long long)bytes);
    }
    one->number = bytes;
    owner->used += bytes;
    *out = bp_kit_handle_of(one);
    return BP_OK;
}

static int32_t bp_kit_create_memory(uint64_t device, const bp_memory_info *given, uint64_t *out) {
    bp_memory_info wanted;
    int32_t status = BP_KIT_ADOPT(given, wanted);
    if (status)
        return status;
/* Older headers have no flags: there they are an unknown tail, refused already. */
#if BP_ABI_MAJOR > 0 || BP_ABI_MINOR >= 3
    if (wanted.flags || wanted.pad)
        return bp_kit_refuse(BP_UNSUPPORTED, "memory with flags 0x%x; there is none", wanted.flags);
#endif
    uint64_t align = wanted.alignment > 64 ? wanted.alignment : 64;
    if (!out || !wanted.bytes || wanted.alignment & (wanted.alignment - 1) || align > 1u << 21)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "memory of %llu bytes aligned to %llu",
                             (unsigned long long)wanted.bytes,
                             (unsigned long long)wanted.alignment);
    pthread_mutex_lock(&bp_kit_lock);
    status = bp_kit_place(device, wanted.bytes, align, out);
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

static int bp_kit_claims(uint32_t capability) {
    for (uint32_t i = 0; i < bp_kit_device_driver->claim_count; i++)
        if (bp_kit_device_driver->claims[i].id == capability)
            return 1;
    return 0;
}

static int32_t bp_kit_release_memory(uint64_t device, uint64_t memory) {
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *owner = bp_kit_find(device, BP_KIT_DEVICE, 0);
    bp_kit_object *one = owner ? bp_kit_find(memory, BP_KIT_MEMORY, device) : NULL;
    if (one) {
        owner->used -= one->number;
        one->kind = BP_KIT_RELEASED; /* stale at once; the bytes stay while batches wait */
        bp_kit_progress(device);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return one ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t bp_kit_describe_memory(uint64_t device, uint64_t memory, bp_memory_info *out) {
    bp_memory_info own = {.alignment = 64};
    pthread_mutex_lock(&bp_kit_lock);
    const bp_kit_object *one =
        bp_kit_find(device, BP_KIT_DEVICE, 0) ? bp_kit_find(memory, BP_KIT_MEMORY, device) : NULL;
    if (one) {
        own.bytes = one->number;
        own.host = bp_kit_claims(BP_CAP_HOST_VISIBLE) ? one->data : NULL;
        own.address = bp_kit_claims(BP_CAP_DEVICE_ADDRESS) ? (uint64_t)(uintptr_t)one->data : 0;
    }
    pthread_mutex_unlock(&bp_kit_lock);
    if (one && bp_struct_write(out, &own, sizeof(own)))
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "describe got no place for its result");
    return one ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t bp_kit_create_timeline(uint64_t device, uint64_t initial, uint64_t *out) {
    if (!out)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "create got no place for its result");
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *one = bp_kit_add(BP_KIT_TIMELINE, device);
    int32_t status = one                                     ? BP_OK
                     : bp_kit_find(device, BP_KIT_DEVICE, 0) ? BP_OUT_OF_MEMORY
                                                             : BP_INVALID_ARGUMENT;
    if (one) {
        one->number = initial;
        *out = bp_kit_handle_of(one);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

static bp_kit_object *bp_kit_find_timeline(uint64_t device, uint64_t timeline) {
    return bp_kit_find(device, BP_KIT_DEVICE, 0) ? bp_kit_find(timeline, BP_KIT_TIMELINE, device)
                                                 : NULL;
}

static int32_t bp_kit_poisoned(const bp_kit_object *timeline) {
    return bp_kit_refuse(timeline->error, "%s", timeline->text);
}

static int32_t bp_kit_signal_timeline(uint64_t device, uint64_t timeline, uint64_t value) {
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *one = bp_kit_find_timeline(device, timeline);
    int32_t status = one ? BP_OK : BP_INVALID_ARGUMENT;
    if (one && one->error)
        status = bp_kit_poisoned(one);
    else if (one && value <= one->number)
        status = bp_kit_refuse(BP_INVALID_ARGUMENT, "a timeline never goes back");
    if (!status) {
        one->number = value;
        bp_kit_progress(device);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

static int32_t bp_kit_query_timeline(uint64_t device, uint64_t timeline, uint64_t *value) {
    if (!value)
        return bp_kit_refuse(BP_INVALID_ARGUMENT, "query got no place for its result");
    pthread_mutex_lock(&bp_kit_lock);
    const bp_kit_object *one = bp_kit_find_timeline(device, timeline);
    int32_t status = one ? BP_OK : BP_INVALID_ARGUMENT;
    if (one) {
        *value = one->number;
        status = one->error ? bp_kit_poisoned(one) : BP_OK;
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

static int32_t bp_kit_wait_host(uint64_t device, uint64_t timeline, uint64_t value,
                                uint64_t deadline_ns) {
    struct timespec until = {(time_t)(deadline_ns / 1000000000u),
                             (long)(deadline_ns % 1000000000u)};
    int32_t status = BP_BUSY;
    int late = 0;
    pthread_mutex_lock(&bp_kit_lock);
    for (int first = 1; status == BP_BUSY; first = 0) {
        const bp_kit_object *one = bp_kit_find_timeline(device, timeline);
        if (!one)
            status =
                first ? BP_INVALID_ARGUMENT : bp_kit_refuse(BP_CANCELLED, "the timeline went away");
        else if (one->error)
            status = bp_kit_poisoned(one);
        else if (one->number >= value)
            status = BP_OK;
        else if (late)
            status = bp_kit_refuse(BP_DEADLINE, "the timeline is at %llu, not %llu",
                                   (unsigned long long)one->number, (unsigned long long)value);
        else
            late = pthread_cond_timedwait(&bp_kit_moved, &bp_kit_lock, &until) != 0;
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return status;
}

static int32_t bp_kit_destroy_timeline(uint64_t device, uint64_t timeline) {
    pthread_mutex_lock(&bp_kit_lock);
    bp_kit_object *one = bp_kit_find_timeline(device, timeline);
    if (one) {
        bp_kit_drop(one);
        bp_kit_progress(device);
    }
    pthread_mutex_unlock(&bp_kit_lock);
    return one ? BP_OK : BP_INVALID_ARGUMENT;
}

static const bp_core BP_KIT_CORE = {.head = {1, sizeof(bp_core)},
                                    .enumerate = bp_kit_enumerate,
                                    .open = bp_kit_open_device,
                                    .close = bp_kit_close_device,
                                    .properties = bp_kit_properties,
                                    .capabilities = bp_kit_capabilities,
                                    .last_error = bp_kit_last_error};
static const bp_mem BP_KIT_MEM = {.head = {1, sizeof(bp_mem)},
                                  .create = bp_kit_create_memory,
                                  .release = bp_kit_release_memory,
                                  .describe = bp_kit_describe_memory};
static const bp_queue BP_KIT_QUEUES = {.head = {1, sizeof(bp_queue)},
                                       .create = bp_kit_create_queue,
                                       .submit = bp_kit_submit,
                                       .flush = bp_kit_flush,
                                       .destroy = bp_kit_destroy_queue};
static const bp_timeline BP_KIT_TIMELINES = {.head = {1, sizeof(bp_timeline)},
                                             .create = bp_kit_create_timeline,
                                             .signal = bp_kit_signal_timeline,
                                             .query = bp_kit_query_timeline,
                                             .wait_host = bp_kit_wait_host,
                                             .destroy = bp_kit_destroy_timeline};
static const bp_api BP_KIT_API = {.head = {1, sizeof(bp_api)},
                                  .major = BP_ABI_MAJOR,
                                  .minor = BP_ABI_MINOR,
                                  .core = &BP_KIT_CORE,
                                  .mem = &BP_KIT_MEM,
                                  .queue = &BP_KIT_QUEUES,
                                  .timeline = &BP_KIT_TIMELINES};

static void bp_kit_set_up(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&bp_kit_moved, &monotonic);
}

/* The answer of bedplate_hal_backend_query. The driver lives as long as the library. */
static int32_t bp_kit_query(const bp_kit_driver *driver, uint32_t wanted_major,
                            const bp_api **out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (wanted_major != BP_ABI_MAJOR)
        return bp_kit_refuse(BP_VERSION, "this backend speaks ABI major %u", BP_ABI_MAJOR);
    pthread_once(&once, bp_kit_set_up);
    bp_kit_device_driver = driver;
    *out = &BP_KIT_API;
    return BP_OK;
}

#endif /* BEDPLATE_HAL_KIT_H */
