/* test_nccl_api.c - src/gpu/nccl_api.h against the header of NCCL. All checks are made when it is compiled:
 * functions that differ are declared twice. */
#include <nccl.h>

#include "nccl_api.h"
#include "tap.h"
#include <assert.h>

#define IS_EQUAL(name, value) static_assert((name) == (value), #name);
NCCL_RESULTS(IS_EQUAL)
NCCL_TYPES(IS_EQUAL)
NCCL_OPERATIONS(IS_EQUAL)
static_assert(NCCL_MAJOR == NCCL_SONAME_MAJOR, "the major version");
static_assert(NCCL_UNIQUE_ID_BYTES == 128, "the size of a name");
static_assert(NCCL_VERSION(2, 14, 0) == NCCL_CONFIG_VERSION, "the version of the configuration");
static_assert(NCCL_CONFIG_UNDEF_INT == NCCL_UNSET, "an undefined number");

#define HAS_PLACE(member)                                                                                    \
    static_assert(offsetof(nccl_config, member) == offsetof(ncclConfig_t, member), #member)
HAS_PLACE(size);
HAS_PLACE(magic);
HAS_PLACE(version);
HAS_PLACE(blocking);
static_assert(sizeof(nccl_config) <= sizeof(ncclConfig_t), "the configuration");

int main(void)
{
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    CHECK(config.magic == NCCL_CONFIG_MAGIC, "the magic number is %x", config.magic);
    tap_point("the declarations of NCCL");
    return tap_end();
}
