package ofconn

import (
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Config is what a connection is told; zero values stand for the defaults.
type Config struct {
	Versions  ofp.VersionBitmap // that we speak; default 1.3 and 1.5
	Handshake time.Duration     // how long a peer may take until it has said what it is; default 5 s
	Silence   time.Duration     // how long a peer may say nothing, or take nothing, before it is gone; default 15 s
	PacketIns int               // packets that may wait; default 1024
	Events    int               // other messages that may wait; default 8192
	Outgoing  int               // bytes that may wait to be sent; default 1 MiB
	Answer    int               // bytes of one answer, in all its parts; default 256 MiB
	Damaged   int               // messages that cannot be read before the peer is hung up on; default 16
}

func (c Config) filled() Config {
	orVersions(&c.Versions)
	or(&c.Handshake, 5*time.Second)
	or(&c.Silence, 15*time.Second)
	or(&c.PacketIns, 1024)
	or(&c.Events, 8192)
	or(&c.Outgoing, 1<<20)
	or(&c.Answer, 256<<20)
	or(&c.Damaged, 16)
	return c
}

func or[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

func orVersions(v *ofp.VersionBitmap) {
	if *v == 0 {
		*v = ofp.Versions(ofp.V13, ofp.V15)
	}
}
