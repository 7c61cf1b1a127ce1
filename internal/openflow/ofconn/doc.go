// Package ofconn is the channel between a controller and a switch that speaks OpenFlow 1.3 or 1.5: the
// two HELLOs and what they agree on, questions and their answers, barriers, roles, and the watch over a
// peer that falls silent.
//
// A [Conn] is bounded in every direction. What we send waits in a buffer of Config.Outgoing bytes, and
// who sends more waits with it; a switch that takes nothing for Config.Silence is hung up on. Packets
// that the switch punts wait in a queue of Config.PacketIns; more are dropped and counted, because a
// host asks again. Its other news wait in a queue of Config.Events and are never dropped: a reader who
// falls that far behind loses the connection, and learns all anew from the next.
//
// Nothing that a switch does reaches beyond its Conn.
package ofconn
