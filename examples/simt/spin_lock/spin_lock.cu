// All lanes of a warp want one lock. Where lanes are scheduled one by one (since Volta) it
// goes round; with one stack a warp, the lanes that spin keep its owner from ever running.

extern "C" __global__ void count(unsigned *lock, unsigned *counter) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *(volatile unsigned *)counter += 1;
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void count_safely(unsigned *lock, unsigned *counter) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) { // who has the lock gives it back in this round
            __threadfence();
            *(volatile unsigned *)counter += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
