package trust

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Token lets its bearer become a member, once. It is written in one line:
//
//	scaffold1-  base64url of:  role 1 | id 8 | secret 16 | pin 32 | addresses, joined by commas | check 4
//
// The check is the beginning of the SHA-256 of all before it: a token that was cut or mistyped is told from a
// wrong one without asking anybody.
type Token struct {
	Role      Role
	ID        TokenID
	Secret    TokenSecret
	Pin       Pin      // of the network: the bearer knows the controller by it before it says the secret
	Addresses []string // where the controllers are; may be none
}

// A TokenID names a token; it is no secret.
type TokenID [8]byte

func (i TokenID) String() string { return hex.EncodeToString(i[:]) }

// A TokenSecret is the half that the controller keeps only the hash of.
type TokenSecret [16]byte

// Hash is what is stored. The secret is random, so nothing slower is needed.
func (s TokenSecret) Hash() []byte {
	sum := sha256.Sum256(append([]byte("scaffold token 1\x00"), s[:]...))
	return sum[:]
}

// Fits compares with a stored hash, in a time that tells nothing.
func (s TokenSecret) Fits(hash []byte) bool { return subtle.ConstantTimeCompare(s.Hash(), hash) == 1 }

const (
	tokenPrefix   = "scaffold1-"
	tokenCheck    = 4
	tokenFixed    = 1 + 8 + 16 + 32
	mostAddresses = 512 // bytes
)

// ErrToken says that a text is no token.
var ErrToken = errors.New("this is no token")

// roleBytes are the roles as tokens write them, from 1 on.
var roleBytes = []Role{Host, Router, Admin, Agent}

// NewToken makes one that nobody can guess.
func NewToken(role Role, pin Pin, addresses ...string) Token {
	t := Token{Role: role, Pin: pin, Addresses: addresses}
	rand.Read(t.ID[:]) // never fails (crypto/rand)
	rand.Read(t.Secret[:])
	return t
}

// String is the token as it is passed on. Whoever reads it can use it.
func (t Token) String() string {
	b := slices.Concat([]byte{byte(1 + slices.Index(roleBytes, t.Role))}, t.ID[:], t.Secret[:], t.Pin[:], []byte(strings.Join(t.Addresses, ",")))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, check(b)...))
}

func check(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:tokenCheck]
}

// ParseToken reads what String wrote. The errors do not repeat the text: it may be half a secret.
func ParseToken(s string) (Token, error) {
	var t Token
	text, ok := strings.CutPrefix(strings.TrimSpace(s), tokenPrefix)
	if !ok {
		return t, fmt.Errorf("%w: it does not begin with %s", ErrToken, tokenPrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || strings.ContainsAny(text, "\r\n"): // which the decoder passes over
		return t, fmt.Errorf("%w: it has characters that no token has: was it copied as a whole, in one line?", ErrToken)
	case len(b) < tokenFixed+tokenCheck:
		return t, fmt.Errorf("%w: it is too short: was it copied as a whole?", ErrToken)
	case len(b) > tokenFixed+mostAddresses+tokenCheck:
		return t, fmt.Errorf("%w: it is too long", ErrToken)
	}
	b, sum := b[:len(b)-tokenCheck], b[len(b)-tokenCheck:]
	if !bytes.Equal(check(b), sum) {
		return t, fmt.Errorf("%w: a part of it is missing or was mistyped", ErrToken)
	}
	if b[0] < 1 || int(b[0]) > len(roleBytes) {
		return t, fmt.Errorf("%w that this version knows: it is for another kind of member", ErrToken)
	}
	t.Role = roleBytes[b[0]-1]
	copy(t.ID[:], b[1:])
	copy(t.Secret[:], b[9:])
	copy(t.Pin[:], b[25:])
	if rest := string(b[tokenFixed:]); rest != "" {
		t.Addresses = strings.Split(rest, ",")
	}
	return t, nil
}
