package ends

import "scaffold.dev/scaffold/internal/packet/header"

// Lengths and places of headers.
const (
	ip4Len     = 20
	ip6Len     = header.IPv6Len
	tcpLen     = header.TCPLen
	checksumAt = 16 // in TCP's header
	protoTCP   = header.TCP
)
