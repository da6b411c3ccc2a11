/* Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit. */
/* clang-format off */
#include "stubs.h"

#include <string.h>

static int32_t absent_core_enumerate(uint32_t *count) {
    (void)count;
    return bp_hal_absent("core.enumerate");
}

static int32_t absent_core_open(uint32_t index, uint64_t *device) {
    (void)index;
    (void)device;
    return bp_hal_absent("core.open");
}

static int32_t absent_core_close(uint64_t device) {
    (void)device;
    return bp_hal_absent("core.close");
}

static int32_t absent_core_properties(uint32_t index, bp_device_properties *out) {
    (void)index;
    (void)out;
    return bp_hal_absent("core.properties");
}

static int32_t absent_core_capabilities(uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count) {
    (void)index;
    (void)out;
    (void)capacity;
    (void)count;
    return bp_hal_absent("core.capabilities");
}

static int32_t absent_core_last_error(char *buffer, uint64_t capacity, uint64_t *length) {
    (void)buffer;
    (void)capacity;
    (void)length;
    return bp_hal_absent("core.last_error");
}

void bp_hal_fill_core(bp_core *out, const bp_core *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->enumerate)
        out->enumerate = absent_core_enumerate;
    if (!out->open)
        out->open = absent_core_open;
    if (!out->close)
        out->close = absent_core_close;
    if (!out->properties)
        out->properties = absent_core_properties;
    if (!out->capabilities)
        out->capabilities = absent_core_capabilities;
    if (!out->last_error)
        out->last_error = absent_core_last_error;
}

static int32_t absent_mem_create(uint64_t device, const bp_memory_info *wanted, uint64_t *memory) {
    (void)device;
    (void)wanted;
    (void)memory;
    return bp_hal_absent("mem.create");
}

static int32_t absent_mem_release(uint64_t device, uint64_t memory) {
    (void)device;
    (void)memory;
    return bp_hal_absent("mem.release");
}

static int32_t absent_mem_describe(uint64_t device, uint64_t memory, bp_memory_info *out) {
    (void)device;
    (void)memory;
    (void)out;
    return bp_hal_absent("mem.describe");
}

static int32_t absent_mem_reserve(uint64_t device, uint64_t bytes, uint64_t alignment, uint64_t *address) {
    (void)device;
    (void)bytes;
    (void)alignment;
    (void)address;
    return bp_hal_absent("mem.reserve");
}

static int32_t absent_mem_map(uint64_t device, uint64_t address, const bp_range *range) {
    (void)device;
    (void)address;
    (void)range;
    return bp_hal_absent("mem.map");
}

static int32_t absent_mem_unmap(uint64_t device, uint64_t address, uint64_t bytes) {
    (void)device;
    (void)address;
    (void)bytes;
    return bp_hal_absent("mem.unmap");
}

static int32_t absent_mem_pin(uint64_t device, void *host, uint64_t bytes, uint64_t *memory) {
    (void)device;
    (void)host;
    (void)bytes;
    (void)memory;
    return bp_hal_absent("mem.pin");
}

static int32_t absent_mem_export_memory(uint64_t device, uint64_t memory, bp_external *out) {
    (void)device;
    (void)memory;
    (void)out;
    return bp_hal_absent("mem.export_memory");
}

static int32_t absent_mem_import_memory(uint64_t device, const bp_external *external, uint64_t *memory) {
    (void)device;
    (void)external;
    (void)memory;
    return bp_hal_absent("mem.import_memory");
}

void bp_hal_fill_mem(bp_mem *out, const bp_mem *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->create)
        out->create = absent_mem_create;
    if (!out->release)
        out->release = absent_mem_release;
    if (!out->describe)
        out->describe = absent_mem_describe;
    if (!out->reserve)
        out->reserve = absent_mem_reserve;
    if (!out->map)
        out->map = absent_mem_map;
    if (!out->unmap)
        out->unmap = absent_mem_unmap;
    if (!out->pin)
        out->pin = absent_mem_pin;
    if (!out->export_memory)
        out->export_memory = absent_mem_export_memory;
    if (!out->import_memory)
        out->import_memory = absent_mem_import_memory;
}

static int32_t absent_queue_create(uint64_t device, const bp_queue_info *info, uint64_t *queue) {
    (void)device;
    (void)info;
    (void)queue;
    return bp_hal_absent("queue.create");
}

static int32_t absent_queue_submit(uint64_t device, uint64_t queue, const bp_batch *batch) {
    (void)device;
    (void)queue;
    (void)batch;
    return bp_hal_absent("queue.submit");
}

static int32_t absent_queue_flush(uint64_t device, uint64_t queue) {
    (void)device;
    (void)queue;
    return bp_hal_absent("queue.flush");
}

static int32_t absent_queue_destroy(uint64_t device, uint64_t queue) {
    (void)device;
    (void)queue;
    return bp_hal_absent("queue.destroy");
}

void bp_hal_fill_queue(bp_queue *out, const bp_queue *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->create)
        out->create = absent_queue_create;
    if (!out->submit)
        out->submit = absent_queue_submit;
    if (!out->flush)
        out->flush = absent_queue_flush;
    if (!out->destroy)
        out->destroy = absent_queue_destroy;
}

static int32_t absent_timeline_create(uint64_t device, uint64_t initial, uint64_t *timeline) {
    (void)device;
    (void)initial;
    (void)timeline;
    return bp_hal_absent("timeline.create");
}

static int32_t absent_timeline_signal(uint64_t device, uint64_t timeline, uint64_t value) {
    (void)device;
    (void)timeline;
    (void)value;
    return bp_hal_absent("timeline.signal");
}

static int32_t absent_timeline_query(uint64_t device, uint64_t timeline, uint64_t *value) {
    (void)device;
    (void)timeline;
    (void)value;
    return bp_hal_absent("timeline.query");
}

static int32_t absent_timeline_wait_host(uint64_t device, uint64_t timeline, uint64_t value, uint64_t deadline_ns) {
    (void)device;
    (void)timeline;
    (void)value;
    (void)deadline_ns;
    return bp_hal_absent("timeline.wait_host");
}

static int32_t absent_timeline_destroy(uint64_t device, uint64_t timeline) {
    (void)device;
    (void)timeline;
    return bp_hal_absent("timeline.destroy");
}

void bp_hal_fill_timeline(bp_timeline *out, const bp_timeline *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->create)
        out->create = absent_timeline_create;
    if (!out->signal)
        out->signal = absent_timeline_signal;
    if (!out->query)
        out->query = absent_timeline_query;
    if (!out->wait_host)
        out->wait_host = absent_timeline_wait_host;
    if (!out->destroy)
        out->destroy = absent_timeline_destroy;
}

static int32_t absent_module_load(uint64_t device, const bp_module_source *source, uint64_t *module) {
    (void)device;
    (void)source;
    (void)module;
    return bp_hal_absent("module.load");
}

static int32_t absent_module_info(uint64_t device, uint64_t module, bp_module_info *out) {
    (void)device;
    (void)module;
    (void)out;
    return bp_hal_absent("module.info");
}

static int32_t absent_module_kernel(uint64_t device, uint64_t module, const bp_text *name, uint64_t *kernel) {
    (void)device;
    (void)module;
    (void)name;
    (void)kernel;
    return bp_hal_absent("module.kernel");
}

static int32_t absent_module_kernel_info(uint64_t device, uint64_t kernel, bp_kernel_info *out) {
    (void)device;
    (void)kernel;
    (void)out;
    return bp_hal_absent("module.kernel_info");
}

static int32_t absent_module_unload(uint64_t device, uint64_t module) {
    (void)device;
    (void)module;
    return bp_hal_absent("module.unload");
}

void bp_hal_fill_module(bp_module *out, const bp_module *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->load)
        out->load = absent_module_load;
    if (!out->info)
        out->info = absent_module_info;
    if (!out->kernel)
        out->kernel = absent_module_kernel;
    if (!out->kernel_info)
        out->kernel_info = absent_module_kernel_info;
    if (!out->unload)
        out->unload = absent_module_unload;
}

static int32_t absent_capture_begin(uint64_t device, uint64_t queue) {
    (void)device;
    (void)queue;
    return bp_hal_absent("capture.begin");
}

static int32_t absent_capture_end(uint64_t device, uint64_t queue, uint64_t *graph) {
    (void)device;
    (void)queue;
    (void)graph;
    return bp_hal_absent("capture.end");
}

static int32_t absent_capture_launch(uint64_t device, uint64_t queue, uint64_t graph, const bp_batch *fences) {
    (void)device;
    (void)queue;
    (void)graph;
    (void)fences;
    return bp_hal_absent("capture.launch");
}

static int32_t absent_capture_release(uint64_t device, uint64_t graph) {
    (void)device;
    (void)graph;
    return bp_hal_absent("capture.release");
}

void bp_hal_fill_capture(bp_capture *out, const bp_capture *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->begin)
        out->begin = absent_capture_begin;
    if (!out->end)
        out->end = absent_capture_end;
    if (!out->launch)
        out->launch = absent_capture_launch;
    if (!out->release)
        out->release = absent_capture_release;
}

static int32_t absent_ops_plan(uint64_t device, uint32_t op, const bp_tensor *const*tensors, uint32_t count, const void *attributes, uint64_t attribute_bytes, bp_op_plan *out) {
    (void)device;
    (void)op;
    (void)tensors;
    (void)count;
    (void)attributes;
    (void)attribute_bytes;
    (void)out;
    return bp_hal_absent("ops.plan");
}

static int32_t absent_ops_release(uint64_t device, uint64_t plan) {
    (void)device;
    (void)plan;
    return bp_hal_absent("ops.release");
}

void bp_hal_fill_ops(bp_ops *out, const bp_ops *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->plan)
        out->plan = absent_ops_plan;
    if (!out->release)
        out->release = absent_ops_release;
}

static int32_t absent_tensor_maps_encode(uint64_t device, const bp_tensor_map_info *info, void *map) {
    (void)device;
    (void)info;
    (void)map;
    return bp_hal_absent("tensor_maps.encode");
}

void bp_hal_fill_tensor_maps(bp_tensor_maps *out, const bp_tensor_maps *given) {
    memset(out, 0, sizeof(*out));
    if (given) {
        uint32_t size = given->head.struct_size;
        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));
    }
    out->head.struct_version = 1;
    out->head.struct_size = sizeof(*out);
    if (!out->encode)
        out->encode = absent_tensor_maps_encode;
}
