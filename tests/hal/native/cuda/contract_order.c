/* The contract's cases about order: streams, stream memory operations, events, capture. */
#include "contract.h"

/* Holds a stream until the host writes `value` to word 0. */
static bp_cu_result gate(contract *c, bp_cu_stream stream, uint64_t value) {
    return bp_cu.stream_wait_value(stream, c->word_at, value, BP_CU_STREAM_WAIT_VALUE_GEQ);
}

static int a_stream_keeps_its_order(contract *c) {
    bp_cu_address other = c->bytes + 4096;
    WORKS(bp_cu.fill_32(c->bytes, 1, 64, c->one));
    WORKS(bp_cu.copy(other, c->bytes, 256, c->one));
    WORKS(bp_cu.fill_32(c->bytes, 2, 64, c->one));
    WORKS(bp_cu.copy(c->word_at, other, 8, c->one));
    WORKS(bp_cu.copy(c->word_at + 8, c->bytes, 8, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(c->words[0] == 0x0000000100000001ull);
    HOLDS(c->words[1] == 0x0000000200000002ull);
    return 0;
}

/* The runtime's adaptor for PyTorch records no event into a graph of the program. */
static int a_stream_says_whether_it_captures(contract *c) {
    bp_cu_graph graph = NULL;
    int status = 7;
    WORKS(bp_cu.stream_capturing(c->one, &status));
    HOLDS(status == 0);
    WORKS(bp_cu.capture_begin(c->one, BP_CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(bp_cu.stream_capturing(c->one, &status));
    HOLDS(status == 1);
    WORKS(bp_cu.stream_capturing(c->two, &status));
    HOLDS(status == 0);
    WORKS(bp_cu.capture_end(c->one, &graph));
    WORKS(bp_cu.stream_capturing(c->one, &status));
    HOLDS(status == 0);
    WORKS(bp_cu.graph_destroy(graph));
    return 0;
}

static int a_held_stream_does_nothing(contract *c) {
    WORKS(gate(c, c->one, 3));
    WORKS(bp_cu.fill_32(c->word_at + 8, 7, 2, c->one));
    contract_nap(20);
    WANT(bp_cu.stream_query(c->one), BP_CU_NOT_READY);
    HOLDS(c->words[1] == 0);
    c->words[0] = 2;
    contract_nap(20);
    HOLDS(c->words[1] == 0);
    c->words[0] = 4;
    HOLDS(contract_comes(&c->words[1], 0x0000000700000007ull));
    WORKS(bp_cu.stream_synchronize(c->one));
    WORKS(bp_cu.stream_query(c->one));
    return 0;
}

static int streams_do_not_hold_each_other(contract *c) {
    WORKS(gate(c, c->one, 1));
    WORKS(bp_cu.fill_32(c->word_at + 8, 7, 2, c->two));
    HOLDS(contract_comes(&c->words[1], 0x0000000700000007ull));
    c->words[0] = 1;
    WORKS(bp_cu.stream_synchronize(c->one));
    return 0;
}

static int a_written_word_comes_after_the_work(contract *c) {
    for (uint64_t turn = 1; turn <= 50; turn++) {
        WORKS(bp_cu.fill_32(c->bytes, (unsigned)turn, 1 << 18, c->one));
        WORKS(bp_cu.copy(c->word_at + 16, c->bytes + (1 << 20) - 8, 8, c->one));
        WORKS(bp_cu.stream_write_value(c->one, c->word_at + 8, turn, 0));
        HOLDS(contract_comes(&c->words[1], turn));
        HOLDS(c->words[2] == (turn << 32 | turn));
    }
    return 0;
}

static int a_written_word_frees_another_stream(contract *c) {
    WORKS(bp_cu.stream_wait_value(c->two, c->word_at + 8, 5, BP_CU_STREAM_WAIT_VALUE_GEQ));
    WORKS(bp_cu.copy(c->word_at + 16, c->bytes, 8, c->two));
    WORKS(bp_cu.fill_32(c->bytes, 9, 2, c->one));
    WORKS(bp_cu.stream_write_value(c->one, c->word_at + 8, 6, 0));
    HOLDS(contract_comes(&c->words[2], 0x0000000900000009ull));
    return 0;
}

/* Greater or equal is of the difference, as signed 64 bits. */
static int the_comparison_is_cyclic(contract *c) {
    c->words[0] = 1;
    WORKS(gate(c, c->one, UINT64_MAX));
    WORKS(bp_cu.stream_write_value(c->one, c->word_at + 8, 1, 0));
    HOLDS(contract_comes(&c->words[1], 1));
    return 0;
}

static int events_join_streams(contract *c) {
    bp_cu_event event;
    WORKS(bp_cu.event_create(&event, BP_CU_EVENT_DISABLE_TIMING));
    WORKS(bp_cu.event_query(event));
    WORKS(gate(c, c->one, 1));
    WORKS(bp_cu.fill_32(c->bytes, 8, 2, c->one));
    WORKS(bp_cu.event_record(event, c->one));
    WORKS(bp_cu.stream_wait_event(c->two, event, 0));
    WORKS(bp_cu.copy(c->word_at + 8, c->bytes, 8, c->two));
    WANT(bp_cu.event_query(event), BP_CU_NOT_READY);
    WANT(bp_cu.stream_query(c->two), BP_CU_NOT_READY);
    c->words[0] = 1;
    HOLDS(contract_comes(&c->words[1], 0x0000000800000008ull));
    WORKS(bp_cu.event_query(event));
    WORKS(bp_cu.event_destroy(event));
    return 0;
}

static int an_event_may_go_while_waited_for(contract *c) {
    bp_cu_event event;
    WORKS(bp_cu.event_create(&event, BP_CU_EVENT_DISABLE_TIMING));
    WORKS(gate(c, c->one, 1));
    WORKS(bp_cu.event_record(event, c->one));
    WORKS(bp_cu.stream_wait_event(c->two, event, 0));
    WORKS(bp_cu.event_destroy(event));
    WORKS(bp_cu.stream_write_value(c->two, c->word_at + 8, 1, 0));
    contract_nap(20);
    HOLDS(c->words[1] == 0);
    c->words[0] = 1;
    HOLDS(contract_comes(&c->words[1], 1));
    return 0;
}

static int captured_work_waits_for_its_launch(contract *c) {
    bp_cu_graph graph;
    bp_cu_graph_exec exec;
    WORKS(bp_cu.fill_32(c->bytes, 0, 64, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    WORKS(bp_cu.capture_begin(c->one, BP_CU_STREAM_CAPTURE_MODE_RELAXED));
    uint64_t out = c->bytes;
    WORKS(contract_launch(contract_kernel(c, "count_blocks"), c->one, &out, 8));
    WORKS(bp_cu.copy(c->word_at + 8, c->bytes, 8, c->one));
    WORKS(bp_cu.capture_end(c->one, &graph));
    WORKS(bp_cu.graph_instantiate(&exec, graph, 0));
    WORKS(bp_cu.graph_destroy(graph));
    contract_nap(10);
    HOLDS(c->words[1] == 0);
    for (int turn = 0; turn < 3; turn++)
        WORKS(bp_cu.graph_launch(exec, c->two));
    WORKS(bp_cu.stream_write_value(c->two, c->word_at + 16, 1, 0));
    HOLDS(contract_comes(&c->words[2], 1));
    HOLDS(c->words[1] == 3);
    WORKS(bp_cu.graph_exec_destroy(exec));
    return 0;
}

static int a_look_breaks_a_capture(contract *c) {
    bp_cu_graph graph = NULL;
    WORKS(bp_cu.capture_begin(c->one, BP_CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(bp_cu.fill_32(c->bytes, 0, 64, c->one));
    WANT(bp_cu.stream_query(c->one), BP_CU_STREAM_CAPTURE_UNSUPPORTED);
    WANT(bp_cu.capture_end(c->one, &graph), BP_CU_STREAM_CAPTURE_INVALIDATED);
    WORKS(bp_cu.fill_32(c->bytes, 0, 64, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    return 0;
}

static int other_streams_go_on_during_a_capture(contract *c) {
    bp_cu_graph graph = NULL;
    bp_cu_address extra;
    WORKS(bp_cu.capture_begin(c->one, BP_CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(bp_cu.fill_32(c->bytes, 0, 64, c->one));
    WORKS(bp_cu.memory_alloc(&extra, 4096));
    WORKS(bp_cu.stream_write_value(c->two, c->word_at, 1, 0));
    HOLDS(contract_comes(&c->words[0], 1));
    WORKS(bp_cu.capture_end(c->one, &graph));
    WORKS(bp_cu.graph_destroy(graph));
    return 0;
}

const contract_case contract_order[] = {
    {"a_stream_keeps_its_order", a_stream_keeps_its_order},
    {"a_stream_says_whether_it_captures", a_stream_says_whether_it_captures},
    {"a_held_stream_does_nothing", a_held_stream_does_nothing},
    {"streams_do_not_hold_each_other", streams_do_not_hold_each_other},
    {"a_written_word_comes_after_the_work", a_written_word_comes_after_the_work},
    {"a_written_word_frees_another_stream", a_written_word_frees_another_stream},
    {"the_comparison_is_cyclic", the_comparison_is_cyclic},
    {"events_join_streams", events_join_streams},
    {"an_event_may_go_while_waited_for", an_event_may_go_while_waited_for},
    {"captured_work_waits_for_its_launch", captured_work_waits_for_its_launch},
    {"a_look_breaks_a_capture", a_look_breaks_a_capture},
    {"other_streams_go_on_during_a_capture", other_streams_go_on_during_a_capture},
    {NULL, NULL},
};
