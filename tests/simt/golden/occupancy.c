/* Reads configurations, asks NVIDIA's occupancy header, prints its answers.
 *
 * One line in, 17 numbers: major minor blocks-max-threads threads-per-sm regs-per-block regs-per-sm
 * shared-per-block shared-per-sm shared-optin reserved carveout | threads registers static dynamic
 * max-dynamic opt-in barriers virtual. One line out: status, blocks, limiting factors, the limits
 * by registers, shared memory, warps, blocks, barriers, virtual resources, registers and bytes of
 * shared memory of a block.
 */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cuda_occupancy.h>

int main(void) {
    long long v[19];
    for (;;) {
        for (int i = 0; i < 19; i++)
            if (scanf("%lld", &v[i]) != 1)
                return 0;
        cudaOccDeviceProp device;
        cudaOccFuncAttributes kernel;
        cudaOccDeviceState state;
        cudaOccResult result;
        memset(&device, 0, sizeof(device));
        memset(&kernel, 0, sizeof(kernel));
        memset(&state, 0, sizeof(state));
        memset(&result, 0, sizeof(result));
        device.computeMajor = (int)v[0];
        device.computeMinor = (int)v[1];
        device.maxThreadsPerBlock = (int)v[2];
        device.maxThreadsPerMultiprocessor = (int)v[3];
        device.regsPerBlock = (int)v[4];
        device.regsPerMultiprocessor = (int)v[5];
        device.warpSize = 32;
        device.sharedMemPerBlock = (size_t)v[6];
        device.sharedMemPerMultiprocessor = (size_t)v[7];
        device.numSms = 1;
        device.sharedMemPerBlockOptin = (size_t)v[8];
        device.reservedSharedMemPerBlock = (size_t)v[9];
        state.carveoutConfig = (int)v[10];
        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = (int)v[12];
        kernel.sharedSizeBytes = (size_t)v[13];
        kernel.maxDynamicSharedSizeBytes = (size_t)v[15];
        kernel.shmemLimitConfig = v[16] ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.numBlockBarriers = (int)v[17];
        kernel.virtualResourceCount = (int)v[18];
        int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                             (int)v[11], (size_t)v[14]);
        printf("%d %d %u %d %d %d %d %d %d %d %zu\n", status, result.activeBlocksPerMultiprocessor,
               result.limitingFactors, result.blockLimitRegs, result.blockLimitSharedMem,
               result.blockLimitWarps, result.blockLimitBlocks, result.blockLimitBarriers,
               result.blockLimitVirtual, result.allocatedRegistersPerBlock,
               result.allocatedSharedMemPerBlock);
    }
}
