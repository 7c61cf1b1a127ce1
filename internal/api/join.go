package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// joinContext keeps a signature of a Join from being taken for one of something else.
const joinContext = "scaffold join 1\x00"

// tunnelContext is the same of a TunnelRequest.
const tunnelContext = "scaffold tunnel 1\x00"

// rotateContext is the same of a RotateRequest.
const rotateContext = "scaffold rotate 1\x00"

// JoinSkew is how far the clocks of a host and the controller may be apart.
const JoinSkew = 5 * time.Minute

// ErrRotation is CheckRotation's.
var ErrRotation = errors.New("the request is not signed by the key that is to take the place of the one of before")

// Errors of CheckJoin.
var (
	ErrJoinUnsigned = errors.New("the host did not sign its request")
	ErrJoinForged   = errors.New("the host's request is not signed by the key that it names")
	ErrJoinOld      = errors.New("the host's request is too old or from the future: compare the clocks")
)

// SignJoin completes a Join with the key, the time, a nonce and the signature; nothing in it may change afterwards.
func SignJoin(j *apiv1.Join, key ed25519.PrivateKey, now time.Time) {
	var nonce [8]byte
	rand.Read(nonce[:]) // never fails (crypto/rand)
	j.Nonce = binary.BigEndian.Uint64(nonce[:])
	j.Key, j.SignedUnix = key.Public().(ed25519.PublicKey), now.Unix()
	j.Signature = ed25519.Sign(key, signedJoin(j))
}

// CheckJoin says whether the host that owns the key made the Join, and lately.
func CheckJoin(j *apiv1.Join, now time.Time) error {
	return checkSigned(j.Key, j.Signature, signedJoin(j), j.SignedUnix, now)
}

// SignTunnel completes a TunnelRequest like a Join.
func SignTunnel(r *apiv1.TunnelRequest, key ed25519.PrivateKey, now time.Time) {
	var nonce [8]byte
	rand.Read(nonce[:]) // never fails (crypto/rand)
	r.Nonce = binary.BigEndian.Uint64(nonce[:])
	r.Key, r.SignedUnix, r.Signature = key.Public().(ed25519.PublicKey), now.Unix(), nil
	r.Signature = ed25519.Sign(key, signedTunnel(r))
}

// CheckTunnel says whether the host that owns the key made the request, and lately.
func CheckTunnel(r *apiv1.TunnelRequest, now time.Time) error {
	return checkSigned(r.Key, r.Signature, signedTunnel(r), r.SignedUnix, now)
}

// SignRotation asks for the key to take the place of the one of before: whoever asks has both.
func SignRotation(key ed25519.PrivateKey, before ed25519.PublicKey) *apiv1.RotateRequest {
	return &apiv1.RotateRequest{Key: key.Public().(ed25519.PublicKey), Signature: ed25519.Sign(key, append([]byte(rotateContext), before...))}
}

// CheckRotation says whether the owner of the key asks for it to take the place of the one of before.
func CheckRotation(r *apiv1.RotateRequest, before ed25519.PublicKey) error {
	if len(r.Key) != ed25519.PublicKeySize || !ed25519.Verify(r.Key, append([]byte(rotateContext), before...), r.Signature) {
		return ErrRotation
	}
	return nil
}

func checkSigned(key, signature, text []byte, at int64, now time.Time) error {
	if len(signature) == 0 {
		return ErrJoinUnsigned
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, signature) {
		return ErrJoinForged
	}
	if age := now.Sub(time.Unix(at, 0)); age > JoinSkew || age < -JoinSkew {
		return fmt.Errorf("%w: the host's says %s, the controller's %s", ErrJoinOld, trust.Stamp(time.Unix(at, 0)), trust.Stamp(now))
	}
	return nil
}

func signedTunnel(r *apiv1.TunnelRequest) []byte {
	bare := proto.CloneOf(r)
	bare.Signature = nil
	return signedText(tunnelContext, bare)
}

// signedJoin is what the signature is over: the context, then the Join without the signature, its fields in the
// order of their numbers.
func signedJoin(j *apiv1.Join) []byte {
	bare := proto.CloneOf(j)
	bare.Signature = nil
	return signedText(joinContext, bare)
}

func signedText(context string, m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte(context), m)
	if err != nil {
		panic(fmt.Sprintf("api: a request that was parsed or built cannot be written: %v", err)) // invalid UTF-8 is refused by both
	}
	return b
}
