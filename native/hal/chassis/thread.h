/* Threads of the backend: named, and with every signal blocked, so that the host's handlers run on
 * the host's threads. */
#ifndef BEDPLATE_HAL_CHASSIS_THREAD_H
#define BEDPLATE_HAL_CHASSIS_THREAD_H

#include <pthread.h>

/* 0, or the errno of pthread_create. Names are cut at 15 characters. */
int bp_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);

#endif
