/* What is under way on a device: the tags of a fault's text, and which memory a kept batch names.
 */
#include "op.h"
#include "queue.h"

#include <stdio.h>
#include <string.h>

void bp_cuda_flight(const bp_cuda_device *device, char *text, uint64_t room, const char *words) {
    uint64_t first = UINT64_MAX, last = 0;
    for (const bp_cuda_queue *queue = device->queues; queue; queue = queue->next)
        if (queue->issued != queue->done) {
            first = queue->first_tag < first ? queue->first_tag : first;
            last = queue->last_tag > last ? queue->last_tag : last;
        }
    if (first == last)
        snprintf(text, room, "batch %llu: %s", (unsigned long long)first, words);
    else if (first < last)
        snprintf(text, room, "one of the batches %llu to %llu: %s", (unsigned long long)first,
                 (unsigned long long)last, words);
    else
        snprintf(text, room, "%s", words);
}

/* Any number that could be an address inside counts. */
static int launch_names(const bp_launch_node *launch, const bp_memory *memory) {
    for (uint32_t at = 0; at + 8 <= launch->parameters_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, launch->parameters + at, sizeof(word));
        if (word - memory->address <= memory->bytes)
            return 1;
    }
    return 0;
}

static int op_names(const bp_cpu_binding *binding, const bp_memory *memory) {
    for (uint32_t i = 0; i < binding->plan->count; i++)
        if ((uintptr_t)binding->addresses[i] - memory->address <= memory->bytes)
            return 1;
    return (uintptr_t)binding->workspace - memory->address <= memory->bytes;
}

static int node_names(const bp_node *node, const bp_memory *memory) {
    if (node->kind == BP_COMMAND_LAUNCH)
        return launch_names(&node->launch, memory);
    if (node->kind == BP_COMMAND_OP)
        return op_names(node->op.bound, memory);
    return node->span.to.memory == memory ||
           (node->kind == BP_COMMAND_COPY && node->span.from.memory == memory);
}

static int work_names(const bp_work *work, const bp_memory *memory) {
    for (uint32_t i = 0; i < work->node_count; i++)
        if (node_names(&work->nodes[i], memory))
            return 1;
    /* A graph may know any memory. */
    return work->own != NULL;
}

int bp_cuda_queues_name(const bp_cuda_device *device, const bp_memory *memory) {
    for (const bp_cuda_queue *queue = device->queues; queue; queue = queue->next)
        for (const bp_work *work = queue->first; work; work = work->next)
            if (work_names(work, memory))
                return 1;
    return 0;
}
