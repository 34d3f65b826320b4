/* digits_group.c - trains the dense network of digits.c on several GPUs of this machine, or on parts of its
 * CPU.
 *
 *     digits_group [FOLDER] [--backend cpu|gpu|auto] [--ranks N] [--passes N]
 *
 * FOLDER: as in digits.c. Without it, the program makes images. --ranks 0, the default, uses all GPUs. The
 * loss does not depend on the number of ranks, except for rounding. */
#include "digits_parallel.h"

int main(int argc, char **argv)
{
    digits d = { 0 };
    digits_options o;
    if (!digits_start(argc, argv, &o, &d)) return 2;

    duet_group *g = NULL;
    DUET_ON(o.place) g = duet_group_local(o.ranks);
    duet_status s = DUET_NO_DEVICE;
    if (g) s = digits_parallel(g, &d, o.passes, true);
    if (s != DUET_OK) digits_complain("digits_group", s);
    duet_group_free(&g);
    digits_free(&d);
    return s != DUET_OK || duet_live(stderr) != 0;
}
