package ofp

// EchoRequest asks whether the peer is there; Data comes back.
type EchoRequest struct{ Data []byte }

// EchoReply answers an EchoRequest.
type EchoReply struct{ Data []byte }

// BarrierRequest is answered when all that was sent before it is done.
type BarrierRequest struct{ empty }

// BarrierReply answers a BarrierRequest.
type BarrierReply struct{ empty }

// FeaturesRequest is answered by FeaturesReply.
type FeaturesRequest struct{ empty }

// GetConfigRequest is answered by GetConfigReply.
type GetConfigRequest struct{ empty }

// GetAsyncRequest is answered by GetAsyncReply.
type GetAsyncRequest struct{ empty }

// Type implements Body.
func (EchoRequest) Type(Version) Type { return TypeEchoRequest }

// Type implements Body.
func (EchoReply) Type(Version) Type { return TypeEchoReply }

// Type implements Body.
func (BarrierRequest) Type(Version) Type { return TypeBarrierRequest }

// Type implements Body.
func (BarrierReply) Type(Version) Type { return TypeBarrierReply }

// Type implements Body.
func (FeaturesRequest) Type(Version) Type { return TypeFeaturesRequest }

// Type implements Body.
func (GetConfigRequest) Type(Version) Type { return TypeGetConfigRequest }

// Type implements Body.
func (GetAsyncRequest) Type(Version) Type { return TypeGetAsyncRequest }

func (m *EchoRequest) layout(c *codec) { c.raw(&m.Data) }
func (m *EchoReply) layout(c *codec)   { c.raw(&m.Data) }
