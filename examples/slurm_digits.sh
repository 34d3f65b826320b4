#!/bin/sh
# slurm_digits.sh - trains the network of digits_mpi.c on two nodes with four GPUs each:
#
#     sbatch slurm_digits.sh build/examples/digits_mpi [FOLDER] [--passes N]
#
# Change the numbers below to those of your machines. `srun --mpi=list` prints what to write in place of pmix.
#SBATCH --job-name=digits
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=00:10:00

export OMP_NUM_THREADS="$SLURM_CPUS_PER_TASK"
# Every process must see all GPUs of its node, so there is no --gpus-per-task. If a process fails, srun ends
# the others.
exec srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 "$@"
