/* Runs the cases of contract.h, each in a process of its own. */
#include "contract.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int contract_fail(contract *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->reason, sizeof(c->reason), format, arguments);
    va_end(arguments);
    return 1;
}

int contract_is(contract *c, bp_cu_result result, bp_cu_result wanted, const char *what) {
    if (result == wanted)
        return 1;
    contract_fail(c, "%.200s gave %d, not %d", what, result, wanted);
    return 0;
}

bp_cu_function contract_kernel(contract *c, const char *name) {
    bp_cu_function function = NULL;
    contract_is(c, bp_cu.module_function(&function, c->module, name), BP_CU_SUCCESS, name);
    return function;
}

bp_cu_result contract_launch(bp_cu_function kernel, bp_cu_stream stream, const void *parameters,
                             size_t bytes) {
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)parameters,
                     BP_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, BP_CU_LAUNCH_PARAM_END};
    return bp_cu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, bytes ? extra : NULL);
}

void contract_nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int contract_comes(const volatile uint64_t *word, uint64_t value) {
    for (int turn = 0; turn < 2000 && *word != value; turn++)
        contract_nap(1);
    return *word == value;
}

static int set_up(contract *c) {
    WORKS(bp_cu.context_retain(&c->context, 0));
    WORKS(bp_cu.context_set(c->context));
    WORKS(bp_cu.stream_create(&c->one, BP_CU_STREAM_NON_BLOCKING, 0));
    WORKS(bp_cu.stream_create(&c->two, BP_CU_STREAM_NON_BLOCKING, 0));
    void *host = NULL;
    WORKS(
        bp_cu.host_alloc(&host, 32768, BP_CU_MEMHOSTALLOC_PORTABLE | BP_CU_MEMHOSTALLOC_DEVICEMAP));
    memset(host, 0, 32768);
    c->words = host;
    WORKS(bp_cu.host_address(&c->word_at, host, 0));
    WORKS(bp_cu.memory_alloc(&c->bytes, 1 << 20));
    WORKS(bp_cu.module_load(&c->module, c->ptx, 0, NULL, NULL));
    return 0;
}

/* One case in a process of its own: a fault ends CUDA for the whole process. */
static int run_case(const contract_case *one, const char *ptx) {
    contract c = {.ptx = ptx};
    if (bp_cuda_driver_open()) {
        printf("fail %s: %s\n", one->name, bp_error_text());
        return 1;
    }
    int bad = set_up(&c) || one->run(&c);
    if (bad)
        printf("fail %s: %s\n", one->name, c.reason);
    else
        printf("pass %s\n", one->name);
    fflush(stdout);
    return bad;
}

static int run_list(const contract_case *list, const char *ptx) {
    int failed = 0;
    for (; list->name; list++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(run_case(list, ptx));
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status))
            printf("fail %s: it died of signal %d\n", list->name, WTERMSIG(status));
        failed += status != 0;
        fflush(stdout);
    }
    return failed;
}

int main(int count, char **words) {
    static char ptx[1 << 16];
    FILE *file = count == 2 ? fopen(words[1], "rb") : NULL;
    if (!file || fread(ptx, 1, sizeof(ptx) - 1, file) == 0) {
        fprintf(stderr, "usage: contract PTX\n");
        return 2;
    }
    fclose(file);
    int failed = run_list(contract_order, ptx) + run_list(contract_fault, ptx);
    return failed + run_list(contract_code, ptx) ? 1 : 0;
}
