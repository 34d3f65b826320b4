/* use_gpu.c - which GPU a thread uses. */
#include "backend.h"
#include "thread.h"

duet_status thread_use_gpu(int device)
{
    const char *why = device > HOST && device < DEVICES_MAX ? device_absent(device) : "not a GPU";
    if (why) return fail(DUET_NO_DEVICE, "device %d cannot be used: %s", device, why);
    thread_get()->gpu = device;
    return DUET_OK;
}
