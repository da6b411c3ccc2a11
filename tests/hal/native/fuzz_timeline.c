/* The fuzzer's calls of the timeline table; no wait is longer than 20 us. */
#include "fuzz.h"

#include <time.h>

void fuzz_timeline(fuzzer *own) {
    uint64_t *out = place(own), device = fuzz_device(own), one = handle(own, TIMELINES);
    struct timespec now;
    switch (below(own, 6)) {
    case 0:
        made(own, TIMELINES, CALL(api->timeline->create(device, below(own, 3), out), out), out);
        break;
    case 1:
        CALL(api->timeline->signal(device, one, number(own)), NULL);
        break;
    case 2:
        /* The value of a poisoned one is written too. */
        CALL(api->timeline->query(device, one, chance(own, 3) ? NULL : cut(own, 8)), NULL);
        break;
    case 3:
        clock_gettime(CLOCK_MONOTONIC, &now);
        CALL(api->timeline->wait_host(device, one, number(own),
                                      (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec +
                                          below(own, 20000)),
             NULL);
        break;
    case 4:
        CALL(api->timeline->wait_host(device, one, number(own), below(own, 2)), NULL);
        break;
    default:
        if (chance(own, 30))
            CALL(api->timeline->destroy(device, one), NULL);
    }
}
