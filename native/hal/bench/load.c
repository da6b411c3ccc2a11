/*
 * load LIBRARY...: what it costs a fresh process to load and negotiate backends. Prints one line
 * for each, its name and nanoseconds, and their `total`. No device is listed or opened.
 */
#include "bedplate/hal_loader.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

int main(int count, char **paths) {
    uint64_t total = 0;
    for (int i = 1; i < count; i++) {
        bp_load_options options = {.head = {1, sizeof(options)},
                                   .path = {paths[i], strlen(paths[i])}};
        const bp_api *api = NULL;
        uint64_t start = now_ns();
        int32_t status = bp_hal_load(&options, &api);
        uint64_t spent = now_ns() - start;
        if (status) {
            char text[512] = "";
            bp_hal_last_error(text, sizeof(text), NULL);
            fprintf(stderr, "%s\n", text);
            return 1;
        }
        const char *name = strrchr(paths[i], '/');
        printf("%s %llu\n", name ? name + 1 : paths[i], (unsigned long long)spent);
        total += spent;
    }
    printf("total %llu\n", (unsigned long long)total);
    return 0;
}
