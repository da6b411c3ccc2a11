/*
 * The fake's streams: one thread each, operations in order, events, stream memory operations, and
 * capture, which records operations instead of queueing them.
 */
#include "fake.h"

#include <stdlib.h>
#include <time.h>

static void nap(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    if (microseconds > 0)
        nanosleep(&time, NULL);
}

/* Streams that wait for a word right now. */
static _Atomic int waiting;

void fake_kill(bp_cu_result error) {
    nap(5000);
    while (waiting && !fake_dead)
        nap(50);
    bp_cu_result none = BP_CU_SUCCESS;
    atomic_compare_exchange_strong(&fake_dead, &none, error);
}

/* Whether a wait goes on: until the process's CUDA or the stream ends. */
static int held(bp_cu_stream stream) {
    nap(20);
    return !fake_dead && !stream->ending;
}

static bp_cu_result move(bp_cu_context context, const fake_op *op) {
    unsigned char *to = fake_host(context, op->to, op->bytes);
    if (!to)
        return BP_CU_ILLEGAL_ADDRESS;
    if (op->kind == FAKE_COPY) {
        const void *from = fake_host(context, op->from, op->bytes);
        if (!from)
            return BP_CU_ILLEGAL_ADDRESS;
        memcpy(to, from, op->bytes);
        return BP_CU_SUCCESS;
    }
    for (uint64_t at = 0; at < op->bytes; at += op->width)
        memcpy(to + at, &op->value, op->width);
    return BP_CU_SUCCESS;
}

static void perform(bp_cu_stream stream, const fake_op *op) {
    bp_cu_context context = stream->context;
    bp_cu_result result = BP_CU_SUCCESS;
    _Atomic uint64_t *word = NULL;
    if (op->kind == FAKE_WAIT_VALUE || op->kind == FAKE_WRITE_VALUE) {
        word = fake_host(context, op->to, 8);
        if (!word)
            result = BP_CU_ILLEGAL_ADDRESS;
    }
    switch (op->kind) {
    case FAKE_COPY:
    case FAKE_FILL:
        result = move(context, op);
        break;
    case FAKE_LAUNCH:
        result = fake_run(context, op);
        break;
    case FAKE_WAIT_VALUE:
        waiting++;
        while (word && (int64_t)(*word - op->value) < 0 && held(stream))
            ;
        waiting--;
        break;
    case FAKE_WRITE_VALUE:
        if (word)
            *word = op->value;
        break;
    case FAKE_RECORD:
        op->event->done = op->value;
        break;
    case FAKE_WAIT_EVENT:
        while (op->event->done < op->value && held(stream))
            ;
        break;
    case FAKE_FREE:
        fake_release(op->to);
        break;
    case FAKE_CALL:
        result = op->call(context, op->parameters);
        break;
    }
    if (result)
        fake_kill(result);
}

static void *serve(void *argument) {
    bp_cu_stream stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        int idle = !stream->first;
        while (!stream->first && !stream->ending)
            pthread_cond_wait(&stream->changed, &stream->lock);
        if (idle) {
            pthread_mutex_unlock(&stream->lock);
            nap(fake_setting("delay_us", 20));
            pthread_mutex_lock(&stream->lock);
        }
        fake_op *op = stream->first;
        if (!op)
            break;
        stream->first = op->next;
        if (!stream->first)
            stream->last = NULL;
        pthread_mutex_unlock(&stream->lock);
        /* After a fault nothing runs any more. */
        if (!fake_dead)
            perform(stream, op);
        free(op);
        pthread_mutex_lock(&stream->lock);
        stream->pending--;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

bp_cu_result fake_enqueue(bp_cu_stream stream, const fake_op *given) {
    bp_cu_result result = fake_ready();
    if (result)
        return result;
    if (!stream || stream->context != fake_current)
        return BP_CU_INVALID_HANDLE;
    fake_op *op = malloc(sizeof(*op));
    if (!op)
        return BP_CU_OUT_OF_MEMORY;
    *op = *given;
    op->next = NULL;
    pthread_mutex_lock(&stream->lock);
    fake_op **first = stream->capturing ? &stream->capturing->first : &stream->first;
    fake_op **last = stream->capturing ? &stream->capturing->last : &stream->last;
    if (*last)
        (*last)->next = op;
    else
        *first = op;
    *last = op;
    if (!stream->capturing)
        stream->pending++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return BP_CU_SUCCESS;
}

FAKE_API fakeStreamCall(bp_cu_stream stream, fake_call call, const void *parameters, size_t bytes) {
    fake_op op = {.kind = FAKE_CALL, .call = call};
    memcpy(op.parameters, parameters, bytes);
    return fake_enqueue(stream, &op);
}

static bp_cu_result drain(bp_cu_stream stream) {
    pthread_mutex_lock(&stream->lock);
    while (stream->pending)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return fake_dead;
}

bp_cu_result fake_wait_all(bp_cu_context context) {
    for (bp_cu_stream stream = context->streams; stream; stream = stream->next)
        drain(stream);
    return fake_dead;
}

static void end(bp_cu_stream stream) {
    pthread_mutex_lock(&stream->lock);
    stream->ending = 1;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    free(stream);
}

void fake_end_streams(bp_cu_context context) {
    for (bp_cu_stream stream = context->streams, next; stream; stream = next) {
        next = stream->next;
        end(stream);
    }
    context->streams = NULL;
}

FAKE_API cuStreamCreateWithPriority(bp_cu_stream *out, unsigned flags, int priority) {
    bp_cu_result result = fake_ready();
    (void)flags;
    (void)priority;
    if (result)
        return result;
    bp_cu_stream stream = calloc(1, sizeof(*stream));
    if (!stream)
        return BP_CU_OUT_OF_MEMORY;
    stream->context = fake_current;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    pthread_create(&stream->thread, NULL, serve, stream);
    pthread_mutex_lock(&fake_current->lock);
    stream->next = fake_current->streams;
    fake_current->streams = stream;
    pthread_mutex_unlock(&fake_current->lock);
    *out = stream;
    return BP_CU_SUCCESS;
}

/* The real one lets queued work finish behind the caller's back; here it is waited for. */
FAKE_API cuStreamDestroy_v2(bp_cu_stream stream) {
    bp_cu_context context = stream->context;
    if (!fake_dead)
        drain(stream);
    pthread_mutex_lock(&context->lock);
    for (bp_cu_stream *link = &context->streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    pthread_mutex_unlock(&context->lock);
    end(stream);
    return fake_dead;
}

/* A stream under capture may not be looked at; that breaks the capture. */
static bp_cu_result look(bp_cu_stream stream) {
    bp_cu_result result = fake_ready();
    if (result == BP_CU_SUCCESS && stream->capturing) {
        stream->capture_broken = 1;
        result = BP_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

FAKE_API cuStreamQuery(bp_cu_stream stream) {
    bp_cu_result result = look(stream);
    if (result)
        return result;
    pthread_mutex_lock(&stream->lock);
    uint64_t pending = stream->pending;
    pthread_mutex_unlock(&stream->lock);
    if (fake_dead)
        return fake_dead;
    return pending ? BP_CU_NOT_READY : BP_CU_SUCCESS;
}

FAKE_API cuStreamSynchronize(bp_cu_stream stream) {
    bp_cu_result result = look(stream);
    return result ? result : drain(stream);
}

FAKE_API cuStreamWaitValue64_v2(bp_cu_stream stream, bp_cu_address address, uint64_t value,
                                unsigned flags) {
    if (flags != BP_CU_STREAM_WAIT_VALUE_GEQ || address % 8)
        return BP_CU_INVALID_VALUE;
    return fake_enqueue(stream, &(fake_op){.kind = FAKE_WAIT_VALUE, .to = address, .value = value});
}

FAKE_API cuStreamWriteValue64_v2(bp_cu_stream stream, bp_cu_address address, uint64_t value,
                                 unsigned flags) {
    if (flags || address % 8)
        return BP_CU_INVALID_VALUE;
    return fake_enqueue(stream,
                        &(fake_op){.kind = FAKE_WRITE_VALUE, .to = address, .value = value});
}

FAKE_API cuEventCreate(bp_cu_event *event, unsigned flags) {
    bp_cu_result result = fake_ready();
    (void)flags;
    if (result)
        return result;
    *event = calloc(1, sizeof(**event));
    if (!*event)
        return BP_CU_OUT_OF_MEMORY;
    (*event)->context = fake_current;
    return BP_CU_SUCCESS;
}

/* Small and rare: kept, because a stream may still be about to look at it. */
FAKE_API cuEventDestroy_v2(bp_cu_event event) {
    return event ? BP_CU_SUCCESS : BP_CU_INVALID_HANDLE;
}

FAKE_API cuEventRecord(bp_cu_event event, bp_cu_stream stream) {
    return fake_enqueue(stream,
                        &(fake_op){.kind = FAKE_RECORD, .event = event, .value = ++event->asked});
}

FAKE_API cuEventQuery(bp_cu_event event) {
    bp_cu_result result = fake_ready();
    if (result)
        return result;
    return event->done >= event->asked ? BP_CU_SUCCESS : BP_CU_NOT_READY;
}

FAKE_API cuStreamWaitEvent(bp_cu_stream stream, bp_cu_event event, unsigned flags) {
    (void)flags;
    return fake_enqueue(stream,
                        &(fake_op){.kind = FAKE_WAIT_EVENT, .event = event, .value = event->asked});
}

FAKE_API cuStreamBeginCapture_v2(bp_cu_stream stream, unsigned mode) {
    bp_cu_result result = fake_ready();
    (void)mode;
    if (result)
        return result;
    if (stream->capturing)
        return BP_CU_INVALID_VALUE;
    stream->capture_broken = 0;
    stream->capturing = calloc(1, sizeof(*stream->capturing));
    return stream->capturing ? BP_CU_SUCCESS : BP_CU_OUT_OF_MEMORY;
}

FAKE_API cuStreamIsCapturing(bp_cu_stream stream, int *status) {
    bp_cu_result result = fake_ready();
    *status = stream && stream->capturing ? 1 : 0;
    return result;
}

FAKE_API cuStreamEndCapture(bp_cu_stream stream, bp_cu_graph *graph) {
    bp_cu_result result = fake_ready();
    if (result)
        return result;
    if (!stream->capturing)
        return BP_CU_INVALID_VALUE;
    pthread_mutex_lock(&stream->lock);
    *graph = stream->capturing;
    stream->capturing = NULL;
    pthread_mutex_unlock(&stream->lock);
    if (!stream->capture_broken)
        return BP_CU_SUCCESS;
    *graph = NULL;
    return BP_CU_STREAM_CAPTURE_INVALIDATED;
}

FAKE_API cuGraphInstantiateWithFlags(bp_cu_graph_exec *exec, bp_cu_graph graph,
                                     unsigned long long flags) {
    (void)flags;
    *exec = calloc(1, sizeof(**exec));
    if (!*exec)
        return BP_CU_OUT_OF_MEMORY;
    fake_op **link = &(*exec)->first;
    for (const fake_op *op = graph->first; op; op = op->next) {
        *link = malloc(sizeof(*op));
        if (!*link)
            return BP_CU_OUT_OF_MEMORY;
        **link = *op;
        (*link)->next = NULL;
        link = &(*link)->next;
    }
    return fake_ready();
}

FAKE_API cuGraphUpload(bp_cu_graph_exec exec, bp_cu_stream stream) {
    (void)exec;
    (void)stream;
    return fake_ready();
}

FAKE_API cuGraphLaunch(bp_cu_graph_exec exec, bp_cu_stream stream) {
    bp_cu_result result = fake_ready();
    for (const fake_op *op = exec->first; op && !result; op = op->next)
        result = fake_enqueue(stream, op);
    return result;
}

static void free_all(fake_op *op) {
    for (fake_op *next; op; op = next) {
        next = op->next;
        free(op);
    }
}

FAKE_API cuGraphExecDestroy(bp_cu_graph_exec exec) {
    free_all(exec->first);
    free(exec);
    return BP_CU_SUCCESS;
}

FAKE_API cuGraphDestroy(bp_cu_graph graph) {
    free_all(graph->first);
    free(graph);
    return BP_CU_SUCCESS;
}
