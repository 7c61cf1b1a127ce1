/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.h: what the programs of an agent know. Values are replaced whole, so no packet sees half of one. */
#ifndef SCAFFOLD_DIVERT_MAPS_H
#define SCAFFOLD_DIVERT_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct divert_config);
} config SEC(".maps");

/* When the agent was heard last: CLOCK_MONOTONIC, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} beat SEC(".maps");

/* Which lanes count: all of a generation are there before it does, and that of the former one stays until the next. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} generation SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, struct server_key);
	__type(value, __u32);
} servers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 15);
	__type(key, struct client_key);
	__type(value, struct rules);
} clients SEC(".maps");

/* Pinned: it outlives the agent, whose sockets the kernel then ends. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct ends);
	__type(value, struct session);
} sessions SEC(".maps");

/* Preallocated: a flood of SYNs takes no memory. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024); /* Config.Held */
	__type(key, struct ends);
	__type(value, struct held);
} holds SEC(".maps");

/* SYNs that went on unboosted -> their sequence number: sent again they go on as well, or the server would see two. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct ends);
	__type(value, __u32);
} passed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21); /* 1,300 SYNs */
} syns SEC(".maps");

/* What sysctls were before, by their number in Go, plus one. Pinned: a killed agent cannot put them back. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} saved SEC(".maps");

#endif
