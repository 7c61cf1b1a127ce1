// Package stripe carries the streams of many sessions over the connections of one trunk between two boost agents
// (docs/protocol.md §9).
//
// A [Sender] decides which connection carries which chunk, keeps chunks until the end host has acknowledged them, and
// sends again what went down with a connection or is late. A [Receiver] puts streams together and grants credit, for
// memory that is reserved. Neither has a clock, a socket or a lock: time and frames are arguments; frames, ranges to be
// delivered and deadlines are results. They see where bytes are, never bytes.
//
// An agent has one of each for a trunk, under one lock. The example shows the loop of a driver; beside it
//
//   - a connection that died is told by [Sender.Disconnect] and [Receiver.Repeat], for STATE may have died with it;
//   - a HELLO of a later incarnation ends all connections of the peer's worker before, and is told by PeerRestarted of
//     both, before any other frame of the new worker;
//   - a worker that begins anew opens each session where the kernel says that it is, pushes the chunks that it finds,
//     calls [Sender.End] if the end was read, then [Sender.Restore], and sends RESUME from [Sender.Kept],
//     [Receiver.Progress] and [Receiver.Credit];
//   - [ErrRetired] is answered with RETIRE, a [Violation] or a frame.Error ends the connection;
//   - STATE goes over the connection with the least delay, before chunks: credit waits for it;
//   - the payload of a DATA frame is read whole, and opened where it is sealed, before [Receiver.Arrive]: a connection
//     that stalls in the middle of one holds no place.
package stripe
