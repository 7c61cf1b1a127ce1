package api

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func signedFor(t *testing.T, now time.Time) *apiv1.Join {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &apiv1.Join{Name: "h1", BootId: "b", Locator: "fd5d:0:1:101::/64", Attachment: &apiv1.Attachment{Router: "r1", Mac: []byte{1}},
		Others: []*apiv1.Attach{{Serial: 7, Attachment: &apiv1.Attachment{Router: "r2"}}}}
	SignJoin(j, key, now)
	return j
}

// What arrives is parsed again before it is checked.
func overTheWire(t *testing.T, j *apiv1.Join) *apiv1.Join {
	t.Helper()
	b, err := proto.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var got apiv1.Join
	if err := proto.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestASignedJoinIsTaken(t *testing.T) {
	now := time.Unix(1e9, 0)
	j := overTheWire(t, signedFor(t, now))
	for _, skew := range []time.Duration{0, JoinSkew, -JoinSkew} {
		if err := CheckJoin(j, now.Add(skew)); err != nil {
			t.Errorf("%v off: %v", skew, err)
		}
	}
}

// The controller takes no signature twice.
func TestNoTwoJoinsHaveTheSameSignature(t *testing.T) {
	safety.Test(t, safety.Door)
	now := time.Unix(1e9, 0)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := &apiv1.Join{Name: "h1"}, &apiv1.Join{Name: "h1"}
	SignJoin(a, key, now)
	SignJoin(b, key, now)
	if bytes.Equal(a.Signature, b.Signature) {
		t.Error("two requests of one second have the same signature")
	}
}

func TestAJoinThatChangedIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	now := time.Unix(1e9, 0)
	other := signedFor(t, now)
	for name, c := range map[string]struct {
		change func(*apiv1.Join)
		want   error
	}{
		"name":        {func(j *apiv1.Join) { j.Name = "h2" }, ErrJoinForged},
		"attachment":  {func(j *apiv1.Join) { j.Attachment.Router = "r9" }, ErrJoinForged},
		"others":      {func(j *apiv1.Join) { j.Others = nil }, ErrJoinForged},
		"time":        {func(j *apiv1.Join) { j.SignedUnix++ }, ErrJoinForged},
		"key":         {func(j *apiv1.Join) { j.Key = other.Key }, ErrJoinForged},
		"no key":      {func(j *apiv1.Join) { j.Key = nil }, ErrJoinForged},
		"short key":   {func(j *apiv1.Join) { j.Key = j.Key[:31] }, ErrJoinForged},
		"signature":   {func(j *apiv1.Join) { j.Signature = other.Signature }, ErrJoinForged},
		"cut":         {func(j *apiv1.Join) { j.Signature = j.Signature[:63] }, ErrJoinForged},
		"unsigned":    {func(j *apiv1.Join) { j.Signature = nil }, ErrJoinUnsigned},
		"of long ago": {func(*apiv1.Join) { now = now.Add(JoinSkew + time.Second) }, ErrJoinOld},
	} {
		j := signedFor(t, now)
		c.change(j)
		if err := CheckJoin(overTheWire(t, j), now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
