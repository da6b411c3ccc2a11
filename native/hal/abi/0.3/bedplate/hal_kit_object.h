/*
 * Objects of the kit: handles, the lock, and the sentence behind every refusal.
 *
 * One lock guards everything, one condition wakes host waits. A handle holds a generation, so a
 * stale one, one of another kind or of another device is refused. Include hal_kit.h, not this.
 */
#ifndef BEDPLATE_HAL_KIT_OBJECT_H
#define BEDPLATE_HAL_KIT_OBJECT_H

#include "bedplate/hal_struct.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BP_KIT_OBJECTS 65536u

/* What you write. Called from any thread, one call at a time; a function that fails
 * leaves a sentence with bp_kit_refuse and returns its status. */
typedef struct bp_kit_driver {
    uint32_t device_count;
    /* Name, driver version, memory_bytes, and properties if there are any; head is set for you. */
    int32_t (*describe)(uint32_t index, bp_device_properties *out);
    const bp_capability *claims;
    uint32_t claim_count;
    /* Null when there is none left. Under BP_CAP_HOST_VISIBLE the host may use the pointer. */
    void *(*allocate)(uint32_t index, uint64_t bytes, uint64_t alignment);
    void (*release)(uint32_t index, void *data, uint64_t bytes);
    /* Both are done when they return. */
    int32_t (*copy)(uint32_t index, void *to, const void *from, uint64_t bytes);
    int32_t (*fill)(uint32_t index, void *to, uint64_t bytes, uint32_t pattern, uint32_t width);
} bp_kit_driver;

enum {
    BP_KIT_FREE,
    BP_KIT_DEVICE,
    BP_KIT_MEMORY,
    BP_KIT_QUEUE,
    BP_KIT_TIMELINE,
    BP_KIT_RELEASED,
};

struct bp_kit_work;

typedef struct bp_kit_object {
    uint32_t kind, generation;
    uint64_t owner;
    unsigned char *data;               /* memory */
    uint64_t number;                   /* memory: bytes; timeline: value; device: batches waiting */
    uint64_t used;                     /* device: bytes of its memory */
    uint32_t index;                    /* which of the driver's devices */
    int32_t error;                     /* timeline: 0 or its poison */
    char text[128];                    /* timeline: the words of its poison */
    struct bp_kit_work *first, **last; /* queue */
} bp_kit_object;

static pthread_mutex_t bp_kit_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bp_kit_moved;
static bp_kit_object bp_kit_objects[BP_KIT_OBJECTS];
/* Slots ever used, which are all that is looked through; how many of them are free again, and where
 * to look for one. */
static uint32_t bp_kit_used, bp_kit_free, bp_kit_next;
static _Thread_local char bp_kit_said[256];
static const bp_kit_driver *bp_kit_device_driver;

/* Every refusal leaves one sentence for core.last_error. */
__attribute__((format(printf, 2, 3))) static int32_t bp_kit_refuse(int32_t status,
                                                                   const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(bp_kit_said, sizeof(bp_kit_said), format, arguments);
    va_end(arguments);
    return status;
}

/* The size rule of hal_struct.h, with its sentence. */
static int32_t bp_kit_adopt(const void *given, void *own, uint32_t size, uint32_t reserved) {
    uint32_t at = 0;
    int32_t status = bp_struct_read(given, own, size, reserved, &at);
    return status ? bp_kit_refuse(status, "a struct is null or wrong at offset %u", at) : BP_OK;
}
#define BP_KIT_ADOPT(given, own)                                                                   \
    bp_kit_adopt((given), &(own), sizeof(own), offsetof(__typeof__(own), reserved))

/* Generation in the high half, slot + 1 in the low one: a stale handle meets another generation. */
static uint64_t bp_kit_handle_of(const bp_kit_object *one) {
    return (uint64_t)one->generation << 32 | (uint64_t)(one - bp_kit_objects + 1);
}

/* The live object of that kind and owner, or null with a sentence. Holds the lock. */
static bp_kit_object *bp_kit_find(uint64_t handle, uint32_t kind, uint64_t owner) {
    uint64_t slot = (handle & 0xffffffffu) - 1;
    bp_kit_object *one = slot < BP_KIT_OBJECTS ? &bp_kit_objects[slot] : NULL;
    if (one && one->kind == kind && one->owner == owner && bp_kit_handle_of(one) == handle)
        return one;
    bp_kit_refuse(BP_INVALID_ARGUMENT, "0x%llx is not such a handle of this device",
                  (unsigned long long)handle);
    return NULL;
}

/* A free slot, or null with a sentence. Holds the lock. */
static bp_kit_object *bp_kit_slot(void) {
    for (uint32_t i = 0; bp_kit_free && i < bp_kit_used; i++) {
        bp_kit_next = bp_kit_next + 1 < bp_kit_used ? bp_kit_next + 1 : 0;
        if (bp_kit_objects[bp_kit_next].kind == BP_KIT_FREE) {
            bp_kit_free--;
            return &bp_kit_objects[bp_kit_next];
        }
    }
    if (bp_kit_used < BP_KIT_OBJECTS)
        return &bp_kit_objects[bp_kit_used++];
    bp_kit_refuse(BP_OUT_OF_MEMORY, "all %u handles are in use", BP_KIT_OBJECTS);
    return NULL;
}

/* A new object of a device, or a device itself, or null with a sentence. Holds the lock. */
static bp_kit_object *bp_kit_add(uint32_t kind, uint64_t owner) {
    bp_kit_object *device = kind == BP_KIT_DEVICE ? NULL : bp_kit_find(owner, BP_KIT_DEVICE, 0);
    bp_kit_object *one = kind == BP_KIT_DEVICE || device ? bp_kit_slot() : NULL;
    if (!one)
        return NULL;
    *one = (bp_kit_object){.kind = kind, .generation = one->generation + 1, .owner = owner};
    one->index = device ? device->index : 0;
    one->last = &one->first;
    return one;
}

/* Frees a slot; memory goes back to the driver. */
static void bp_kit_drop(bp_kit_object *one) {
    if (one->data)
        bp_kit_device_driver->release(one->index, one->data, one->number);
    *one = (bp_kit_object){.generation = one->generation};
    bp_kit_free++;
}

#endif /* BEDPLATE_HAL_KIT_OBJECT_H */
