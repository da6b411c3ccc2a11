/*
 * A visit: one call of a table on one object of a device.
 *
 * From begin to end the device is entered, so that close waits, and its lock is held, so that
 * nobody frees the object. A begin that fails gives a status and its sentence and holds nothing:
 * then there is no end.
 */
#ifndef BEDPLATE_HAL_CHASSIS_VISIT_H
#define BEDPLATE_HAL_CHASSIS_VISIT_H

#include "device.h"

typedef struct bp_visit {
    bp_device *device;
    void *object;
} bp_visit;

int32_t bp_visit_begin(bp_visit *visit, uint64_t device, uint64_t object, bp_kind kind);

/* The same for a call that a lost device refuses, before it looks for the object. */
int32_t bp_visit_begin_alive(bp_visit *visit, uint64_t device, uint64_t object, bp_kind kind);

/* Gives back the lock alone, for what must not run under it; then bp_device_leave is the end. */
void bp_visit_unlock(bp_visit *visit);

void bp_visit_end(bp_visit *visit);

/* A whole visit: the object goes by bp_retire. What release, unload and the like are. */
int32_t bp_visit_retire(uint64_t device, uint64_t object, bp_kind kind);

#endif
