/* Setting the arguments of a kernel and starting it. */
#ifndef BEDPLATE_HAL_OPENCL_LAUNCH_H
#define BEDPLATE_HAL_OPENCL_LAUNCH_H

#include "../chassis/queue.h"
#include "cl.h"

/* Called for each sub-buffer that a launch made; whoever takes it releases it when the launch is
 * done. 0 when it could not be kept. */
typedef int (*bp_cl_keep)(void *context, cl_mem part);

/* Enqueues a launch; the call that failed is in *what. */
cl_int bp_cl_launch(cl_command_queue queue, const bp_launch_node *node, bp_cl_keep keep,
                    void *context, cl_event *event, const char **what);

#endif
