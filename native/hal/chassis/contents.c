/* See contents.h. */
#include "contents.h"

#include "capture.h"
#include "memory.h"
#include "module.h"

void bp_contents_free(bp_device *device, bp_object *object) {
    if (object->kind == BP_KIND_MEMORY)
        bp_memory_free(device, (bp_memory *)object);
    else if (object->kind == BP_KIND_TIMELINE)
        bp_timeline_free((bp_timeline_object *)object);
    else if (object->kind == BP_KIND_MODULE)
        bp_module_free((bp_module_object *)object);
    else if (object->kind == BP_KIND_GRAPH)
        bp_graph_free((bp_graph *)object);
}
