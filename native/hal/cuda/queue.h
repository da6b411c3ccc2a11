/*
 * Queues: one stream each, and no thread of ours.
 *
 * submit checks a batch, then issues it into the stream on the caller's thread, so a command costs
 * the driver's call and little more. A batch whose fence is neither reached nor certain to be
 * (issued, timeline.h) is kept on the host with all that come after it; whoever brings the fence,
 * by a signal of the host or by issuing a batch, issues it then (pump). So a stream waits only for
 * what is already in another stream: it cannot hang, and a queue that waits can be destroyed.
 *
 * Trade-off: all of it runs under the device's lock. A caller that fills a stream's ring waits in
 * the driver with the lock held; that ends by itself, for the reason above.
 */
#ifndef BEDPLATE_HAL_CUDA_QUEUE_H
#define BEDPLATE_HAL_CUDA_QUEUE_H

#include "../chassis/batch.h"
#include "timeline.h"

struct bp_cuda_graph;

typedef struct bp_cuda_queue {
    bp_object object;
    bp_cuda_device *device;
    struct bp_cuda_queue *next;
    bp_cu_stream stream;
    /* Batches kept on the host, and one allocation to use again. */
    bp_work *first, *last, *spare;
    /* Tickets: of the latest batch in the stream, and up to which all are done. */
    uint64_t issued, done;
    /* An event behind the batch `marked`, 0 when there is none; recorded only when somebody wants
     * to know what is done. */
    bp_cu_event mark;
    uint64_t marked;
    /* Tags in flight, for the text of a fault: from the first one not known to be done. */
    uint64_t first_tag, last_tag;
    /* The stream that records while a graph is made, and what is wrong with that graph. */
    bp_cu_stream recorder;
    int capturing;
    int32_t capture_status;
    char capture_text[BP_ERROR_BYTES];
} bp_cuda_queue;

extern const bp_queue bp_cuda_queue_table;

/* Issues every kept batch whose fences are now certain, and fails those behind poison. Locked. */
void bp_cuda_pump(bp_cuda_device *device);

/* Appends a checked work with its ticket and issues what can be. Takes the work. Locked. */
void bp_cuda_queue_post(bp_cuda_queue *queue, bp_work *work);

/* Keeps a work's allocation for the next batch, or frees it. */
void bp_cuda_queue_recycle(bp_cuda_queue *queue, bp_work *work);

/* Says what runs, for the text of a fault that ended `words`. Locked. */
void bp_cuda_flight(const bp_cuda_device *device, char *text, uint64_t room, const char *words);

/* Whether a kept batch names a memory: in a span, or by an address among the parameters of a
 * launch. Locked. */
int bp_cuda_queues_name(const bp_cuda_device *device, const bp_memory *memory);

/* issue.c: puts one node into a stream; BP_OK, or a status with a sentence. Locked. */
int32_t bp_cuda_issue_node(bp_cuda_device *device, bp_cu_stream stream, const bp_node *node);

/* What bp_driver wants. */
uint64_t bp_cuda_queue_oldest(const bp_object *queue);
void bp_cuda_queue_stop(bp_object *queue);
void bp_cuda_queue_free(bp_object *queue);

#endif
