/*
 * What a backend tells the chassis about its devices, objects, queues and timelines.
 *
 * The chassis is code that every backend needs and none should write twice. Its parts link
 * separately; each says in its header what it wants from the backend:
 *
 *   object    handles                                  nothing
 *   device    open, close, losing                      bp_driver (here)
 *   retire    when released storage may go             bp_driver
 *   visit     one call on one object, under the lock   bp_driver
 *   lifetime  a queue's create, flush, destroy         bp_driver
 *   memory    the mem table                            bp_memory_driver
 *   module    the module table, kernels                bp_module_driver
 *   command   commands by the size rule                nothing
 *   launch    launches: limits and arguments           bp_device.limits
 *   batch     a checked, compiled batch                bp_batch_driver
 *   single    the same for one launch, on the stack    bp_batch_driver
 *   backend   the core table, the query                bp_backend
 *   host      the host's log                           nothing
 *   text      texts that live as long as the library   nothing
 *   sticky    a timeline's error, and its sleepers     nothing
 *   timeline  host timelines on a futex                nothing
 *   queue     executor threads that run batches        bp_executor, host timelines
 *   capture   graphs                                   executor queues
 *   contents  frees what a device holds, by kind       host timelines, memory, module
 *
 * A backend with queues and timelines of the device's own takes all but the last four: nothing
 * of object to text knows a thread, a futex or a host pointer.
 */
#ifndef BEDPLATE_HAL_CHASSIS_DRIVER_H
#define BEDPLATE_HAL_CHASSIS_DRIVER_H

#include "object.h"

struct bp_device;

/* One in each backend, called bp_driver_own. Functions marked (locked) run under the device's lock
 * and must not take it. */
typedef struct bp_driver {
    /* sizeof the backend's device struct, whose first member is bp_device. */
    uint32_t device_bytes;
    /* Number of devices; may look for them, initialises none. */
    int32_t (*count)(uint32_t *count);
    /* Sets up a zeroed part behind bp_device, and limits and memory_total in it. BP_OK or a status
     * with a sentence; then nothing is kept. */
    int32_t (*open)(struct bp_device *device, uint32_t index);
    /* Gives back what open took. All objects are gone. */
    void (*close)(struct bp_device *device);

    /* Poisons a timeline, the first error stays (locked). */
    void (*poison)(bp_object *timeline, int32_t status, const char *text);
    /* Whether a host waiter is inside a timeline (locked). */
    int (*waited)(const bp_object *timeline);
    /* Ticket of a queue's oldest batch not done, UINT64_MAX when idle (locked). */
    uint64_t (*oldest)(const bp_object *queue);
    /* Cancels and waits for what a queue runs; then frees it. Not locked. */
    void (*stop)(bp_object *queue);
    void (*free_queue)(bp_object *queue);

    /* Frees any object but a queue; nobody can know it any more (locked). */
    void (*destroy)(struct bp_device *device, bp_object *object);
} bp_driver;

extern const bp_driver bp_driver_own;

#endif
