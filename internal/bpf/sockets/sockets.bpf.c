//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tells each host daemon which sockets of its network namespace serve a service address.
 * One set of these programs hangs on the root cgroup of the machine; a host takes part by a row in
 * `hosts` and `rings`. A socket of another namespace costs one lookup that misses. */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../include/carried.h"
#include "../include/dying.h"
#include "sockets.h"

#define IPPROTO_TCP	6
#define IPPROTO_UDP	17
#define AF_INET6	10
#define TCP_LISTEN_ST	10
#define MAX_HOSTS	4096
#define MAX_SOCKS	(1 << 17)
#define PF_EXITING_FLAG 0x4

struct task_struct {
	unsigned int flags;
	int exit_code;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_HOSTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64); /* netns cookie */
	__type(value, struct host_row);
} hosts SEC(".maps");

/* Namespaces whose connection-oriented wildcard listeners serve a name, too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_HOSTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} wildcards SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, MAX_HOSTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SOCKS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64); /* socket cookie */
	__type(value, struct sock_row);
} socks SEC(".maps");

static __always_inline int served(const struct host_row *h, __u32 top)
{
	__u32 services;

	__builtin_memcpy(&services, h->services, 4);
	return services == top;
}

/* wildcard says whether a listener on no address in particular serves in its namespace. */
static __always_inline int wildcard(__u64 netns, __u32 a, __u32 b, __u32 c, __u32 d)
{
	return !(a | b | c | d) && bpf_map_lookup_elem(&wildcards, &netns);
}

/* Puts the type into the BTF, from where bpf2go takes it. */
const struct sock_event *unused_sock_event __attribute__((unused));

/* emit sends one event; a full ring is counted, and the daemon then dumps all sockets. */
static __always_inline void emit(struct host_row *h, const struct sock_row *s, __u64 cookie,
				 __u8 kind, __u8 why, int exit_code)
{
	struct sock_event *e;
	__u64 netns = s->netns;
	void *ring;

	ring = bpf_map_lookup_elem(&rings, &netns);
	e = ring ? bpf_ringbuf_reserve(ring, sizeof(*e), 0) : NULL;
	if (!e) {
		__sync_fetch_and_add(&h->lost, 1);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->cookie = cookie;
	__builtin_memcpy(e->addr, s->addr, 16);
	__builtin_memcpy(e->comm, s->comm, COMM_LEN);
	e->pid = s->pid;
	e->exit_code = exit_code;
	e->port = s->port;
	e->proto = s->proto;
	e->kind = kind;
	e->why = why;
	bpf_ringbuf_submit(e, 0);
}

static __always_inline void withdraw(struct sock_row *s, __u64 cookie, __u8 why, int exit_code)
{
	struct host_row *h;
	__u64 netns = s->netns;

	if (!(s->flags & SOCK_REGISTERED))
		return;
	s->flags &= ~SOCK_REGISTERED;
	h = bpf_map_lookup_elem(&hosts, &netns);
	if (h)
		emit(h, s, cookie, EVENT_UNREGISTER, why, exit_code);
}

/* bind6 sees the port that the program asked for: only here are "port 0" and a chosen port told
 * apart. The bind may still fail, so nothing registers yet, and a socket that serves already keeps
 * its row: the kernel refuses to bind it twice, after this hook. */
SEC("cgroup/bind6")
int on_bind6(struct bpf_sock_addr *ctx)
{
	struct sock_row s = {}, *old;
	struct host_row *h;
	__u64 cookie;
	__u32 *addr = (__u32 *)s.addr;

	s.netns = bpf_get_netns_cookie(ctx);
	h = bpf_map_lookup_elem(&hosts, &s.netns);
	if (!h || ctx->user_family != AF_INET6)
		return 1;
	addr[0] = ctx->user_ip6[0];
	addr[1] = ctx->user_ip6[1];
	addr[2] = ctx->user_ip6[2];
	addr[3] = ctx->user_ip6[3];
	if (!served(h, addr[0]) &&
	    (ctx->protocol != IPPROTO_TCP || !wildcard(s.netns, addr[0], addr[1], addr[2], addr[3])))
		return 1;
	s.port = bpf_ntohs((__u16)ctx->user_port);
	s.flags = s.port ? SOCK_EXPLICIT : 0;
	s.proto = ctx->protocol;
	s.pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm((char *)s.comm, sizeof(s.comm));
	cookie = bpf_get_socket_cookie(ctx);
	old = bpf_map_lookup_elem(&socks, &cookie);
	if (!old || !(old->flags & SOCK_REGISTERED))
		bpf_map_update_elem(&socks, &cookie, &s, BPF_ANY);
	return 1;
}

/* The bind succeeded. UDP serves from here on, unless the kernel chose the port. */
SEC("cgroup/post_bind6")
int on_post_bind6(struct bpf_sock *ctx)
{
	struct host_row *h;
	struct sock_row *s;
	__u64 cookie, netns;

	if (ctx->protocol != IPPROTO_UDP)
		return 1;
	netns = bpf_get_netns_cookie(ctx);
	h = bpf_map_lookup_elem(&hosts, &netns);
	if (!h || !served(h, ctx->src_ip6[0]))
		return 1;
	cookie = bpf_get_socket_cookie(ctx);
	s = bpf_map_lookup_elem(&socks, &cookie);
	if (!s || !(s->flags & SOCK_EXPLICIT))
		return 1;
	s->flags |= SOCK_REGISTERED;
	emit(h, s, cookie, EVENT_REGISTER, 0, -1);
	return 1;
}

/* A datagram socket that connects speaks to one peer and serves no one else. */
SEC("cgroup/connect6")
int on_connect6(struct bpf_sock_addr *ctx)
{
	struct sock_row *s;
	__u64 cookie;

	if (ctx->protocol != IPPROTO_UDP)
		return 1;
	cookie = bpf_get_socket_cookie(ctx);
	s = bpf_map_lookup_elem(&socks, &cookie);
	if (s)
		withdraw(s, cookie, WHY_CONNECTED, -1);
	return 1;
}

/* death is how the current task ends, as wait(2) gives it; -1 while it lives on. */
static __always_inline int death(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return task->flags & PF_EXITING_FLAG ? task->exit_code : -1;
}

/*
 * abandon marks a connection that its process neither closed nor shut down itself. The kernel is about to send a
 * FIN for it, as if all had been said. A process that exits with 0 has said all: many leave the closing to exit().
 */
static __always_inline void abandon(struct bpf_sock *ctx, int exit_code)
{
	__u64 netns;

	if (exit_code <= 0 || ctx->protocol != IPPROTO_TCP || ctx->family != AF_INET6)
		return;
	if (ctx->state != BPF_TCP_ESTABLISHED && ctx->state != BPF_TCP_CLOSE_WAIT)
		return; /* its own FIN has left, and may have to be sent again */
	if (ctx->mark == MARK_CARRIED)
		return; /* an agent's: its own program ends it by a reset (divert), and without the mark the edge would let no end out */
	netns = bpf_get_netns_cookie(ctx);
	if (bpf_map_lookup_elem(&hosts, &netns))
		ctx->mark = MARK_DYING;
}

/* The last close of any socket, also by a dying process; the addresses are no longer readable here. */
SEC("cgroup/sock_release")
int on_release(struct bpf_sock *ctx)
{
	struct sock_row *s;
	int exit_code;
	__u64 cookie;

	if (ctx->protocol != IPPROTO_TCP && ctx->protocol != IPPROTO_UDP)
		return 1;
	exit_code = death();
	cookie = bpf_get_socket_cookie(ctx);
	s = bpf_map_lookup_elem(&socks, &cookie);
	if (!s) {
		abandon(ctx, exit_code);
		return 1;
	}
	withdraw(s, cookie, WHY_CLOSED, exit_code);
	bpf_map_delete_elem(&socks, &cookie);
	return 1;
}

static __always_inline void on_listen(struct bpf_sock_ops *ctx)
{
	struct sock_row fresh = {}, *s;
	struct host_row *h;
	__u64 cookie;
	__u32 *addr = (__u32 *)fresh.addr;

	fresh.netns = bpf_get_netns_cookie(ctx);
	h = bpf_map_lookup_elem(&hosts, &fresh.netns);
	if (!h || ctx->family != AF_INET6)
		return;
	addr[0] = ctx->local_ip6[0];
	addr[1] = ctx->local_ip6[1];
	addr[2] = ctx->local_ip6[2];
	addr[3] = ctx->local_ip6[3];
	if (!served(h, addr[0]) && !wildcard(fresh.netns, addr[0], addr[1], addr[2], addr[3]))
		return;
	fresh.proto = IPPROTO_TCP;
	fresh.port = ctx->local_port; /* bind() to port 0, then listen(), serves too */
	cookie = bpf_get_socket_cookie(ctx);
	s = bpf_map_lookup_elem(&socks, &cookie);
	if (!s) { /* bound before the hooks were there */
		bpf_map_update_elem(&socks, &cookie, &fresh, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&socks, &cookie);
		if (!s) {
			__sync_fetch_and_add(&h->lost, 1);
			return;
		}
	}
	__builtin_memcpy(s->addr, fresh.addr, 16);
	s->port = fresh.port;
	s->flags |= SOCK_REGISTERED;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	emit(h, s, cookie, EVENT_REGISTER, 0, -1);
}

/* Leaving LISTEN is the only sign of shutdown(); accepted children inherit the flag and are let pass. */
static __always_inline void on_state(struct bpf_sock_ops *ctx)
{
	struct sock_row *s;
	__u64 cookie;

	if (ctx->args[0] != TCP_LISTEN_ST)
		return;
	cookie = bpf_get_socket_cookie(ctx);
	s = bpf_map_lookup_elem(&socks, &cookie);
	if (s)
		withdraw(s, cookie, WHY_SHUTDOWN, -1);
}

SEC("sockops")
int on_sockops(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		on_listen(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		on_state(ctx);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
