// Package frame holds what two boost agents say to each other on the connections of a trunk (docs/protocol.md §9): one
// Go type for each frame, with an append-style encoder and a parser.
//
// Every frame begins with the same 24 bytes; numbers are big-endian:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|     type      |     flags     |               0               |
//	+---------------+---------------+-------------------------------+
//	|                            length                             |  of the payload, bytes
//	+---------------------------------------------------------------+
//	|                            session                            |  0: the trunk itself
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            offset                             |  in the session's stream, bytes
//	|                                                               |
//	+---------------------------------------------------------------+
//
// The length is that of the payload alone: what protects a frame (a tag, a checksum) follows the payload and is not
// counted. Padding and flags that have no meaning yet are sent as zeros and not looked at on arrival.
//
// A reader takes 24 bytes, calls ParseHeader, and knows then how many bytes follow and that they are few enough for
// the frame's type. Parsers keep no reference to what they are given, and neither they nor encoders allocate.
package frame
