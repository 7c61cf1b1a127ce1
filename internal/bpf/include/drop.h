/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* drop.h: nothing vanishes uncounted. Each program has its own enum of reasons, its own "drops" map. */
#ifndef SCAFFOLD_DROP_H
#define SCAFFOLD_DROP_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define MAX_REASONS 64

/* What the host's edge counts. Go names them in internal/bpf/host/counters.go, in this order. */
enum host_reason {
	HOST_NONE,
	HOST_MALFORMED,       /* headers that do not parse */
	HOST_NO_UPLINK,       /* egress on an interface that has no locator yet */
	HOST_LEAK,            /* a service or identity address would have left the host */
	HOST_NO_FLOW_OUT,     /* TCP from a local socket whose flow is unknown */
	HOST_NO_FLOW_IN,      /* a socketID that is no flow of this host */
	HOST_DIALLED_PEER,    /* a program dialled a frozen peer address */
	HOST_FULL,            /* no room for another flow */
	HOST_BAD_SOURCE,      /* right socketID, wrong peer */
	HOST_SECOND_ANSWER,   /* SYN-ACK of another instance, answered with RST */
	HOST_BAD_PORT,        /* right socketID, a port that the flow does not have */
	HOST_NOT_ADMITTED,    /* a first packet that no rule below fits */
	HOST_NOT_RESOLVED,    /* a service or identity address as destination on the wire */
	HOST_FRAGMENT,        /* a later fragment whose first was not seen */
	HOST_REWRITE,         /* a helper failed while the packet was changed */
	HOST_HOP_LIMIT,       /* a bounce that has gone round too often */
	HOST_CONNECTING,      /* a packet that a connecting flow cannot use yet */
	HOST_UNUSABLE_ERROR,  /* an ICMPv6 error that quotes no flow */
	HOST_BLOCKED,         /* for or from a flow whose peer is gone, docs/protocol.md §6.4 */
	HOST_RETIRED,         /* for a socketID that a flow gave up lately */
	HOST_METERED,         /* the daemon gets no more of its kind at once */
	HOST_ADOPTING,        /* before the segment that begins an adopted connection */
	HOST_NOT_ADOPTED,     /* that segment, where nobody listens or the kernel says no: the daemon is told; without one, RST */
	/* Not drops: consumed or answered. */
	HOST_BOUNCED,         /* returned to the service prefix */
	HOST_REFUSED,         /* answered with ICMPv6 code 4 */
	HOST_PROBED,          /* PROBE answered */
	HOST_MESSAGE,         /* handed to the daemon */
	HOST_HELD,            /* refusal handed to the daemon */
	HOST_RESET,           /* answered with RST */
	HOST_DAEMON_AWAY,     /* would have been handed to the daemon, which does not read */
	HOST_CUT_OFF,         /* FIN of a process that died, made an RST or taken away */
	HOST_STRAY,           /* for a socketID that nobody knows, handed to the daemon */
	HOST_ELSEWHERE,       /* sent by another uplink than the routing table chose */
	HOST_ADOPTED,         /* segments that began, or may have begun, an adopted connection */
	HOST_DIED,            /* FIN or RST of a process that died, taken away: the flow goes on elsewhere */
	HOST_EARLY_ERROR,     /* dropped: "no route" to the peer of a connection that was not silent for long */
	HOST_FORBIDDEN,       /* first packet of who may not connect, answered with ICMPv6 code 1 */
	HOST_COOKIE,          /* a SYN-ACK left without an entry, cookie.h */
	HOST_COOKIE_TAKEN,    /* the flow of one was made: its client has spoken */
	HOST_GUEST,           /* a guest sent what it may not, or not by the edge */
	HOST_NO_GUEST,        /* for a guest that is there no more */
	HOST_QUIET,           /* kept back: of a flow that is yet to move, with very many others */
	/* New reasons stand at the end: the counters are pinned. */
	HOST_METERED_SOURCE,  /* dropped: the sender has had its share of messages, and others want theirs */
	HOST_UNASKED,         /* dropped: a message to the host itself that answers nothing it asked */
	HOST_FOREIGN,         /* dropped: a local socket sent from a locator that is not this host's */
	HOST_PEER_FULL,       /* dropped: one peer host, or all datagrams, have as many flows as they may */
	HOST_ECHO,            /* not dropped: a ping's answer left without an entry, cookie.h */
	HOST_UNTOLD,          /* held back: the RST of a dead process's connection, of which the daemon had no room to hear */
	HOST_LATER,           /* not dropped: a client asked this host itself for a port that its daemon has not judged yet */
	HOST_ASKED,           /* not dropped: a first packet that this host sent to a recent peer, ask.h */
	HOST_REASONS
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");

static __always_inline void count(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&drops, &reason);

	if (n)
		*n += 1;
}

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return TC_ACT_SHOT;
}

#endif
