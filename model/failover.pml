/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failover of one flow, docs/protocol.md §6.5: a client whose server is gone, or only seems so, and two
 * instances that can go on. Instance 0 is the server that the client has at the beginning: it may have died,
 * or live on and know of nothing.
 *
 * The network is a set of messages: any of them is next, any is lost or comes twice. A service router chooses
 * who gets an ASK only when it arrives. Timers fire at any time.
 *
 * The client's socketID is its epoch: both are new with each attempt. An instance's socketID is the keyed
 * hash of its number and that epoch, so no other message fits it. The flow with the first server has epoch 0.
 *
 * LOSSES, COPIED: messages lost and duplicated. MOVES: of the client, at any time but while it is bound, which
 * is for renegotiate.pml. DIES: programs of instances that die after the first. UNABLE: instance 1 cannot resume.
 * BUG_*: bugs that the model has to find.
 * TRACE: trace.pml, written by a test from runs of the code, takes the place of the world.
 */
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef COPIED
#define COPIED 1
#endif
#ifndef MOVES
#define MOVES 1
#endif
#ifndef DIES
#define DIES 0
#endif
#ifndef TRIES
#define TRIES 4 /* messages of one failover */
#endif
#ifndef CONFIRMS
#define CONFIRMS 2 /* RESUMEs that echo one instance's socketID */
#endif
#ifndef INSTANCES
#define INSTANCES 2
#endif
#define ROOM 6

mtype = { Connecting, Bound, Moving, Answering, Blocked, Asking, Confirming, Closed };
/* ASK: the unresolved RESUME. CONFIRM: the RESUME that echoes an instance's socketID. GIVEUP: the client's FLOW-FAIL.
   OFFER: an instance's RSYN-ACK. MADE: its RACK. REFUSE: its FLOW-FAIL to an ASK. FAIL: that of an end that it had,
   or would not make. CLAIM: the first server's RSYN. */
mtype = { ASK, CONFIRM, GIVEUP, OFFER, MADE, REFUSE, FAIL, CLAIM };

mtype client = Bound;
byte epoch, chosen, asked, confirms;
byte losses, copied, moves, died, silent;
mtype made[INSTANCES] = Closed; /* the instances' ends */
byte held[INSTANCES];           /* the client's epoch that each of them has or had */
bool ended[INSTANCES];          /* it had a flow of that epoch, which is over: remembered */
byte last[INSTANCES];           /* the newest epoch of which it ever made a flow */
bool confirmed[INSTANCES];      /* a RESUME echoed this instance's socketID, ever */

/* kind, instance, epoch */
chan net = [ROOM] of { mtype, byte, byte };

inline step(i, a, b) { assert(client == a); client = b }
inline emit(kind, n, ep) {
	if
	:: net??[kind, eval(n), eval(ep)] -> skip
	:: else ->
		if
		:: nfull(net) -> net!!kind, n, ep
		:: full(net) -> skip /* lost, like any other */
		fi
	fi
}

inline ask() {
	if
	:: asked >= TRIES -> step(0, Asking, Closed)
	:: else -> asked++; emit(ASK, 0, epoch)
	fi
}

/* Nothing that the old peer sends arrives any more: it does not know the new socketID. */
inline block() {
	if
	:: client == Bound -> step(0, Bound, Blocked)
	:: client == Moving -> step(0, Moving, Blocked)
	:: client == Answering -> step(0, Answering, Blocked)
	fi;
	epoch++; asked = 0; confirms = 0
}

/* The client gives the instance up, tells it, and asks anew as somebody else. */
inline anew() {
	confirms = 0;
	emit(GIVEUP, chosen, epoch);
#ifndef BUG_SAME_EPOCH
	epoch++;
#endif
	step(0, Confirming, Asking);
	ask()
}

inline confirm() {
	confirms++;
	if
	:: asked < TRIES -> asked++
	:: else -> skip
	fi;
	emit(CONFIRM, chosen, epoch)
}

/* An instance that cannot: the next one is asked at once, or, after all have been asked, in a while. */
inline refused() {
	if
	:: ask()
	:: skip
	fi
}

/* The client changes networks: whom it asked answers to somebody that it was. */
inline move() {
	if
	:: client == Blocked -> epoch++
	:: client == Asking -> epoch++; ask()
	:: client == Confirming -> anew()
	fi
}

inline timer() {
	if
	:: client == Asking -> ask()
	:: client == Confirming && confirms < CONFIRMS -> confirm()
	:: client == Confirming && confirms >= CONFIRMS -> anew()
	fi
}

inline make(n, ep) {
	assert(ep > last[n]); /* a RESUME makes a flow once, however often it comes */
	last[n] = ep;
	made[n] = Bound; held[n] = ep; ended[n] = false
}

inline over(n) { made[n] = Closed; ended[n] = true }

#ifdef UNABLE
#define able(n) (n == 0)
#else
#define able(n) true
#endif

inline atInstance(kind, n, ep) {
	if
	:: kind == ASK && able(n) ->
#ifdef BUG_EARLY_STATE
		made[n] = Bound; held[n] = ep;
#endif
		emit(OFFER, n, ep)
	:: kind == ASK && !able(n) -> emit(REFUSE, n, ep)
	:: kind == CONFIRM ->
		if
		:: made[n] == Bound && held[n] == ep -> emit(MADE, n, ep)
		:: made[n] == Bound && held[n] > ep -> emit(FAIL, n, ep)
#ifndef BUG_FORGETS
		:: made[n] == Closed && ended[n] && held[n] >= ep -> emit(FAIL, n, ep)
#endif
		:: else -> confirmed[n] = true; make(n, ep); emit(MADE, n, ep)
		fi
	:: kind == GIVEUP ->
		if
		:: made[n] == Bound && held[n] == ep -> over(n)
		:: else -> skip
		fi
	fi
}

inline atClient(kind, n, ep) {
	if
	:: client == Blocked || client == Closed -> skip
	:: kind == CLAIM ->
		if
		:: client == Asking || (client == Confirming && chosen == n) -> emit(GIVEUP, n, ep)
		:: else -> skip /* signed by another key than the peer's */
		fi
	:: kind == OFFER && ep != epoch && (client == Asking || (client == Confirming && chosen == n)) ->
		emit(GIVEUP, n, ep) /* to somebody that the client was */
	:: kind == OFFER && ep == epoch && client == Asking ->
		chosen = n; confirms = 0;
		step(0, Asking, Confirming);
		confirm()
	:: kind == MADE && ep == epoch && client == Confirming && n == chosen -> step(0, Confirming, Bound)
	:: (kind == FAIL || kind == REFUSE) && ep == epoch && client == Asking -> refused()
	:: kind == FAIL && ep == epoch && client == Confirming && n == chosen -> anew()
	:: kind == FAIL && ep == epoch && client == Bound && n == chosen -> block()
	:: else -> skip
	fi
}

#define believed(n) (made[n] == Bound && held[n] == epoch)
#define quiet (len(net) == 0)
#define hasPeer (client == Bound || client == Moving || client == Answering)
#define lost(n) (made[n] == Bound && !((client == Bound || client == Confirming) && epoch == held[n] && chosen == n))

#ifdef TRACE
#include "trace.pml"
#else
active proctype world() {
	mtype k, wk;
	byte n, ep, wn, wep, at, c, m;

	atomic { /* any point of a renegotiation with the first server, which may be dead */
		if
		:: skip
		:: step(0, Bound, Moving)
		:: step(0, Bound, Answering)
		fi;
		if
		:: made[0] = Bound
		:: made[0] = Closed; ended[0] = true; emit(FAIL, 0, 0)
		fi
	};
end:	do
	/* A message, any one, arrives, arrives and stays, or is lost. */
	:: atomic { nempty(net) ->
		at = 0;
		do
		:: at + 1 < len(net) -> at++
		:: break
		od;
		skip;
		d_step {
			m = len(net); c = 0;
			do
			:: c < m ->
				net?k, n, ep;
				if
				:: c == at -> wk = k; wn = n; wep = ep
				:: else -> net!k, n, ep
				fi;
				c++
			:: else -> break
			od;
			m = 0; c = 0; at = 0; k = 0; n = 0; ep = 0
		};
		if
		:: losses < LOSSES -> losses++; goto done
		:: copied < COPIED -> copied++; net!!wk, wn, wep
		:: true -> skip
		fi;
		if /* a service router chooses */
		:: wk == ASK -> wn = 0
		:: wk == ASK -> wn = 1
		:: wk != ASK -> skip
		fi;
		if
		:: wk == ASK || wk == CONFIRM || wk == GIVEUP -> atInstance(wk, wn, wep)
		:: else -> atClient(wk, wn, wep)
		fi;
done:		wk = 0; wn = 0; wep = 0
	   }
	/* The server's silence, whether it is dead or not. */
	:: atomic { hasPeer && epoch == 0 && silent == 0 -> silent = 1; block() }
	:: atomic { client == Blocked -> step(0, Blocked, Asking); ask() }
	:: atomic { client == Blocked -> step(0, Blocked, Closed) } /* its transport cannot be carried on */
	:: atomic { client == Asking || client == Confirming -> timer() }
	:: atomic { moves < MOVES && (client == Blocked || client == Asking || client == Confirming) -> moves++; move() }
	/* The first server is there and moves, or has something to say. */
	:: atomic { made[0] == Bound && held[0] == 0 && moves < MOVES -> moves++; emit(CLAIM, 0, 0) }
	:: atomic { died < DIES && made[0] == Bound && held[0] > 0 -> died++; over(0); emit(FAIL, 0, held[0]) }
	:: atomic { died < DIES && made[1] == Bound -> died++; over(1); emit(FAIL, 1, held[1]) }
	/* Whom the client is not with hears it when it sends: its data reaches a forgotten socketID. */
	:: atomic { quiet && lost(0) -> over(0) }
	:: atomic { quiet && lost(1) -> over(1) }
	/* Whose peer is dead asks, and nobody answers. */
	:: atomic { quiet && hasPeer && !believed(chosen) -> block() }
	od
}

#define settled ((hasPeer && believed(chosen) && made[1 - chosen] == Closed) \
	|| (client == Closed && made[0] == Closed && made[1] == Closed))

ltl settles { <> [] settled }
ltl stateless { [] ((made[0] == Bound && held[0] > 0 -> confirmed[0]) && (made[1] == Bound -> confirmed[1])) }
ltl single { [] (client == Bound && epoch > 0 -> ((believed(chosen) || ended[chosen]) && !believed(1 - chosen))) }
#if DIES == 0
ltl kept { [] ((client == Bound && epoch > 0) -> [] (client == Bound)) }
#endif
#endif
