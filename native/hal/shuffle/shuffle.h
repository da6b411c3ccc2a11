/*
 * The shuffler: the cpu backend whose queues do everything in an order that the contract allows
 * and nobody expects.
 *
 * One thread serves all queues. At each step it takes one command of one queue whose turn nobody
 * promised: queues are interleaved command by command, copies and fills of a batch that do not
 * touch each other are exchanged, batches begin late, signals are given late and in any order that
 * lets each timeline grow. BEDPLATE_HAL_SHUFFLE_SEED (default 1) chooses; the same seed favours the
 * same queues.
 *
 * Device 0 keeps every promise. Each other device breaks one, named by its property `liar.lie`.
 */
#ifndef BEDPLATE_HAL_SHUFFLE_SHUFFLE_H
#define BEDPLATE_HAL_SHUFFLE_SHUFFLE_H

#include "../chassis/queue.h"

typedef enum bp_breach {
    BP_BREACH_NONE,
    /* Commands of a batch in any order, whatever they touch. */
    BP_BREACH_TORN_BATCH,
    /* A batch may begin before the one before it in its queue is done. */
    BP_BREACH_OVERTAKING_BATCH,
    /* A signal may be given while commands are left. */
    BP_BREACH_SIGNAL_BEFORE_WORK,
    /* Of several fences the last is not waited for. */
    BP_BREACH_FORGOTTEN_FENCE,
    BP_BREACH_COUNT,
} bp_breach;

/* One batch in flight; `ran` and `given` hold a byte for each command and signal. */
typedef struct bp_flight {
    struct bp_flight *next;
    bp_work *work;
    unsigned char *ran, *given;
    /* Commands before this one have run. */
    uint32_t front;
    uint32_t nodes_left, signals_left;
    /* Steps to let pass before the next one. */
    uint32_t patience;
    int begun;
    int32_t status;
    char text[BP_ERROR_BYTES];
} bp_flight;

typedef struct bp_shuffle_queue {
    bp_queue_object *queue;
    struct bp_shuffle_queue *next;
    /* Under the scheduler's lock. */
    bp_flight *first, *last;
    int busy;
} bp_shuffle_queue;

/* Enters a queue; BP_OK, or a status with a sentence when there is no thread. */
int32_t bp_shuffle_enter(bp_shuffle_queue *queue);

/* Appends a batch, which the scheduler then owns. Holds the device's lock. */
void bp_shuffle_append(bp_shuffle_queue *queue, bp_flight *flight);

/* Returns when all its batches are over and the scheduler has forgotten it. */
void bp_shuffle_leave(bp_shuffle_queue *queue);

/* A number below `most` from the seed; 0 when most is 0. Holds the scheduler's lock. */
uint32_t bp_shuffle_random(uint32_t most);

/* order.c: a command of a flight that may run now, and a signal that may be given now. */
uint32_t bp_shuffle_node(const bp_flight *flight, bp_breach breach);
uint32_t bp_shuffle_signal(const bp_flight *flight);

#endif
