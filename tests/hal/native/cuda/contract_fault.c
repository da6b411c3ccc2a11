/* The contract's cases about sticky errors: what a bad access does, to whom, and for how long. */
#include "contract.h"

/* Stores to an address that nothing is mapped at; waits until the context says so. */
static int break_it(contract *c) {
    struct {
        uint64_t address;
        uint32_t value;
    } bad = {0x10, 1};
    WORKS(contract_launch(contract_kernel(c, "poke"), c->one, &bad, 12));
    bp_cu_result result = BP_CU_NOT_READY;
    for (int turn = 0; turn < 2000 && result == BP_CU_NOT_READY; turn++) {
        contract_nap(1);
        result = bp_cu.stream_query(c->one);
    }
    WANT(result, BP_CU_ILLEGAL_ADDRESS);
    return 0;
}

static int a_launch_does_not_wait_for_its_fault(contract *c) {
    struct {
        uint64_t address;
        uint32_t value;
    } bad = {0x10, 1};
    WORKS(bp_cu.stream_wait_value(c->one, c->word_at, 1, BP_CU_STREAM_WAIT_VALUE_GEQ));
    WORKS(contract_launch(contract_kernel(c, "poke"), c->one, &bad, 12));
    WANT(bp_cu.stream_query(c->one), BP_CU_NOT_READY);
    c->words[0] = 1;
    WANT(bp_cu.stream_synchronize(c->one), BP_CU_ILLEGAL_ADDRESS);
    return 0;
}

static int a_fault_is_sticky_everywhere(contract *c) {
    bp_cu_address address;
    bp_cu_stream stream;
    if (break_it(c))
        return 1;
    for (int turn = 0; turn < 2; turn++) {
        WANT(bp_cu.stream_query(c->two), BP_CU_ILLEGAL_ADDRESS);
        WANT(bp_cu.memory_alloc(&address, 4096), BP_CU_ILLEGAL_ADDRESS);
        WANT(bp_cu.stream_create(&stream, BP_CU_STREAM_NON_BLOCKING, 0), BP_CU_ILLEGAL_ADDRESS);
        WANT(bp_cu.fill_32(c->bytes, 0, 1, c->two), BP_CU_ILLEGAL_ADDRESS);
        WANT(bp_cu.context_synchronize(), BP_CU_ILLEGAL_ADDRESS);
    }
    return 0;
}

static int work_behind_a_fault_does_not_run(contract *c) {
    struct {
        uint64_t address;
        uint32_t value;
    } bad = {0x10, 1};
    WORKS(bp_cu.stream_wait_value(c->one, c->word_at, 1, BP_CU_STREAM_WAIT_VALUE_GEQ));
    WORKS(contract_launch(contract_kernel(c, "poke"), c->one, &bad, 12));
    WORKS(bp_cu.stream_write_value(c->one, c->word_at + 8, 7, 0));
    c->words[0] = 1;
    WANT(bp_cu.stream_synchronize(c->one), BP_CU_ILLEGAL_ADDRESS);
    contract_nap(20);
    HOLDS(c->words[1] == 0);
    return 0;
}

/* A stream that waits for a word keeps the driver from telling a fault: so streams of ours wait for
 * events. */
static int a_waited_word_hides_a_fault(contract *c) {
    struct {
        uint64_t address;
        uint32_t value;
    } bad = {0x10, 1};
    WORKS(bp_cu.stream_wait_value(c->two, c->word_at, 1, BP_CU_STREAM_WAIT_VALUE_GEQ));
    contract_nap(20);
    WORKS(contract_launch(contract_kernel(c, "poke"), c->one, &bad, 12));
    contract_nap(500);
    WANT(bp_cu.stream_query(c->one), BP_CU_NOT_READY);
    c->words[0] = 1;
    WANT(bp_cu.stream_synchronize(c->one), BP_CU_ILLEGAL_ADDRESS);
    return 0;
}

static int a_waited_event_hides_no_fault(contract *c) {
    bp_cu_event event;
    struct {
        uint64_t address;
        uint32_t value;
    } bad = {0x10, 1};
    WORKS(bp_cu.event_create(&event, BP_CU_EVENT_DISABLE_TIMING));
    WORKS(contract_launch(contract_kernel(c, "poke"), c->one, &bad, 12));
    WORKS(bp_cu.event_record(event, c->one));
    WORKS(bp_cu.stream_wait_event(c->two, event, 0));
    bp_cu_result result = BP_CU_NOT_READY;
    for (int turn = 0; turn < 2000 && result == BP_CU_NOT_READY; turn++) {
        contract_nap(1);
        result = bp_cu.event_query(event);
    }
    WANT(result, BP_CU_ILLEGAL_ADDRESS);
    WANT(bp_cu.stream_query(c->two), BP_CU_ILLEGAL_ADDRESS);
    return 0;
}

/* So an open of ours cannot be shielded from another's fault, nor be opened anew after one. */
static int a_fault_ends_cuda_for_the_process(contract *c) {
    bp_cu_context again = NULL;
    bp_cu_address address;
    if (break_it(c))
        return 1;
    bp_cu.context_release(0);
    if (bp_cu.context_retain(&again, 0) == BP_CU_SUCCESS &&
        bp_cu.context_set(again) == BP_CU_SUCCESS)
        WANT(bp_cu.memory_alloc(&address, 4096), BP_CU_ILLEGAL_ADDRESS);
    return 0;
}

static int host_words_outlive_a_fault(contract *c) {
    c->words[7] = 77;
    if (break_it(c))
        return 1;
    HOLDS(c->words[7] == 77);
    c->words[7] = 78;
    HOLDS(c->words[7] == 78);
    return 0;
}

const contract_case contract_fault[] = {
    {"a_launch_does_not_wait_for_its_fault", a_launch_does_not_wait_for_its_fault},
    {"a_fault_is_sticky_everywhere", a_fault_is_sticky_everywhere},
    {"work_behind_a_fault_does_not_run", work_behind_a_fault_does_not_run},
    {"a_waited_word_hides_a_fault", a_waited_word_hides_a_fault},
    {"a_waited_event_hides_no_fault", a_waited_event_hides_no_fault},
    {"a_fault_ends_cuda_for_the_process", a_fault_ends_cuda_for_the_process},
    {"host_words_outlive_a_fault", host_words_outlive_a_fault},
    {NULL, NULL},
};
