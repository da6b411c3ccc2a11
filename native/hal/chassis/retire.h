/*
 * When the storage of a released object may go.
 *
 * A batch keeps raw pointers, so that running it looks nothing up. Release makes a handle stale at
 * once; the object is freed when every batch submitted before is done, and then nobody can know it.
 * Trade-off: no reference counts per command, for memory that lives a little longer.
 */
#ifndef BEDPLATE_HAL_CHASSIS_RETIRE_H
#define BEDPLATE_HAL_CHASSIS_RETIRE_H

#include "device.h"

/* Withdraws the handle and those of its parts, and frees now or later. Holds the device's lock. */
void bp_retire(bp_device *device, bp_object *object);

/* Frees what no batch in flight can know. Holds the device's lock. */
void bp_retire_sweep(bp_device *device);

#endif
