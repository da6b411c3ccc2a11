/*
 * Handles: generation in the high 32 bits, slot in the low ones; 0 is never valid.
 *
 * A slot is never freed, so looking a handle up takes no lock: a stale one meets another generation
 * and is refused. What keeps the object alive after the look-up is the device's lock, or the rule
 * of retire.h for work in flight.
 */
#ifndef BEDPLATE_HAL_CHASSIS_OBJECT_H
#define BEDPLATE_HAL_CHASSIS_OBJECT_H

#include "bedplate/hal.h"

#include <stdatomic.h>
#include <stddef.h>

typedef enum bp_kind {
    BP_KIND_FREE,
    BP_KIND_DEVICE,
    BP_KIND_MEMORY,
    BP_KIND_QUEUE,
    BP_KIND_TIMELINE,
    BP_KIND_MODULE,
    BP_KIND_KERNEL,
    BP_KIND_PLAN,
    BP_KIND_GRAPH,
} bp_kind;

/* First member of everything that has a handle. */
typedef struct bp_object {
    bp_kind kind;
    uint64_t handle;
    /* The device it belongs to; null for a device. */
    void *owner;
    /* The device's list of objects, then its list of retired ones. */
    struct bp_object *next, *previous;
    /* Ticket at the time of release; retire.h. */
    uint64_t stamp;
    /* Objects that live inside this one and have handles (a module's kernels), linked by the same
     * member; their handles go stale with it. */
    struct bp_object *parts;
} bp_object;

/* Gives `object` a handle. BP_OUT_OF_MEMORY when slots ran out. */
int32_t bp_object_publish(bp_object *object, bp_kind kind, void *owner);

/* Makes its handle stale; the object stays. */
void bp_object_withdraw(bp_object *object);

/* One place of the table. Kind and owner are here too, because an object of another device may be
 * freed at any moment: only one of the caller's own is looked into. */
typedef struct bp_slot {
    _Atomic uint32_t generation;
    _Atomic uint32_t kind;
    _Atomic(const void *) owner;
    _Atomic(bp_object *) object;
    uint32_t next_free;
} bp_slot;

#define BP_CHUNK_SLOTS 1024u
#define BP_CHUNKS      4096u

/* The table of slots: chunks that are added and never move. */
extern _Atomic(bp_slot *) bp_chunks[BP_CHUNKS];

/* The live object of that kind and owner, or null without a sentence. In the header because a batch
 * looks up three handles for each launch. */
static inline __attribute__((always_inline)) void *bp_object_peek(uint64_t handle, bp_kind kind,
                                                                  const void *owner) {
    uint32_t number = (uint32_t)handle, generation = (uint32_t)(handle >> 32);
    if (number >= BP_CHUNKS * BP_CHUNK_SLOTS)
        return NULL;
    bp_slot *slot = atomic_load_explicit(&bp_chunks[number / BP_CHUNK_SLOTS], memory_order_acquire);
    if (!slot)
        return NULL;
    slot += number % BP_CHUNK_SLOTS;
    /* A slot that was never used has generation 0 and kind BP_KIND_FREE, which nobody asks for.
     * In one order with withdraw and with a device's count of users: who closes it sees who
     * entered, or who enters sees that it closes. */
    if (atomic_load_explicit(&slot->generation, memory_order_seq_cst) != generation ||
        atomic_load_explicit(&slot->kind, memory_order_acquire) != kind ||
        atomic_load_explicit(&slot->owner, memory_order_acquire) != owner)
        return NULL;
    bp_object *object = atomic_load_explicit(&slot->object, memory_order_acquire);
    /* Still the same generation: all three belong to it. */
    if (atomic_load_explicit(&slot->generation, memory_order_relaxed) != generation)
        return NULL;
    return object;
}

/* The same with a sentence in last_error. */
void *bp_object_find(uint64_t handle, bp_kind kind, const void *owner);

#endif
