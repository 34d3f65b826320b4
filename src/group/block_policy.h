/* block_policy.h - whether ranks exchange the results of all blocks of a reduction (block_sums.c). Tests
 * change this policy before they run statements. It must be equal on all ranks. */
#ifndef BLOCK_POLICY_H
#define BLOCK_POLICY_H

enum block_policy { BLOCKS_IF_FASTER, BLOCKS_NEVER, BLOCKS_ALWAYS };
enum block_policy *block_sums(void); /* the current one */

#endif
