// Package legs holds the connections of boost whose packets switches rewrite (docs/protocol.md §9.5). Each comes to an agent by
// rules of its own, a leg: a switch holds the client's first packet until the near agent has said at which of its ports it waits,
// and a far agent connects once the switches of its site know from which of its ports.
//
// [Legs] is who has which leg, which switches have its rules, and who waits for them. It knows no lanes: whether a connection is
// one that an agent may have it asks of its [Network].
package legs
