/* See thread.h. */
#define _GNU_SOURCE
#include "thread.h"

#include <signal.h>

int bp_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(*thread, name);
    return error;
}
