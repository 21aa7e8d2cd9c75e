// SPDX-License-Identifier: MIT

// Rotates Q and K in host memory on the best Vulkan device, through the C interface.
package main

/*
#cgo pkg-config: vkrope
#include <stdlib.h>
#include <vkrope/vkrope.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"
)

const (
	config = `{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "rope_theta": 10000.0, "max_position_embeddings": 2048}`
	tokens  = 5
	headDim = 64
)

// check returns the error of a call as a Go error.
func check(result C.vkrope_result, failed *C.vkrope_error) error {
	if result == C.VKROPE_SUCCESS {
		return nil
	}
	return errors.New(C.GoString(&failed.what[0]))
}

// rows returns [tokens, heads, headDim], in which pair j of each row is the point (1, 0).
func rows(heads int) []C.float {
	values := make([]C.float, tokens*heads*headDim)
	for i := range values {
		if i%headDim < headDim/2 {
			values[i] = 1
		}
	}
	return values
}

func judge(name string, values []C.float, heads int) error {
	for i, value := range values {
		position, channel := i/(heads*headDim), i%headDim
		pair := channel % (headDim / 2)
		angle := float64(position) * math.Pow(10000, -2*float64(pair)/headDim)
		exact := math.Sin(angle)
		if channel < headDim/2 {
			exact = math.Cos(angle)
		}
		if math.Abs(float64(value)-exact) > 4e-7 {
			return fmt.Errorf("%s[%d] is %v, not %v", name, i, value, exact)
		}
	}
	return nil
}

func run() (string, error) {
	var failed C.vkrope_error
	json := C.CString(config)
	defer C.free(unsafe.Pointer(json))
	var model *C.vkrope_model
	result := C.vkrope_model_from_hf_config(json, C.size_t(len(config)), nil, &model, &failed)
	if err := check(result, &failed); err != nil {
		return "", err
	}
	defer C.vkrope_model_destroy(model)
	rotation := C.vkrope_model_get_params(model)
	var device *C.vkrope_device
	if err := check(C.vkrope_device_open(nil, &device, &failed), &failed); err != nil {
		return "", err
	}
	defer C.vkrope_device_destroy(device)
	shape := C.vkrope_host_shape{tokens: tokens, heads: [3]C.uint32_t{4, 2, 0}}
	var work *C.vkrope_host_rotation
	result = C.vkrope_host_rotation_create(device, rotation, &shape, &work, &failed)
	if err := check(result, &failed); err != nil {
		return "", err
	}
	defer C.vkrope_host_rotation_destroy(work)
	q, k := rows(4), rows(2)
	qAt, kAt := unsafe.Pointer(&q[0]), unsafe.Pointer(&k[0])
	if err := check(C.vkrope_host_rotation_upload(work, qAt, kAt, nil, &failed), &failed); err != nil {
		return "", err
	}
	result = C.vkrope_host_rotation_run(work, nil, nil, &failed)
	if err := check(result, &failed); err != nil {
		return "", err
	}
	result = C.vkrope_host_rotation_download(work, qAt, kAt, nil, &failed)
	if err := check(result, &failed); err != nil {
		return "", err
	}
	if err := judge("q", q, 4); err != nil {
		return "", err
	}
	if err := judge("k", k, 2); err != nil {
		return "", err
	}
	name := C.GoString(C.vkrope_device_get_info(device).name)
	return fmt.Sprintf("Go: %d values rotated on %s", len(q)+len(k), name), nil
}

func main() {
	sentence, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
	fmt.Println(sentence)
}
