/* SPDX-License-Identifier: MIT */
/* What the C block of the guide, host/guide/c.md, takes for granted: what begins with
 * my_ is what an engine has anyway. */
#include <stdio.h>

#include "vkrope/vkrope.h"

extern vkrope_device_ref my_ref;
extern vkrope_kernel* my_kernel;
extern vkrope_arena* my_arena; /* null with push descriptors */
extern vkrope_rotation* my_rope;
extern vkrope_angle_plan my_plan;
extern VkImageView my_table;
extern VkBuffer my_q;
extern VkDeviceSize my_q_bytes;
extern VkCommandBuffer my_commands;
