// Package seal protects the frames that two agents of boost send each other on data connections, which are plain TCP:
// TLS on each of them would copy each payload into records of 16 KiB, and out of them; here a chunk is one record, which
// is sealed on its way out of the chunk's memory and opened in the place where it is to be.
//
// The two agents have one control connection, mutual TLS 1.3 with the network's keys. Both export one secret from it
// (RFC 8446 §7.5, RFC 5705), and derive from that, by HKDF, a key for each data connection and direction. A frame's
// header is sent in the clear and authenticated; its payload is sealed by AES-128-GCM, whose nonce is the number of the
// frame on its connection. TCP keeps order, so the number is not sent: a frame that was altered, left out, doubled,
// moved to another connection or sent back to where it came from does not open, and the connection ends.
//
// AES-128 and not 256: an attacker gains nothing by the difference as long as TLS 1.3 between the same two agents
// takes AES-128 first, and a frame costs a fifth less. ChaCha20-Poly1305 was refused: machines at both ends of a fat
// path have instructions for AES.
package seal
