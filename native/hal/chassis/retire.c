/* Deferred release by ticket. */
#include "retire.h"

/* Smallest ticket in flight on the device, UINT64_MAX when none. */
static uint64_t oldest(const bp_device *device) {
    uint64_t found = UINT64_MAX;
    uint32_t left = device->queue_count;
    for (const bp_object *object = device->objects; object && left; object = object->next) {
        if (object->kind != BP_KIND_QUEUE)
            continue;
        left--;
        uint64_t own = bp_driver_own.oldest(object);
        if (own < found)
            found = own;
    }
    return found;
}

static int in_use(const bp_device *device, const bp_object *object) {
    if (object->kind == BP_KIND_TIMELINE && bp_driver_own.waited(object))
        return 1;
    return object->stamp >= oldest(device);
}

void bp_retire(bp_device *device, bp_object *object) {
    bp_object_withdraw(object);
    for (bp_object *part = object->parts; part; part = part->parts)
        bp_object_withdraw(part);
    bp_device_remove(device, object);
    object->stamp = device->tickets;
    if (!in_use(device, object)) {
        bp_driver_own.destroy(device, object);
        return;
    }
    if (device->retired_last)
        device->retired_last->next = object;
    else
        device->retired = object;
    device->retired_last = object;
}

void bp_retire_sweep(bp_device *device) {
    bp_object *kept = NULL, *last = NULL;
    for (bp_object *object = device->retired, *next; object; object = next) {
        next = object->next;
        object->next = NULL;
        if (!in_use(device, object)) {
            bp_driver_own.destroy(device, object);
            continue;
        }
        if (last)
            last->next = object;
        else
            kept = object;
        last = object;
    }
    device->retired = kept;
    device->retired_last = last;
}
