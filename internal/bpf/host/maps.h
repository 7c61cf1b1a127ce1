/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* maps.h: what the edge remembers. All maps are pinned together; Go sets sizes. */
#ifndef SCAFFOLD_HOST_MAPS_H
#define SCAFFOLD_HOST_MAPS_H

#include "abi.h"
#include "parse.h"

/* The address plan and the link, set before loading. Bytes in network order. */
const volatile __u32 l2_len = ETH_HLEN;
const volatile __u32 services_prefix; /* upper 32 bits of service addresses */
const volatile __u64 as_prefix;       /* upper 48 bits of this AS's locators */
const volatile __u64 identities;      /* upper 64 bits of the hosts' stable addresses */

const volatile __u32 max_flows;       /* what egress_flows has room for */
const volatile __u32 for_guests;      /* what guests send, and nothing of the host's own */

#define MAP(name_, type_, key_, value_, max_, flags_)                  \
	struct {                                                       \
		__uint(type, type_);                                   \
		__uint(max_entries, max_);                             \
		__uint(map_flags, flags_);                             \
		__type(key, key_);                                     \
		__type(value, value_);                                 \
	} name_ SEC(".maps")

MAP(config, BPF_MAP_TYPE_ARRAY, __u32, struct host_config, 1, 0);
MAP(ids, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 1, 0); /* how many socketIDs each CPU has made */
MAP(places, BPF_MAP_TYPE_ARRAY, __u32, struct place, 1, 0);

MAP(egress_flows, BPF_MAP_TYPE_HASH, struct flow_key, struct egress_flow, 1 << 18, BPF_F_NO_PREALLOC);
MAP(ingress_flows, BPF_MAP_TYPE_HASH, __u64, struct ingress_flow, 1 << 18, BPF_F_NO_PREALLOC);

/* By the keys of datagram flows, of clients without the port that was asked: one for each socket and service. */
MAP(answers, BPF_MAP_TYPE_HASH, struct flow_key, struct answer_ports, 1 << 18, BPF_F_NO_PREALLOC);

/* A SYN-ACK's flow waits here, where a flood evicts only its like, until the client speaks. */
MAP(egress_half, BPF_MAP_TYPE_LRU_HASH, struct flow_key, struct egress_flow, 1 << 13, 0);
MAP(ingress_half, BPF_MAP_TYPE_LRU_HASH, __u64, struct ingress_flow, 1 << 13, 0);

MAP(services, BPF_MAP_TYPE_HASH, __u64, struct service, 1 << 14, BPF_F_NO_PREALLOC);
MAP(instances, BPF_MAP_TYPE_HASH, struct instance_key, __u32, 1 << 14, BPF_F_NO_PREALLOC);
/* Access lists. The map is pinned by this name, by which the next daemon finds it, also one of another version. */
MAP(guards, BPF_MAP_TYPE_LPM_TRIE, struct access_key, __u8, 1 << 16, BPF_F_NO_PREALLOC);
MAP(policies, BPF_MAP_TYPE_HASH, struct addr, struct policy, 1 << 16, BPF_F_NO_PREALLOC);
MAP(fragments, BPF_MAP_TYPE_LRU_HASH, struct fragment_key, struct fragment, 1 << 10, 0);

/* An event under construction: too big for the stack. */
struct event_buffer {
	struct event head;
	__u8 data[EVENT_DATA];
};
MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct event_buffer, 1, 0);

/* The two entries of a flow under construction, for the same reason. */
struct newborn {
	struct ingress_flow in;
	struct egress_flow out;
};
MAP(newborns, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct newborn, 1, 0);

MAP(steps, BPF_MAP_TYPE_ARRAY, __u32, struct step, MAX_STEPS, 0);
MAP(alias, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct newborn, 1, 0); /* steer's own: see newborns */
MAP(meters, BPF_MAP_TYPE_ARRAY, __u32, struct meter, METERS, 0);
MAP(budgets, BPF_MAP_TYPE_ARRAY, __u32, struct meter, BUDGETS, 0);
MAP(peers, BPF_MAP_TYPE_ARRAY, __u32, __s64, SOURCES + 1, BPF_F_MMAPABLE); /* flows by peers' host numbers, room.h */
MAP(credits, BPF_MAP_TYPE_ARRAY, __u32, __u64, SOURCES, 0); /* by sender's host number: until when its messages are spent, ns */
MAP(tags, BPF_MAP_TYPE_ARRAY, __u32, struct addr, MAX_TAGS, 0); /* services by the tag in their cookies, cookie.h */
/*
 * SocketIDs given up, and when: as many as a whole table's, since all flows of a host move at once. An LRU has its memory
 * at once, and this is needed for a minute after a great move. Sweep empties it.
 */
MAP(former_ids, BPF_MAP_TYPE_HASH, __u64, __u64, 1 << 19, BPF_F_NO_PREALLOC);
MAP(strays, BPF_MAP_TYPE_LRU_HASH, __u64, __u64, 1 << 12, 0);  /* unknown socketIDs, and since when */
MAP(sessions, BPF_MAP_TYPE_HASH, struct session_key, struct session, 1 << 18, BPF_F_NO_PREALLOC);
MAP(adoptions, BPF_MAP_TYPE_HASH, __u64, struct adoption, 1 << 18, BPF_F_NO_PREALLOC);

MAP(guests, BPF_MAP_TYPE_HASH, __u32, struct guest, MAX_GUESTS, BPF_F_NO_PREALLOC);
MAP(guest_links, BPF_MAP_TYPE_ARRAY, __u32, __u32, MAX_GUESTS, 0); /* by number; of 0: where guests' new flows leave */
MAP(guest_spaces, BPF_MAP_TYPE_ARRAY, __u32, struct guest_space, MAX_GUESTS, 0);
MAP(owners, BPF_MAP_TYPE_HASH, struct owner_key, __u32, 1 << 15, BPF_F_NO_PREALLOC);

MAP(judged, BPF_MAP_TYPE_HASH, struct instance_key, __u32, 1 << 14, BPF_F_NO_PREALLOC);
MAP(recent_peers, BPF_MAP_TYPE_LRU_HASH, struct recent_peer_key, struct recent_peer, 1 << 12, 0);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

#endif
