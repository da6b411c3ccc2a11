/*
 * fuzz BACKEND MODULE SEED CALLS THREADS: calls across all tables, each wrong in some way or none.
 *
 * Nothing a call is given is a wild pointer, because the ABI does not promise to survive one:
 * pointers are null or point to what the struct says is there. Everything else is open: sizes,
 * versions, reserved words, handles, ranges, counts, shapes, the content of memory. After each call
 * the status is one of the header's, a refusal has a sentence, and a refused call wrote no result.
 *
 * With threads, all of them use one device at once, and each has data of its own, because two
 * queues may race on memory by right. Prints `calls accepted`, exits 0; the sanitizer does the
 * rest.
 */
#include "fuzz.h"

#include <pthread.h>

#define DEVICE_LIFE 4000u

const bp_api *fuzz_api;
const bp_ops *fuzz_table_ops;
const char *fuzz_module_path;
static uint64_t seed, calls_wanted;
fuzzer *fuzz_all;
uint64_t fuzz_count;
/* Of all threads: they create, query, signal and destroy on it, and anyone may close it. */
static uint64_t common;

void fuzz_broken(const fuzzer *own, const char *call, const char *what, long long value) {
    char words[512] = "";
    api->core->last_error(words, sizeof(words), NULL);
    fprintf(stderr, "seed %llu, thread %u, call %llu: %s %s (%lld): %s\n", (unsigned long long)seed,
            own->index, (unsigned long long)own->calls, call, what, value, words);
    exit(1);
}

int32_t fuzz_checked(fuzzer *own, const char *call, int32_t status, const uint64_t *out) {
    own->calls++;
    own->accepted += status == BP_OK;
    if (status == BP_OK)
        reached(own, call);
    if (status > 0 || status < BP_BUSY)
        fuzz_broken(own, call, "gave an unknown status", status);
    if (status == BP_OK && out && *out == OUT_PATTERN)
        fuzz_broken(own, call, "succeeded without a result", 0);
    if (status != BP_OK) {
        uint64_t loader = 0, backend = 0;
        char words[8];
        bp_hal_last_error(words, sizeof(words), &loader);
        api->core->last_error(NULL, 0, &backend);
        if (loader + backend == 0)
            fuzz_broken(own, call, "refused without a sentence", status);
        if (out && *out != OUT_PATTERN)
            fuzz_broken(own, call, "refused, but wrote a result", status);
    }
    return status;
}

uint64_t fuzz_device(fuzzer *own) {
    if (chance(own, 4))
        return handle(own, DEVICES);
    return fuzz_count > 1 && chance(own, 40) ? __atomic_load_n(&common, __ATOMIC_ACQUIRE)
                                             : own->device;
}

static void renew(fuzzer *own) {
    if (own->device && api->core->close(own->device) != BP_OK)
        fuzz_broken(own, "close", "refused a live device", 0);
    if (api->core->open(0, &own->device) != BP_OK)
        fuzz_broken(own, "open", "refused", 0);
    for (uint32_t i = 0; i < KINDS * POOL; i++)
        __atomic_store_n(&own->pools[i / POOL][i % POOL], 0, __ATOMIC_RELAXED);
    keep(own, DEVICES, own->device);
    own->queue = 0;
}

static void call_core(fuzzer *own) {
    uint64_t *out = place(own);
    uint32_t room = (uint32_t)below(own, 20), *count = chance(own, 5) ? NULL : cut(own, 4);
    switch (below(own, 6)) {
    case 0:
        CALL(api->core->enumerate(count), NULL);
        break;
    case 1: {
        bp_device_properties facts = {.head = {1, sizeof(facts)}};
        CALL(api->core->properties((uint32_t)below(own, 3), GIVEN(own, facts)), NULL);
        break;
    }
    case 2: {
        bp_capability *claims = chance(own, 10) ? NULL : cut(own, room * sizeof(*claims));
        CALL(api->core->capabilities((uint32_t)below(own, 2), claims, room, count), NULL);
        break;
    }
    case 3: {
        uint64_t bytes = below(own, 600);
        CALL(api->core->last_error(chance(own, 10) ? NULL : cut(own, bytes), bytes, out), NULL);
        break;
    }
    case 4:
        if (chance(own, 3) && CALL(api->core->open((uint32_t)below(own, 2), out), out) == BP_OK &&
            out && api->core->close(*out) != BP_OK)
            fuzz_broken(own, "close", "refused a live device", 0);
        break;
    default:
        /* A handle of anything; of a live device only everyone's may go. */
        if (chance(own, 2) && fuzz_count > 1) {
            uint64_t fresh = 0;
            if (api->core->open(0, &fresh) != BP_OK)
                fuzz_broken(own, "open", "refused", 0);
            CALL(api->core->close(__atomic_exchange_n(&common, fresh, __ATOMIC_ACQ_REL)), NULL);
        } else {
            CALL(api->core->close(pooled(own, (int)(1 + below(own, KINDS - 1)))), NULL);
        }
    }
}

static void *work(void *argument) {
    static void (*const KIND[])(fuzzer *) = {call_core,     fuzz_memory,   fuzz_memory, fuzz_queue,
                                             fuzz_queue,    fuzz_timeline, fuzz_module, fuzz_ops,
                                             fuzz_timeline, fuzz_ops};
    fuzzer *own = argument;
    uint64_t wanted = calls_wanted / fuzz_count;
    for (own->turns = 0; own->calls < wanted; own->turns++) {
        if (own->turns % DEVICE_LIFE == 0)
            renew(own);
        KIND[below(own, sizeof(KIND) / sizeof(KIND[0]))](own);
        after_call(own);
    }
    if (api->core->close(own->device) != BP_OK)
        fuzz_broken(own, "close", "refused a live device", 0);
    return NULL;
}

int main(int count, char **words) {
    if (count != 6)
        return 2;
    bp_load_options options = {.head = {1, sizeof(options)}, .path = {words[1], strlen(words[1])}};
    fuzz_module_path = words[2];
    seed = strtoull(words[3], NULL, 10);
    calls_wanted = strtoull(words[4], NULL, 10);
    fuzz_count = strtoull(words[5], NULL, 10);
    uint64_t fresh = 0, calls = 0, accepted = 0;
    if (bp_hal_load(&options, &fuzz_api) || bp_hal_ops(fuzz_api, &fuzz_table_ops) ||
        api->core->open(0, &fresh))
        return 2;
    common = fresh;
    fuzzer *all = fuzz_all = calloc(fuzz_count, sizeof(*all));
    pthread_t *threads = calloc(fuzz_count, sizeof(*threads));
    for (uint32_t i = 0; i < fuzz_count; i++) {
        all[i].index = i;
        all[i].state = seed * 1000003u + i;
        pthread_create(&threads[i], NULL, work, &all[i]);
    }
    for (uint32_t i = 0; i < fuzz_count; i++) {
        pthread_join(threads[i], NULL);
        calls += all[i].calls;
        accepted += all[i].accepted;
    }
    api->core->close(common);
    printf("%llu %llu\n", (unsigned long long)calls, (unsigned long long)accepted);
    for (uint32_t i = 0; i < fuzz_count; i++)
        for (uint32_t n = 0; n < MOST_NAMES && all[i].names[n]; n++)
            printf("%.*s %llu\n", (int)strcspn(all[i].names[n], "("), all[i].names[n],
                   (unsigned long long)all[i].counts[n]);
    free(all);
    free(threads);
    return 0;
}
