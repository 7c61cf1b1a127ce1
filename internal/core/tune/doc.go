// Package tune says what binds a stream that two agents of boost carry: its source, its receiver, an agent's processor, an
// agent's memory, or the path between them (docs/boost.md).
//
// Each agent looks, again and again, at what it waits for at its own end of a session: a [Look] for the bytes that it reads
// from its end host, and one for those that it writes to it. A [Judge] takes looks and answers once three intervals were
// alike. [Bind] puts what the two agents have found together; only both know: an agent that has no credit cannot tell
// whether the other one's host reads slowly or its memory is small.
//
// A [Tuner] decides how a path is used: by which congestion control, over how many connections, and how fast these may send at
// most, so that the queue on the path stays short and others have their part. Its [Verdict] is what of the path binds: a [Cause],
// and by how much.
//
// All of it is pure: what was seen comes in with its time, and the same looks and measures give the same answers.
package tune
