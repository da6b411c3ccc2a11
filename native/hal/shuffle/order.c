/* What of a batch may come next. Copies and fills move past each other unless one writes what the
 * other touches; launches, ops and timestamps stay where they are. */
#include "shuffle.h"

/* How far ahead of the first command left it looks. */
#define WINDOW 32u

static int is_span(const bp_node *node) {
    return node->kind == BP_COMMAND_COPY || node->kind == BP_COMMAND_FILL;
}

static int touches(const bp_span *written, const bp_node *node) {
    return bp_span_overlap(written, &node->span.to) ||
           (node->kind == BP_COMMAND_COPY && bp_span_overlap(written, &node->span.from));
}

/* Whether `later` must stay behind `earlier`. */
static int bound(const bp_node *earlier, const bp_node *later) {
    if (!is_span(earlier) || !is_span(later))
        return 1;
    return touches(&earlier->span.to, later) || touches(&later->span.to, earlier);
}

static int may_run(const bp_flight *flight, uint32_t index) {
    const bp_node *nodes = flight->work->nodes;
    for (uint32_t i = flight->front; i < index; i++)
        if (!flight->ran[i] && bound(&nodes[i], &nodes[index]))
            return 0;
    return 1;
}

uint32_t bp_shuffle_node(const bp_flight *flight, bp_breach breach) {
    uint32_t end = flight->work->node_count, found = flight->front, count = 0;
    if (end > flight->front + WINDOW)
        end = flight->front + WINDOW;
    for (uint32_t i = flight->front; i < end; i++)
        if (!flight->ran[i] && (breach == BP_BREACH_TORN_BATCH || may_run(flight, i)) &&
            bp_shuffle_random(++count) == 0)
            found = i;
    return found;
}

uint32_t bp_shuffle_signal(const bp_flight *flight) {
    const bp_work *work = flight->work;
    uint32_t found = 0, count = 0;
    for (uint32_t i = 0; i < work->signal_count; i++) {
        int free = !flight->given[i];
        for (uint32_t j = 0; j < i && free; j++)
            free = flight->given[j] || work->signals[j].timeline != work->signals[i].timeline;
        if (free && bp_shuffle_random(++count) == 0)
            found = i;
    }
    return found;
}
