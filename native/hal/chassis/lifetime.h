/*
 * A queue from create to destroy, whatever runs its batches: two slots of the queue table, and most
 * of a third. What is special comes by bp_driver (stop, free_queue) and by `make`.
 */
#ifndef BEDPLATE_HAL_CHASSIS_LIFETIME_H
#define BEDPLATE_HAL_CHASSIS_LIFETIME_H

#include "device.h"

/* Makes a queue that takes batches, not yet published; or a status with a sentence, and nothing is
 * kept. The device is entered, not locked. */
typedef int32_t (*bp_queue_make)(bp_device *device, const bp_queue_info *info, bp_object **out);

/* queue.create: checks, makes, publishes; what cannot be published is stopped and freed. */
int32_t bp_queue_create(uint64_t device, const bp_queue_info *given, bp_queue_make make,
                        uint64_t *out);

/* queue.flush of a queue whose batches are on their way when submit returns. */
int32_t bp_queue_flush(uint64_t device, uint64_t queue);

/* queue.destroy. */
int32_t bp_queue_destroy(uint64_t device, uint64_t queue);

#endif
