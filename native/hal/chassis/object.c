/* The table of handles: chunks of slots that grow and never move. */
#include "object.h"

#include "../error.h"

#include <pthread.h>
#include <stdlib.h>

_Atomic(bp_slot *) bp_chunks[BP_CHUNKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Slot numbers start at 1; 0 ends the free list. */
static uint32_t used, first_free;

static const char *const NAMES[] = {"free",   "device", "memory", "queue", "timeline",
                                    "module", "kernel", "plan",   "graph"};

static bp_slot *slot_at(uint32_t number) {
    bp_slot *chunk =
        atomic_load_explicit(&bp_chunks[number / BP_CHUNK_SLOTS], memory_order_acquire);
    return chunk ? &chunk[number % BP_CHUNK_SLOTS] : NULL;
}

/* A free slot's number, or 0. Holds the lock. */
static uint32_t take(void) {
    if (first_free) {
        uint32_t number = first_free;
        first_free = slot_at(number)->next_free;
        return number;
    }
    uint32_t number = used + 1;
    if (number >= BP_CHUNKS * BP_CHUNK_SLOTS)
        return 0;
    if (!slot_at(number)) {
        bp_slot *chunk = calloc(BP_CHUNK_SLOTS, sizeof(*chunk));
        if (!chunk)
            return 0;
        atomic_store_explicit(&bp_chunks[number / BP_CHUNK_SLOTS], chunk, memory_order_release);
    }
    used = number;
    return number;
}

int32_t bp_object_publish(bp_object *object, bp_kind kind, void *owner) {
    pthread_mutex_lock(&lock);
    uint32_t number = take();
    pthread_mutex_unlock(&lock);
    if (!number)
        return bp_fail(BP_OUT_OF_MEMORY, "no handle is left for another %s", NAMES[kind]);
    bp_slot *place = slot_at(number);
    uint32_t generation = atomic_load_explicit(&place->generation, memory_order_relaxed) + 1;
    if (generation == 0)
        generation = 1;
    object->kind = kind;
    object->owner = owner;
    object->handle = (uint64_t)generation << 32 | number;
    atomic_store_explicit(&place->kind, kind, memory_order_relaxed);
    atomic_store_explicit(&place->owner, owner, memory_order_relaxed);
    atomic_store_explicit(&place->object, object, memory_order_relaxed);
    atomic_store_explicit(&place->generation, generation, memory_order_release);
    return BP_OK;
}

void bp_object_withdraw(bp_object *object) {
    uint32_t number = (uint32_t)object->handle;
    bp_slot *place = slot_at(number);
    if (!place)
        return;
    pthread_mutex_lock(&lock);
    atomic_fetch_add_explicit(&place->generation, 1, memory_order_seq_cst);
    atomic_store_explicit(&place->object, NULL, memory_order_release);
    place->next_free = first_free;
    first_free = number;
    pthread_mutex_unlock(&lock);
}

void *bp_object_find(uint64_t handle, bp_kind kind, const void *owner) {
    bp_object *object = bp_object_peek(handle, kind, owner);
    if (!object)
        bp_fail(BP_INVALID_ARGUMENT, "0x%llx is not a live handle of a %s%s",
                (unsigned long long)handle, NAMES[kind], owner ? " of this device" : "");
    return object;
}
