#!/bin/sh
# RLTF on the eight GPUs of one machine: sh training/eight-gpus.sh MODEL DIR [options of formal-llm train]
#
# vLLM answers on the last SERVERS of them, one copy of the model each, and torchrun trains on the first PROCESSES. vLLM takes
# adapters while it runs only with one API server (--api-server-count 1), and whoever may reach its port may load adapters:
# it listens to this machine alone.
set -eu
PROCESSES="${PROCESSES:-4}"
SERVERS="${SERVERS:-4}"
PORT="${PORT:-8000}"
MODEL="$1"
DIR="$2"
shift 2
gpus() { seq -s , "$1" "$2"; }
mkdir -p "$DIR"
CUDA_VISIBLE_DEVICES="$(gpus "$PROCESSES" $((PROCESSES + SERVERS - 1)))" VLLM_ALLOW_RUNTIME_LORA_UPDATING=True \
    vllm serve "$MODEL" --host 127.0.0.1 --port "$PORT" --data-parallel-size "$SERVERS" --api-server-count 1 \
    --dtype bfloat16 --max-model-len 4096 --enable-lora --max-lora-rank 16 --max-loras 2 >"$DIR/vllm.log" 2>&1 &
SERVER=$!
trap 'kill "$SERVER" 2>/dev/null || true' EXIT
until curl --silent --fail "http://127.0.0.1:$PORT/health" >/dev/null; do
    kill -0 "$SERVER" 2>/dev/null || { echo "vLLM did not start; see $DIR/vllm.log" >&2; exit 1; }
    sleep 5
done
CUDA_VISIBLE_DEVICES="$(gpus 0 $((PROCESSES - 1)))" torchrun --standalone --nproc-per-node "$PROCESSES" \
    -m formal_llm train eight-gpus --model "transformers:$MODEL" --out "$DIR" --processes "$PROCESSES" \
    --tasks-per-update $((3 * PROCESSES)) --rollouts "vllm:http://127.0.0.1:$PORT" "$@"
