#!/bin/sh
# Training on the GPUs of one machine: sh training/two-gpus.sh MODEL DIR [options of formal-llm train]
#
# Each process has whole groups of samples, so tasks_per_update should be a multiple of the number of processes. The setting processes
# makes sure that there are as many as meant: one process alone would train the same, only slower, and nobody would notice.
set -eu
GPUS="${GPUS:-2}"
MODEL="$1"
DIR="$2"
shift 2
exec torchrun --standalone --nproc-per-node "$GPUS" -m formal_llm train openagi \
    --set model="$MODEL" --out "$DIR" --set processes="$GPUS" \
    --set advantage=rloo --set samples=8 --set tasks_per_update=12 --set dtype=bfloat16 "$@"
