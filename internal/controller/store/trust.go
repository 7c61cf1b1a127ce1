package store

import "encoding/hex"

// A Token is what is kept of one that was printed: enough to know it, not to make it again. Its end is the one
// time of the day in the store by which something is decided.
type Token struct {
	ID      string   `json:"id"`
	Hash    []byte   `json:"hash"` // of its secret
	Role    string   `json:"role"`
	Name    string   `json:"name,omitempty"` // who alone may use it
	Created int64    `json:"created"`        // seconds since 1970
	Expires int64    `json:"expires"`
	Uses    int      `json:"uses"`           // how often it could be used at first
	Used    []Member `json:"used,omitempty"` // and who did
	Pin     string   `json:"pin,omitempty"`  // the network's key that it names, the beginning of the hash
}

// A Member is one that the network gave a credential.
type Member struct {
	Role   string `json:"role"`
	Name   string `json:"name"`
	Key    []byte `json:"key"`              // Ed25519 public key
	Next   []byte `json:"next,omitempty"`   // the one that takes its place
	Since  int64  `json:"since,omitempty"`  // seconds since 1970
	Issued int64  `json:"issued,omitempty"` // when its last credential was made

	By string `json:"by,omitempty"` // the network's key of its last credential, the beginning of the hash

	Former  [][]byte `json:"former,omitempty"`  // the keys that it had, the first one first
	Rotated int64    `json:"rotated,omitempty"` // when it got Key in the place of the last of them
}

// Origin is the first key that it had.
func (m Member) Origin() []byte {
	if len(m.Former) > 0 {
		return m.Former[0]
	}
	return m.Key
}

// A Revoked key is none of the network's any more, whatever certificates there are of it.
type Revoked struct {
	Key  []byte `json:"key"`
	Role string `json:"role"`
	Name string `json:"name"`
	At   int64  `json:"at"` // seconds since 1970

	Replaced bool `json:"replaced,omitempty"` // its holder has another one
}

// PutToken stores a token.
func PutToken(t Token) Change { return Change{"token/" + t.ID, t} }

// DeleteToken forgets it.
func DeleteToken(id string) Change { return Change{"token/" + id, nil} }

// PutMember stores who has a credential.
func PutMember(m Member) Change { return Change{memberKey(m), m} }

// DeleteMember forgets that.
func DeleteMember(m Member) Change { return Change{memberKey(m), nil} }

// PutRevoked stores that a key is not to be trusted.
func PutRevoked(r Revoked) Change { return Change{"revoked/" + hex.EncodeToString(r.Key), r} }

// DeleteRevoked forgets it: no certificate of the key can be valid any more.
func DeleteRevoked(r Revoked) Change { return Change{"revoked/" + hex.EncodeToString(r.Key), nil} }

// DeleteHost forgets a host.
func DeleteHost(name string) Change { return Change{"host/" + name, nil} }

// DeleteRouter frees a router's block.
func DeleteRouter(name string) Change { return Change{"router/" + name, nil} }

// DeleteLinks forgets a router's links.
func DeleteLinks(router string) Change { return Change{"links/" + router, nil} }

func memberKey(m Member) string { return "member/" + m.Role + "/" + m.Name }
