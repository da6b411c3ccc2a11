/* See single.h. */
#include "single.h"

#include "command.h"

static int is_ours(const bp_head *head, uint32_t size) {
    return head->struct_version == 1 && head->struct_size == size;
}

static int is_zero(const uint64_t reserved[4]) {
    return !(reserved[0] | reserved[1] | reserved[2] | reserved[3]);
}

/* The only command when it is a launch, or null. */
static const bp_launch_command *launch_of(const bp_batch *batch) {
    if (!batch || !is_ours(&batch->head, sizeof(*batch)) || batch->command_count != 1 ||
        batch->wait_count || batch->flags || !is_zero(batch->reserved) || !batch->commands)
        return NULL;
    return bp_command_launch(batch->commands[0]);
}

/* 0 when there is more than one signal, or no timeline. */
static int signal_of(bp_device *device, const bp_batch *batch, bp_single *single) {
    uint32_t count = batch->signal_count;
    single->work.signal_count = count;
    if (count == 0)
        return 1;
    if (count != 1 || !batch->signal)
        return 0;
    single->signal.value = batch->signal->value;
    single->signal.timeline = bp_object_peek(batch->signal->timeline, BP_KIND_TIMELINE, device);
    return single->signal.timeline != NULL;
}

bp_work *bp_single_compile(bp_device *device, const bp_batch *batch, bp_single *single) {
    const bp_launch_command *launch = launch_of(batch);
    bp_node *node = &single->node;
    if (!launch || !signal_of(device, batch, single))
        return NULL;
    node->kind = BP_COMMAND_LAUNCH;
    node->index = 0;
    if (bp_launch_compile(device, launch, NULL, launch->argument_count, sizeof(single->parameters),
                          single->parameters, NULL, &node->launch))
        return NULL;
    if (bp_batch_driver_own.launch && bp_batch_driver_own.launch(device, &node->launch))
        return NULL;
    bp_work *work = &single->work;
    work->next = NULL;
    work->capacity = 0;
    work->tag = batch->tag;
    work->wait_count = 0;
    work->node_count = 1;
    work->waits = NULL;
    work->signals = &single->signal;
    work->nodes = node;
    work->own = NULL;
    return work;
}
