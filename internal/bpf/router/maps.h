/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* maps.h: what the service router knows. Values of hash maps are replaced whole, so no packet sees half of one. */
#ifndef SCAFFOLD_ROUTER_MAPS_H
#define SCAFFOLD_ROUTER_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "../include/parse.h"
#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct router_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct service_key);
	__type(value, struct service_state);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 19); /* nodes: 100,000 services on TCP and UDP have 400,000; Config.Nodes */
	__type(key, struct table_key);
	__type(value, struct table_node);
} tables SEC(".maps");

/* From where packets may come, docs/protocol.md §5.4. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, struct source_key);
	__type(value, __u8);
} sources SEC(".maps");

/* By ifindex: 1 where a router is attached. An array costs a tenth of a hash; ports with greater numbers are in sources. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOW_PORTS);
	__type(key, __u32);
	__type(value, __u8);
} leads SEC(".maps");

/* Where hosts were -> where they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, __u64);
} redirects SEC(".maps");

/* Locators that hosts have left for nowhere. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, __u8);
} gone SEC(".maps");

/* Where hosts of this router are that do not answer its probes, and until when that is believed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, __u64);
} silent SEC(".maps");

/* Who was told so last when, by the address of the sender's end of the flow. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct addr);
	__type(value, __u64);
} told SEC(".maps");

enum { BUCKET_REFUSALS, BUCKET_FAILS, BUCKETS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BUCKETS);
	__type(key, __u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

#endif
