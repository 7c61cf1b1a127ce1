/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failover of one flow, docs/protocol.md §6.5: a client whose server is gone, or only seems so, and two
 * instances 0 and 1 that can go on. Each unresolved RSYN reaches either of them.
 *
 * The client's socketID is its epoch: both are new with each attempt. An instance's socketID is the keyed
 * hash of its number and that epoch, so no other message fits it. LOSSES: messages lost.
 * BUG_EARLY_STATE: an instance makes the flow at the unresolved RSYN: a bug that the model has to find.
 */
#ifndef LOSSES
#define LOSSES 2
#endif
#define TRIES 4 /* messages of one failover */
#define CONFIRMS 2 /* RACKs to one instance */

mtype = { Connecting, Bound, Moving, Answering, Blocked, Asking, Confirming, Closed };
mtype = { ASK, OFFER, CONFIRM, MADE, FAIL };

mtype client = Bound;
mtype before; /* where a failover can begin */
byte epoch, chosen, asked, confirms;
byte losses;
mtype made[2] = Closed; /* the instances' ends */
byte held[2];             /* the client's epoch that each of them holds */
bool confirmed[2];      /* a RACK echoed this instance's socketID at that epoch, ever */
bool moved;

/* kind, instance, epoch; to the client: OFFER, MADE, FAIL from the instance */
chan up = [5] of { mtype, byte, byte };
chan down = [5] of { mtype, byte, byte };

inline step(i, a, b) { assert(client == a); client = b }
inline put(c, kind, n, ep) {
	if
	:: c??[kind, eval(n), eval(ep)] -> skip
	:: else ->
		if
		:: nfull(c) -> c!!kind, n, ep
		:: full(c) -> skip
		fi
	fi
}

inline ask() {
	if
	:: asked == TRIES -> step(0, Asking, Closed)
	:: else ->
		asked++;
		if /* a service router chooses */
		:: true -> put(up, ASK, 0, epoch)
		:: true -> put(up, ASK, 1, epoch)
		fi
	fi
}

/* The client gives the instance up, tells it, and asks anew as somebody else. */
inline anew() {
	confirms = 0;
	put(up, FAIL, chosen, epoch);
	epoch++;
	step(0, Confirming, Asking);
	ask()
}

inline confirm() {
	confirms++;
	put(up, CONFIRM, chosen, epoch)
}

inline atInstance(kind, n, ep) {
	if
	:: kind == ASK ->
#ifdef BUG_EARLY_STATE
		made[n] = Bound; held[n] = ep;
#endif
		put(down, OFFER, n, ep)
	:: kind == CONFIRM ->
		if
		:: made[n] == Bound && held[n] == ep -> put(down, MADE, n, ep)
		:: made[n] == Bound && held[n] > ep -> put(down, FAIL, n, ep)
		:: made[n] == Closed && held[n] >= ep && held[n] > 0 -> put(down, FAIL, n, ep) /* it ended: remembered */
		:: else -> confirmed[n] = true; made[n] = Bound; held[n] = ep; put(down, MADE, n, ep)
		fi
	:: kind == FAIL ->
		if
		:: made[n] == Bound && held[n] == ep -> made[n] = Closed
		:: else -> skip
		fi
	fi
}

inline atClient(kind, n, ep) {
	if
	:: ep != epoch -> skip /* to somebody that the client was */
	:: ep == epoch && client == Asking && kind == OFFER ->
		chosen = n; confirms = 0;
		step(0, Asking, Confirming);
		confirm()
	:: ep == epoch && client == Confirming && kind == MADE && n == chosen -> step(0, Confirming, Bound)
	:: ep == epoch && client == Confirming && kind == FAIL && n == chosen -> anew()
	:: else -> skip
	fi
}

#define believed(n) (made[n] == Bound && held[n] == epoch)
#define quiet (len(up) == 0 && len(down) == 0)
#define lost(n) (made[n] == Bound && !(client == Bound && epoch == held[n] && chosen == n) \
	&& !(client == Confirming && epoch == held[n] && chosen == n))

active proctype world() {
	mtype k;
	byte n, ep;

	atomic { /* the server's silence, at any point of a renegotiation with it */
		if
		:: skip
		:: step(0, Bound, Moving)
		:: step(0, Bound, Answering)
		fi;
		if
		:: client == Bound -> step(0, Bound, Blocked)
		:: client == Moving -> step(0, Moving, Blocked)
		:: client == Answering -> step(0, Answering, Blocked)
		fi;
		epoch = 1;
		if
		:: step(0, Blocked, Asking); ask()
		:: step(0, Blocked, Closed) /* its transport cannot be carried on */
		fi
	};
end:	do
	:: atomic { up?k, n, ep -> atInstance(k, n, ep); k = 0; n = 0; ep = 0 }
	:: atomic { down?k, n, ep -> atClient(k, n, ep); k = 0; n = 0; ep = 0 }
	:: atomic { losses < LOSSES && nempty(up) -> losses++; up?k, n, ep; k = 0; n = 0; ep = 0 }
	:: atomic { losses < LOSSES && nempty(down) -> losses++; down?k, n, ep; k = 0; n = 0; ep = 0 }
	:: atomic { client == Asking && empty(up) && empty(down) -> ask() }
	:: atomic { client == Confirming && empty(up) && empty(down) ->
		if
		:: confirms < CONFIRMS -> confirm()
		:: else -> anew()
		fi }
	/* The instance is right but the client moves meanwhile. */
	:: atomic { client == Confirming && !moved -> moved = true; anew() }
	/* Whom the client is not with hears it when it sends: its data reaches a forgotten socketID. */
	:: atomic { quiet && lost(0) -> made[0] = Closed }
	:: atomic { quiet && lost(1) -> made[1] = Closed }
	od
}

#define settled ((client == Bound && believed(chosen) && made[1 - chosen] == Closed) \
	|| (client == Closed && made[0] == Closed && made[1] == Closed))

ltl settles { <> [] settled }
ltl stateless { [] ((made[0] == Bound -> confirmed[0]) && (made[1] == Bound -> confirmed[1])) }
ltl single { [] (client == Bound && epoch > 0 -> (believed(chosen) && !believed(1 - chosen))) }
