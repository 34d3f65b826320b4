/* dlpack_types.c - element types and devices: Duet's and those of DLPack. */
#include "dlpack_types.h"
#include "dtype.h"

/* ---- element types ---- */

static uint8_t code_of(duet_dtype type)
{
    static const uint8_t codes[] = { [TYPE_BOOL] = kDLBool,
                                     [TYPE_SIGNED] = kDLInt,
                                     [TYPE_UNSIGNED] = kDLUInt,
                                     [TYPE_FLOAT] = kDLFloat,
                                     [TYPE_COMPLEX] = kDLComplex };
    return type == DUET_BF16 ? kDLBfloat : codes[dtype_kind(type)];
}

DLDataType dlpack_type(duet_dtype type)
{
    return (DLDataType){ code_of(type), (uint8_t)(8 * dtypes[type].bytes), 1 };
}

static const char *code_name(uint8_t code)
{
    static const char *const names[] = { "int",
                                         "uint",
                                         "float",
                                         "opaque handle",
                                         "bfloat",
                                         "complex",
                                         "bool",
                                         "float8_e3m4",
                                         "float8_e4m3",
                                         "float8_e4m3b11fnuz",
                                         "float8_e4m3fn",
                                         "float8_e4m3fnuz",
                                         "float8_e5m2",
                                         "float8_e5m2fnuz",
                                         "float8_e8m0fnu",
                                         "float6_e2m3fn",
                                         "float6_e3m2fn",
                                         "float4_e2m1fn" };
    return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

duet_status dlpack_read_type(const char *who, DLDataType t, duet_dtype *type)
{
    if (t.lanes != 1)
        return fail(DUET_UNSUPPORTED, "%s: the elements are vectors of %d lanes; Duet needs 1 lane", who,
                    t.lanes);
    for (int d = 0; d < DUET_DTYPE_COUNT; d++) {
        const DLDataType own = dlpack_type((duet_dtype)d);
        *type = (duet_dtype)d;
        if (own.code == t.code && own.bits == t.bits) return DUET_OK;
    }
    return fail(DUET_UNSUPPORTED, "%s: Duet has no element type %s of %d bits (DLPack's type %d)", who,
                code_name(t.code), t.bits, t.code);
}

/* ---- devices ---- */

const char *dlpack_device_name(DLDeviceType type)
{
    switch ((int)type) {
    case kDLCPU: return "CPU";
    case kDLCUDA: return "CUDA";
    case kDLCUDAHost: return "page-locked memory of CUDA";
    case kDLOpenCL: return "OpenCL";
    case kDLVulkan: return "Vulkan";
    case kDLMetal: return "Metal";
    case kDLVPI: return "VPI";
    case kDLROCM: return "ROCm";
    case kDLROCMHost: return "page-locked memory of ROCm";
    case kDLExtDev: return "an extension";
    case kDLCUDAManaged: return "managed memory of CUDA";
    case kDLOneAPI: return "oneAPI";
    case kDLWebGPU: return "WebGPU";
    case kDLHexagon: return "Hexagon";
    case kDLMAIA: return "MAIA";
    case kDLTrn: return "Trainium";
    default: return "unknown";
    }
}

DLDevice dlpack_device(int device)
{
    if (device == HOST || !device_machine(device)->number) return (DLDevice){ kDLCPU, 0 };
    return (DLDevice){ kDLCUDA, device_machine(device)->number(device) };
}

duet_status dlpack_read_gpu(const char *who, int32_t id, int *device)
{
    const char *why = device_absent(DEFAULT_GPU);
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++) {
        if (!device_machine(d) || !device_machine(d)->number || device_absent(d)) continue;
        *device = d;
        if (device_machine(d)->number(d) == id) return DUET_OK;
    }
    return fail(DUET_NO_DEVICE, "%s: CUDA's device %d cannot be used%s%s", who, (int)id, why ? ": " : "",
                why ? why : "");
}
