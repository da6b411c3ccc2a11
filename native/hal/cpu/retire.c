/* Deferred release by ticket. */
#include "retire.h"

#include "memory.h"
#include "module.h"
#include "plan.h"
#include "queue.h"
#include "timeline.h"

void bp_object_destroy(bp_device *device, bp_object *object) {
    switch (object->kind) {
    case BP_KIND_MEMORY:
        bp_memory_free(device, (bp_memory *)object);
        break;
    case BP_KIND_TIMELINE:
        bp_timeline_free((bp_timeline_object *)object);
        break;
    case BP_KIND_MODULE:
        bp_module_free((bp_module_object *)object);
        break;
    case BP_KIND_PLAN:
        bp_plan_free((bp_plan_object *)object);
        break;
    default:
        /* Kernels go with their module, queues join their thread first. */
        break;
    }
}

static int in_use(bp_device *device, const bp_object *object) {
    if (object->kind == BP_KIND_TIMELINE && bp_timeline_waited((const bp_timeline_object *)object))
        return 1;
    return object->stamp >= bp_queue_oldest(device);
}

void bp_retire(bp_device *device, bp_object *object) {
    bp_object_withdraw(object);
    bp_device_remove(device, object);
    object->stamp = device->tickets;
    if (!in_use(device, object)) {
        bp_object_destroy(device, object);
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
            bp_object_destroy(device, object);
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
