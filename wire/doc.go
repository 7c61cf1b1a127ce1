// Package wire holds every message that Scaffold's parts send to each other in UDP, port 23727
// (docs/protocol.md §4): one Go type for each, with an append-style encoder, and Parse.
//
// All of them begin with the same 16 bytes; numbers are big-endian:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|  version = 1  |     type      |            length             |
//	+---------------+---------------+-------------------------------+
//	|                    key id (0: unsigned)                       |
//	+---------------------------------------------------------------+
//	|                            nonce                              |
//	|                                                               |
//	+---------------------------------------------------------------+
//
// Length is that of the whole message in bytes and must equal the datagram's. Padding is sent as
// zeros and not looked at on arrival.
package wire
