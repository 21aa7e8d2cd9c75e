#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the program `llama` beside this script once for each row, two at a time, and prints a line
# for each: exit status, arguments, a bar, and what the program says or why it says nothing.
architectures='afmoe apertus arcee arctic baichuan bailingmoe bailingmoe2 bailingmoe3 bitnet bloom
chatglm codeshell cogvlm cohere2 cohere2moe command-r dbrx deci deepseek deepseek2 deepseek2-ocr
deepseek32 deepseek4 dots1 dots3note dream ernie4_5 ernie4_5-moe exaone exaone-moe exaone4 falcon
falcon-h1 gemma gemma-embedding gemma2 gemma3n gemma4 glm-dsa glm4 glm4moe glm5-next gpt-oss gpt2
gptneox granite granite_swa granitehybrid granitemoe graniteswitch grok grovemoe hrm_text
hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 hy_v4 internlm2 jais jais2 jamba k2-horizon kimi-k3
kimi-linear laguna lfm2 lfm2moe llada llada-moe llama-embed llama4 maincoder maion-coder maple
mellum mimo2 minicpm minicpm3 minimax-01 minimax-m2 minimax-m3 mistral3 mistral4 mpt muse-glimmer
nanbeige nemotron nemotron_h nemotron_h_moe olmo olmo2 olmoe openelm orion paddleocr pangu-embedded
phi2 phi3 phimoe plamo plamo2 plamo3 plm pockettts qwen qwen2 qwen2moe qwen2vl qwen35 qwen35moe
qwen3moe qwen3next qwen3tts qwen3vl qwen3vlmoe qwen4exp refact rnd1 seed_oss smallthinker smollm3
spark2_5 stablelm starcoder starcoder2 step35 t5 talkie xverse'

# rows MODE DEVICES MODELS TYPES [LAST_POSITION [MUTANT]]: prints arguments of the program.
rows() {
    for device in $2; do
        for model in $3; do
            for type in $4; do echo "$1 $model $device ${type%/*} ${type#*/} ${5:-63} ${6:--}"; done
        done
    done
}
all() {
    both='CPU Vulkan0' three='llama qwen3 gemma3' latent='deepseek2|deepseek32|glm-dsa|mistral4'
    rows observe "$both" "$three" 'f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q8_0/f16'
    for last in 4095 131071 1048576; do
        rows observe "$both" llama f16 $last
        rows observe "$both" qwen3 q8_0 $last
    done
    # Attention to latent rows in q8_0 takes lavapipe minutes to compile.
    rows observe "$both" "$architectures" q8_0 | grep -vE " ($latent) Vulkan0 "
    rows observe Vulkan0 "$(echo "$latent" | tr '|' ' ')" f16
    rows observe "$both" llama 'f16 q8_0' 63 yarn
    rows shift "$both" llama 'f16 q8_0 q4_0'
    rows shift "$both" llama 'f16 q8_0 q4_0' 63 yarn
    rows replace both "$three" 'f16 q8_0 q4_0'
    for mutant in pairing hadamard eps slot; do rows observe CPU qwen3 q8_0 63 $mutant; done
}

cd -- "$(dirname -- "$0")" || exit 1
export GGML_NO_BACKTRACE=1 GGML_VK_VISIBLE_DEVICES=0 GALLIVM_PERF=nopt
# shellcheck disable=SC2016 # variables of the inner shell
all | xargs -d '\n' -P 2 -n 1 sh -c '
    log=$(mktemp) code=0
    # shellcheck disable=SC2086 # a word for each argument
    said=$(timeout 300 ./llama $1 2>"$log") || code=$?
    [ -n "$said" ] || said=$(grep -E "error loading|ASSERT|requires|invalid" "$log" ||
        tail -n 1 "$log")
    echo "$code $1 | $(echo "$said" | head -n 1)"
    rm -f "$log"' sh
