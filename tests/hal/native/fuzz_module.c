/* The fuzzer's calls of the module and capture tables, and of ext. */
#include "fuzz.h"

void fuzz_module(fuzzer *own) {
    static const char *const PATHS[] = {"", "relative.so", "/", "/nothing/there.so", "/etc/passwd"};
    uint64_t *out = place(own), device = fuzz_device(own), module = handle(own, MODULES);
    switch (below(own, 8)) {
    case 0: {
        bp_module_source source = {.head = {1, sizeof(source)}, .kind = BP_MODULE_NATIVE};
        source.path = text(own, chance(own, 60) ? fuzz_module_path : PATHS[below(own, 5)]);
        if (chance(own, 10))
            source.kind = (uint32_t)number(own);
        if (chance(own, 15))
            made(own, MODULES, CALL(api->module->load(device, GIVEN(own, source), out), out), out);
        break;
    }
    case 1: {
        bp_module_info info = {.head = {1, sizeof(info)}};
        CALL(api->module->info(device, module, GIVEN(own, info)), NULL);
        break;
    }
    case 2:
    case 3:
    case 4: {
        /* Only a kernel that reads nothing is launched: others believe their arguments. */
        static const char *const NAMES[] = {"nothing", "no_such_kernel", ""};
        bp_text name = text(own, NAMES[chance(own, 10) ? 1 + below(own, 2) : 0]);
        const bp_text *given = chance(own, 3) ? NULL : &name;
        int32_t status = CALL(api->module->kernel(device, module, given, out), out);
        made(own, KERNELS, status, out);
        break;
    }
    case 5: {
        bp_kernel_info info = {.head = {1, sizeof(info)}};
        CALL(api->module->kernel_info(device, handle(own, KERNELS), GIVEN(own, info)), NULL);
        break;
    }
    case 6:
        if (chance(own, 40))
            CALL(api->module->unload(device, module), NULL);
        break;
    default:
        switch (below(own, 5)) {
        case 0:
            CALL(api->capture->begin(device, handle(own, QUEUES)), NULL);
            break;
        case 1:
            CALL(api->capture->end(device, handle(own, QUEUES), out), out);
            break;
        case 2:
            CALL(api->capture->launch(device, handle(own, QUEUES), number(own), NULL), NULL);
            break;
        case 3:
            CALL(api->capture->release(device, number(own)), NULL);
            break;
        default: {
            bp_text name = text(own, chance(own, 50) ? "bp.ops.1" : "bp.nothing.7");
            api->ext(chance(own, 10) ? NULL : &name);
            own->calls++;
        }
        }
    }
}
