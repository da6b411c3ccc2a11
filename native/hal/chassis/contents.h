/* What devices with host timelines hold, freed by kind: most of bp_driver.destroy. */
#ifndef BEDPLATE_HAL_CHASSIS_CONTENTS_H
#define BEDPLATE_HAL_CHASSIS_CONTENTS_H

#include "queue.h"

/* Frees memory, a timeline or a module; leaves other kinds alone: kernels go with their module,
 * queues end first, and plans are the backend's. Holds the device's lock. */
void bp_contents_free(bp_device *device, bp_object *object);

/* The members of bp_driver that are alike in all these backends. */
#define BP_CONTENTS_DRIVER                                                                         \
    .poison = bp_timeline_poison, .waited = bp_timeline_waited, .oldest = bp_queue_oldest,         \
    .stop = bp_queue_stop, .free_queue = bp_queue_free

#endif
